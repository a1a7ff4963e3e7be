"""``motifold features``."""

from __future__ import annotations

from pathlib import Path

import click

from motifold.cli._numbers import POSITIVE
from motifold.cli._options import json_option, model_argument, output_option
from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep_text
from motifold.cli._shared import EXIT_CODES, friendly, load_model, print_json
from motifold.cli._terminal import say


@click.command(
    "features", epilog=EXIT_CODES, short_help="List which motif each feature (neuron) belongs to."
)
@model_argument
@output_option(None, metavar="CSV", help="Write there, else to the screen.")
@click.option(
    "--rate",
    type=POSITIVE,
    metavar="HZ",
    help="Time bins per second.  [default: those of the recording of the fit]",
)
@json_option
def command(model: Path, output: Path | None, rate: float | None, as_json: bool) -> None:
    """List which motif each feature (neuron, channel) belongs to, as CSV.

    The columns are feature (its column in the data), name, motif (in which it has most power; -1
    for none), lag of its peak there (in bins, and in seconds where the rate is known), weight (the
    motif's value at that peak) and share (of the feature's power in all motifs, how much is in this
    one). Features are in the order of motif and lag.

    \b
    Examples:
      motifold features model.npz
      motifold features model.npz -o neurons.csv
    """
    with friendly():
        from motifold.findings import feature_table

        check_outputs({"--output": output}, {"the model": model})
        check_ending("--output", output, TABLE)
        fitted = load_model(model)
        table = feature_table(fitted, rate=rate or (fitted.origin_ or {}).get("rate"))
        text = table.to_csv()
        if output is not None:
            keep_text(output, text, "The list")
        if as_json:
            print_json({"features": table.records})
        elif output is None:
            say(text, nl=False)
        else:
            say(f"{len(table)} features: {output}")
