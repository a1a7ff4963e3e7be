"""``motifold events``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._following import check_following, follow_events, live_events_options
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
@live_events_options
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
@reading_options
def command(
    model: Path,
    data: Path | None,
    output: Path | None,
    threshold: float,
    refractory: float | None,
    as_json: bool,
    source: Path | None,
    follow: bool,
    latency: int | None,
    idle: float | None,
    **options: Any,
) -> None:
    """List when each motif occurs, as CSV.

    The columns are motif (from 0, as in components_), segment (from 0), time, bin and strength.
    Times are in seconds from the start of the segment where the rate is known, else in bins. Of a
    recording with missing entries (--missing mask), events of which less than half is observed are
    left out; without --data nothing is known of what was missing.

    With --follow rows are taken as they come, from standard input (-) or a csv or npy file that is
    being written, one time bin on a line; each event is printed as JSON on a line of its own as
    soon as it is final. Its certainty, 0 to 1, tells how far it can be relied on with a short
    --latency.

    \b
    Examples:
      motifold events model.npz
      motifold events model.npz --data another.npy -o events.csv
      rig | motifold events model.npz - --follow
    """
    with friendly():
        if follow or source is not None:
            check_following(follow, {"--data": data, "--output": output})
            settings: dict[str, Any] = {"threshold": threshold, "refractory": refractory}
            settings |= {"latency": latency, "idle": idle, "rate": options.get("rate")}
            follow_events(model, source, **settings)
            return
        from motifold.findings import find_events

        inputs = {"the model": model, "the recording": data}
        check_outputs({"--output": output}, inputs)
        check_ending("--output", output, TABLE)
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
        if output is not None:
            keep_text(output, text, "The list")
        if as_json:
            print_json({"events": events.records})
        elif output is None:
            say(text, nl=False)
        else:
            say(f"{len(events)} events: {output}")
