"""``motifold events``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._midi import ENDINGS, keep_midi
from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep_text
from motifold.cli._shared import (
    FILE,
    FileCommand,
    csv_text,
    friendly,
    load_model,
    model_argument,
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
    default=0.3,
    show_default=True,
    help="Least strength, in units of the motif's typical one.",
)
@click.option("--refractory", type=click.FloatRange(0), metavar="S", help="Seconds between two.")
@click.option(
    "--to",
    "kind_of_output",
    type=click.Choice(["csv", "midi"]),
    default="csv",
    show_default=True,
    help="What to write: a table, or a MIDI file of drums (motif k is note 36 + k; needs mido).",
)
@reading_options
def command(
    model: Path,
    data: Path | None,
    output: Path | None,
    threshold: float,
    refractory: float | None,
    kind_of_output: str,
    as_json: bool,
    **options: Any,
) -> None:
    """List when each motif occurs, as CSV.

    The columns are motif (from 0, as in components_), segment (from 0), time, bin and strength.
    Times are in seconds from the start of the segment where the rate is known, else in bins. Of a
    recording with missing entries (--missing mask), events of which less than half is observed are
    left out; without --data nothing is known of what was missing.

    \b
    Examples:
      motifold events model.npz
      motifold events model.npz --data another.npy -o events.csv
      motifold events drums.npz --to midi -o drums.mid
    """
    with friendly():
        from motifold.findings import find_events

        inputs = {"the model": model, "the recording": data}
        check_outputs({"--output": output}, inputs)
        midi = kind_of_output == "midi"
        check_ending("--output", output, ENDINGS if midi else TABLE)
        if midi and output is None:
            raise click.UsageError("--to midi needs a file: give --output.")
        fitted = load_model(model)
        origin = fitted.origin_ or {}
        activations, lengths, rate = None, None, origin.get("rate") or options.get("rate")
        if data is not None:
            recording = recording_of(data, options, fitted).checked()
            activations = fitted.transform(
                recording.X, lengths=recording.lengths, mask=recording.mask
            )
            lengths, rate = recording.lengths, recording.rate
            if recording.mask is not None:
                from motifold.findings.decomposition import Decomposition

                activations = Decomposition.of(fitted, recording.X, activations, lengths).known
        events = find_events(
            fitted,
            activations,
            lengths=lengths,
            rate=float(rate or 1.0),
            threshold=threshold,
            refractory=refractory,
        )
        rows = [[record[name] for name in events.columns] for record in events]
        text = csv_text(events.columns, rows)
        if output is not None and midi:
            keep_midi(output, events)
        elif output is not None:
            keep_text(output, text, "The list")
        if as_json:
            print_json({"events": events.records})
        elif output is None:
            say(text, nl=False)
        else:
            say(f"{len(events)} events: {output}")
