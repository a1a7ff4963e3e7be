"""What must become of a damaged file: a clear error with its name, or sound numbers."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

import motifold
import motifold.io
from fuzz.seeds import Seed, X, checkpointed, swept
from motifold.io.reading import Options

# Imported here, once, and not in every child; polars minds being forked.
PRELOADED = ("h5py", "soundfile", "zarr", "zarr.codecs", "numcodecs", "scipy.io", "scipy.signal",
             "scipy.io.matlab", "motifold.data.validation")  # fmt: skip
MOST = 64 * 2**20  # bytes that a recording may unpack to
_CAN_ISOLATE = "isolate" in (
    *inspect.signature(motifold.io.read).parameters,
    *inspect.signature(Options).parameters,
)


def preload() -> None:
    for name in PRELOADED:
        import_module(name)


def read(seed: Seed, path: Path, whole: dict[str, Any], forged: bool) -> None:
    """Read the file as its user would; raise if the result is not what it may be."""
    if seed.kind == "model":
        _read_model(path)
    elif seed.kind == "checkpoint":
        _go_on(path, None if forged else whole)
    elif seed.kind == "sweep store":
        _sweep_on(path, None if forged else whole)
    else:
        _read_recording(seed, path, isolate=False)


def read_isolated(seed: Seed, path: Path) -> None:
    """The same in a process that motifold starts: a crash there is an error here."""
    _read_recording(seed, path, isolate=True)


def can_isolate(seed: Seed) -> bool:
    return _CAN_ISOLATE and seed.kind not in ("model", "checkpoint", "sweep store")


def _read_recording(seed: Seed, path: Path, isolate: bool) -> None:
    options = seed.options | ({"isolate": True} if isolate else {})
    recording = motifold.io.read(path, max_bytes=MOST, **options).checked("clip", "mask")
    # Of counts that are sparse, the zeros need no look.
    values = recording.X.data if issparse(recording.X) else np.asarray(recording.X)
    observed = values if recording.mask is None else values[recording.mask]
    assert observed.nbytes <= MOST, "more was read than allowed"
    assert np.isfinite(observed).all(), "what was read is not finite"
    assert observed.min() >= 0, "what was read is negative"


def _read_model(path: Path) -> None:
    model = motifold.load(path)
    rows = np.ones((3 * model.n_lags, model.n_features_in_))
    try:
        activations = model.set_params(n_jobs=1).transform(rows)
    except ValueError:  # numbers that cannot be computed with, and it says so
        return
    assert np.isfinite(activations).all(), "a loaded model gives what is not finite"


# --- what goes on from a file ---------------------------------------------------------------------


def whole_results() -> dict[str, Any]:
    """What a fit and a sweep give that were never stopped."""
    model = checkpointed().fit(X)
    return {"fit": (model.components_, model.activations_), "sweep": swept().table}


def _go_on(path: Path, whole: dict[str, Any] | None) -> None:
    """A checkpoint is one's own: of a forged one it is only asked that it harms nobody."""
    if whole is None:
        warnings.simplefilter("ignore")
    model = motifold.fit_with_checkpoint(checkpointed(), X, path)
    if whole is None:
        return
    for found, expected in zip((model.components_, model.activations_), whole["fit"], strict=True):
        assert np.array_equal(found, expected), "a damaged checkpoint changed the result"


def _sweep_on(path: Path, whole: dict[str, Any] | None) -> None:
    if whole is None:
        warnings.simplefilter("ignore")
    table = swept(path).table
    assert whole is None or table == whole["sweep"], "a damaged store changed the result"
