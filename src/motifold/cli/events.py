"""``motifold events``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep_text
from motifold.cli._shared import (
    FILE,
    FileCommand,
    friendly,
    load_model,
    model_argument,
    notes_of,
    notes_option,
    output_option,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say


@click.command("events", cls=FileCommand)
@model_argument
@click.option("--data", type=FILE, metavar="FILE", help="A recording; without it, that of the fit.")
@output_option(None, metavar="CSV", help="Write there, else to the screen.")
@click.option(
    "--threshold",
    type=click.FloatRange(0),
    help="Least strength, in units of the motif's typical one.  [default: 0.3, or as noted]",
)
@click.option("--refractory", type=click.FloatRange(0), metavar="S", help="Seconds between two.")
@notes_option
@reading_options
def command(
    model: Path,
    data: Path | None,
    output: Path | None,
    threshold: float | None,
    refractory: float | None,
    notes: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """List when each motif occurs, as CSV.

    The columns are motif (from 0, as in components_), segment (from 0), time, bin and strength.
    Times are in seconds from the start of the segment where the rate is known, else in bins. Of a
    recording with missing entries (--missing mask), events of which less than half is observed are
    left out; without --data nothing is known of what was missing.

    What was said in the explorer is heeded: thresholds of each motif, motifs that were merged or
    hidden, events that were rejected, and names, in a column more (--no-notes leaves it aside).

    \b
    Examples:
      motifold events model.npz
      motifold events model.npz --data another.npy -o events.csv
    """
    with friendly():
        from motifold.findings import find_events
        from motifold.findings.annotated import annotated_events, events_csv, with_names
        from motifold.findings.annotations import THRESHOLD, recording_key

        inputs = {"the model": model, "the recording": data}
        check_outputs({"--output": output}, inputs)
        check_ending("--output", output, TABLE)
        fitted = load_model(model)
        said, key = notes_of(model, fitted, notes), None
        origin = fitted.origin_ or {}
        activations, lengths, rate = None, None, origin.get("rate") or options.get("rate")
        if data is not None:
            recording = recording_of(data, options, fitted).checked()
            activations = fitted.transform(
                recording.X, lengths=recording.lengths, mask=recording.mask
            )
            lengths, rate = recording.lengths, recording.rate
            key = recording_key(recording.X)
            if recording.mask is not None:
                from motifold.findings.decomposition import Decomposition

                activations = Decomposition.of(fitted, recording.X, activations, lengths).known
        chosen: dict[str, Any] = {"lengths": lengths, "rate": float(rate or 1.0)}
        chosen |= {"threshold": threshold, "refractory": refractory}
        if said is None:
            chosen["threshold"] = THRESHOLD if threshold is None else threshold
            events = find_events(fitted, activations, **chosen)
        else:
            events = annotated_events(fitted, activations, said, key=key, **chosen)
            events = with_names(events, said)
        text = events_csv(events)
        if output is not None:
            keep_text(output, text, "The list")
        if as_json:
            print_json({"events": events.records})
        elif output is None:
            say(text, nl=False)
        else:
            say(f"{len(events)} events: {output}")
