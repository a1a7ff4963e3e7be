"""``motifold info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._options import file_argument
from motifold.cli._shared import (
    FileCommand,
    friendly,
    in_words_of_options,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say, visible

if TYPE_CHECKING:
    from motifold.io import Recording

_EXAMINED_BYTES = 2**30  # of the data, in a few seconds


@click.command("info", cls=FileCommand)
@file_argument
@reading_options
def command(file: Path, as_json: bool, **options: Any) -> None:
    """Tell what a recording, or a model, is.

    Large data is looked at a block at a time, and never loaded whole, where the file allows it:
    npy, npz that is not compressed, HDF5, mat v7.3, zarr. Other files are loaded, as a fit does.
    The file is read in a process of its own: if it is damaged, nothing but that one can crash.

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
            shown = visible(value, one_line=True)  # names of the file's own among them
            say(f"{name.replace('_', ' '):<{width}}  {shown}")


def _short(values: list[Any]) -> str:
    shown = ", ".join(str(value) for value in values[:8])
    return shown + (f", … ({len(values)} in all)" if len(values) > 8 else "")


def _is_model(file: Path) -> bool:
    import zipfile

    if file.suffix != ".npz" or not zipfile.is_zipfile(file):
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            return "motifold.json" in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):  # whoever reads it will tell
        return False


def _of_a_model(file: Path) -> dict[str, Any]:
    from motifold.cli._shared import load_model

    model = load_model(file)
    K, L, N = model.components_.shape
    origin = model.origin_ or {}
    return {
        "file": str(file),
        "kind": "model",
        "motifs": K,
        "lags": L,
        "features": N,
        "time_bins": sum(model.lengths_),
        "segments": len(model.lengths_),
        "solver": str(model.solver),
        "beta_loss": model.beta_loss,
        "background": bool(model.background),
        "iterations": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "loss": model.loss_,
        "agreement": _starts(model),
        "kkt_residual": model.kkt_residual_,
        "fitted_to": origin.get("source"),
        "rate": origin.get("rate"),
        "starts": list(origin.get("starts") or []),
        "preparation": None if model.preparation_ is None else model.preparation_.describe(),
        "held_out": None if model.held_out_ is None else f"{100 * model.held_out_.share:.3g}%",
    }


def _starts(model: Any) -> str | None:
    """How many starts of the fit ended alike, where there were several."""
    from motifold.findings import start_agreement

    found = start_agreement(model)
    return None if found is None or found.n_starts == 1 else found.sentence


def _of_a_recording(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    from scipy.sparse import issparse

    recording = recording_of(file, options, isolate=True)
    T, N = recording.shape
    values = _examined(recording)
    hints = [*map(in_words_of_options, recording.hints), *values.pop("hints")]
    return {
        "file": str(file),
        "kind": "recording",
        "time_bins": T,
        "features": N,
        "dtype": str(recording.X.dtype),
        "rate": recording.rate,
        "seconds": recording.seconds,
        "segments": 1 if recording.lengths is None else len(recording.lengths),
        "starts": list(recording.starts or []),
        "sparse": issparse(recording.X),
        **values,
        "feature_names": list(recording.feature_names or []),
        "hints": hints,
    }


def _examined(recording: Recording) -> dict[str, Any]:
    """Extremes, mean and bad values, a block at a time; of much data only a part is looked at."""
    import numpy as np

    from motifold.data.sentinels import advice, is_sentinel
    from motifold.io.matrices import blocks

    low, high, total, seen, missing, infinite = np.inf, -np.inf, 0.0, 0, 0, 0
    parts, share = blocks(recording.X, _EXAMINED_BYTES)
    for block in parts:
        n_missing = int(np.isnan(block).sum()) if block.dtype.kind == "f" else 0
        finite = block[np.isfinite(block)]
        seen += finite.size
        missing += n_missing
        infinite += block.size - finite.size - n_missing
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            total += float(finite.sum(dtype=np.float64))
    hints = []
    if missing and recording.missing == "error":
        hints.append("NaN is refused by a fit, unless with --missing mask.")
    if infinite:
        hints.append(f"{infinite} values are infinite: replace them before a fit.")
    if low < 0 and not recording.signed:
        hints.append(
            "There are negative values, which a fit refuses: say what they mean with --negatives "
            "(keep takes them as they are)."
        )
    hints += [advice(value) for value in (low, high) if is_sentinel(value)]
    looked_at = None if share == 1 else f"{100 * share:.2g}% of the values, all over the recording"
    return {
        "looked_at": looked_at,
        "minimum": low,
        "maximum": high,
        "mean": total / max(seen, 1),
        "missing": missing,
        "hints": hints,
    }
