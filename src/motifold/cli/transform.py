"""``motifold transform``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._shared import (
    EXIT_CODES,
    FILE,
    friendly,
    json_option,
    load_model,
    print_json,
    reading_options,
    recording_of,
    write_text,
)


@click.command("transform", epilog=EXIT_CODES)
@click.argument("model", type=FILE)
@click.argument("file", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    default=Path("activations.npy"),
    show_default=True,
    help="An .npy file, or .csv with a column for each motif.",
)
@reading_options
@json_option
def command(model: Path, file: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Find the activations of a model's motifs in a recording.

    The file is read as the one of the fit was, unless options say otherwise.

    \b
    Examples:
      motifold transform model.npz another.npy -o activations.npy
      motifold transform speech.npz another.wav -o activations.csv
    """
    import numpy as np

    if output.suffix not in (".npy", ".csv"):
        raise click.UsageError(f"--output: {output} must end in .npy or .csv.")
    fitted = load_model(model)
    with friendly():
        recording = recording_of(file, options, fitted).checked()
        activations = fitted.transform(recording.X, lengths=recording.lengths)
        if output.suffix == ".npy":
            np.save(output, activations)
        else:
            head = ",".join(["time", *(f"motif_{k + 1}" for k in range(activations.shape[1]))])
            table = np.column_stack([recording.times, activations])
            lines = [",".join(f"{value:.9g}" for value in row) for row in table]
            write_text(output, "\n".join([head, *lines, ""]))
        X_hat = fitted.inverse_transform(activations, lengths=recording.lengths)
        loss = float(np.linalg.norm(recording.X - X_hat) / (np.linalg.norm(recording.X) or 1.0))
    told = {"output": output, "time_bins": len(activations), "loss": loss}
    if as_json:
        print_json(told)
    else:
        click.echo(f"{len(activations)} time bins, relative loss {loss:.4f}: {output}")
