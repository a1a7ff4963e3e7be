"""``motifold info``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._shared import (
    EXIT_CODES,
    FILE,
    friendly,
    json_option,
    print_json,
    reading_options,
    recording_of,
)


@click.command("info", epilog=EXIT_CODES)
@click.argument("file", type=FILE)
@reading_options
@json_option
def command(file: Path, as_json: bool, **options: Any) -> None:
    """Tell what a recording, or a model, is.

    \b
    Examples:
      motifold info counts.npy --rate 100
      motifold info song.mat --key SONG --orientation features_first
      motifold info model.npz
    """
    with friendly():
        told = _of_a_model(file) if _is_model(file) else _of_a_recording(file, options)
    if as_json:
        print_json(told)
        return
    width = max(len(name) for name in told)
    for name, value in told.items():
        if isinstance(value, list):
            value = " ".join(str(entry) for entry in value) if name == "hints" else _short(value)
        if value is not None and value != "":
            click.echo(f"{name.replace('_', ' '):<{width}}  {value}")


def _short(values: list[Any]) -> str:
    shown = ", ".join(str(value) for value in values[:8])
    return shown + (f", … ({len(values)} in all)" if len(values) > 8 else "")


def _is_model(file: Path) -> bool:
    import zipfile

    if file.suffix != ".npz" or not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return "motifold.json" in archive.namelist()


def _of_a_model(file: Path) -> dict[str, Any]:
    from motifold.cli._shared import load_model

    model = load_model(file)
    K, L, N = model.components_.shape
    origin = model._recording or {}
    return {
        "file": str(file),
        "kind": "model",
        "motifs": K,
        "lags": L,
        "features": N,
        "time_bins": sum(model._lengths),
        "segments": len(model._lengths),
        "solver": str(model.solver),
        "iterations": model.n_iter_,
        "stopped_because": model.stop_reason_,
        "loss": model.loss_,
        "kkt_residual": model.kkt_residual_,
        "fitted_to": origin.get("source"),
        "rate": origin.get("rate"),
    }


def _of_a_recording(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    recording = recording_of(file, options)
    T, N = recording.shape
    low, high, total, bad = np.inf, -np.inf, 0.0, 0
    for start in range(0, T, 4096):
        block = np.asarray(recording.X[start : start + 4096])
        finite = block[np.isfinite(block)]
        bad += block.size - finite.size
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            total += float(finite.sum(dtype=np.float64))
    hints = list(recording.hints)
    if bad:
        hints.append(f"{bad} values are missing (NaN) or infinite: fill them before a fit.")
    if low < 0:
        hints.append("There are negative values: --negatives clip or shift.")
    return {
        "file": str(file),
        "kind": "recording",
        "time_bins": T,
        "features": N,
        "dtype": str(recording.X.dtype),
        "rate": recording.rate,
        "seconds": recording.seconds,
        "segments": 1 if recording.lengths is None else len(recording.lengths),
        "minimum": low,
        "maximum": high,
        "mean": total / max(T * N - bad, 1),
        "feature_names": list(recording.feature_names or []),
        "hints": hints,
    }
