"""``motifold transform``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._shared import (
    FILE,
    FileCommand,
    check_outputs,
    csv_text,
    friendly,
    load_model,
    model_argument,
    output_option,
    print_json,
    reading_options,
    recording_of,
    write_text,
)


@click.command("transform", cls=FileCommand)
@model_argument
@click.argument("file", type=FILE)
@output_option("activations.npy", help="An .npy file, or .csv with a column for each motif.")
@reading_options
def command(model: Path, file: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Find the activations of a model's motifs in a recording.

    The file is read as the one of the fit was, unless options say otherwise.

    \b
    Examples:
      motifold transform model.npz another.npy -o activations.npy
      motifold transform speech.npz another.wav -o activations.csv
    """
    import numpy as np

    from motifold.files import written_whole
    from motifold.findings.decomposition import Decomposition

    if output.suffix not in (".npy", ".csv"):
        raise click.UsageError(f"--output: {output} must end in .npy or .csv.")
    fitted = load_model(model)
    with friendly():
        check_outputs(output)
        recording = recording_of(file, options, fitted).checked()
        activations = fitted.transform(recording.X, lengths=recording.lengths, mask=recording.mask)
        if output.suffix == ".npy":
            with written_whole(output) as place:
                np.save(place, activations)
        else:
            names = [f"motif_{k}" for k in range(activations.shape[1])]
            table = np.column_stack([recording.times, activations])
            write_text(output, csv_text(["time", *names], table.tolist()))
        # As it was read: the mask is in X, as NaN.
        found = Decomposition.of(fitted, recording.X, activations, recording.lengths)
        loss = found.measured.loss
    told = {
        "output": output,
        "time_bins": len(activations),
        "beta_loss": fitted.beta_loss,
        "loss": loss,
    }
    if as_json:
        print_json(told)
    else:
        by = f" ({found.loss.title})" if found.loss.by_ratios else ""
        click.echo(f"{len(activations)} time bins, relative loss {loss:.4f}{by}: {output}")
