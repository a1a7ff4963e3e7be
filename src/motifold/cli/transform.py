"""``motifold transform``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._options import file_argument, memory_option, model_argument, output_option
from motifold.cli._outputs import check_outputs, keep, keep_text
from motifold.cli._shared import (
    FileCommand,
    friendly,
    load_model,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say


@click.command("transform", cls=FileCommand)
@model_argument
@file_argument
@output_option("activations.npy", help="A file .npy or .csv, or a new folder .zarr.")
@memory_option
@reading_options
def command(
    model: Path,
    file: Path,
    output: Path,
    as_json: bool,
    memory_limit: str | None,
    **options: Any,
) -> None:
    """Find the activations of a model's motifs in a recording.

    The file is read as the one of the fit was, unless options say otherwise, and prepared as it was
    (smoothing, scaling and so on, by what was learnt in the fit).

    \b
    Examples:
      motifold transform model.npz another.npy -o activations.npy
      motifold transform speech.npz another.wav -o activations.csv
      motifold transform model.npz days.zarr -o activations.zarr --memory-limit 4GB
    """
    import numpy as np

    from motifold.files import csv_text
    from motifold.findings.decomposition import Decomposition
    from motifold.findings.unseen import prepared_recording
    from motifold.io.zarr_store import write_zarr

    if output.suffix not in (".npy", ".csv", ".zarr"):
        raise click.UsageError(f"--output: {output} must end in .npy, .csv or .zarr.")
    with friendly():
        inputs = {"the model": model, "the recording": file}
        check_outputs({"--output": output}, inputs)
        fitted = load_model(model).set_params(memory_limit=memory_limit)
        recording = recording_of(file, options, fitted).checked(memory_limit=memory_limit)
        recording = prepared_recording(fitted, recording)
        activations = fitted.transform(recording.X, lengths=recording.lengths, mask=recording.mask)
        if output.suffix == ".npy":
            keep(output, lambda place: _save(place, activations), "The result")
        elif output.suffix == ".zarr":
            keep(output, lambda place: write_zarr(place, activations), "The result")
        else:
            names = [f"motif_{k}" for k in range(activations.shape[1])]
            table = np.column_stack([recording.times, activations])
            text = csv_text(["time", *names], table.tolist())
            keep_text(output, text, "The result")
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
        say(f"{len(activations)} time bins, relative loss {loss:.4f}{by}: {output}")


def _save(path: Path, activations: Any) -> None:
    import numpy as np

    from motifold.files import written_whole

    with written_whole(path) as file:
        np.save(file, activations)
