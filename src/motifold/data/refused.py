"""What is told from afar to be no table of numbers, or no model, in words of ours."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def check_model(model: Any) -> None:
    """Raise for what is no estimator, such as data that was given first, and for one not fitted."""
    if not hasattr(model, "fit"):
        raise TypeError(
            f"model must be a fitted CNMF, not of type {type(model).__name__}: the model comes "
            "first, then X."
        )
    check_is_fitted(model)


def is_recording(X: Any) -> bool:
    """Whether X is a ``motifold.io.Recording``, which is of a floor above."""
    return hasattr(X, "checked") and hasattr(X, "feature_names")


def refuse_recording(X: Any, name: str) -> None:
    """Raise for one where its segments would be lost."""
    if is_recording(X):
        raise TypeError(
            f"{name} is a recording, and here goes what is in it: recording.X, and "
            "recording.lengths for its segments."
        )


def refuse_no_table(X: Any, name: str) -> None:
    """Raise for a name of a file, for text, dates and complex numbers, for other than two axes."""
    if isinstance(X, (str, PathLike)):
        raise TypeError(
            f"{name} is the name of a file, {str(X)!r}, not what is in it. Read it first: "
            "motifold.io.read(...)."
        )
    refuse_recording(X, name)
    dtype, axes = getattr(X, "dtype", None), getattr(X, "ndim", 2)
    if isinstance(dtype, np.dtype) and dtype.kind in "SUmM":
        what = "text" if dtype.kind in "SU" else "dates or durations"
        raise TypeError(
            f"{name} holds {what} (dtype {dtype}), first at row 0, column 0; it must hold "
            "nonnegative numbers. Convert it first, e.g. with astype(float)."
        )
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Of a spectrogram give the "
            f"magnitudes: np.abs({name})."
        )
    if axes == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} is (time, features). Reshape your "
            "data: X.reshape(-1, 1) if it is one feature over time."
        )
    if axes == 3:
        raise ValueError(
            f"Found array with dim 3, while dim <= 2 is required: {name} is (time, features). "
            "Trials of shape (trials, time, features) are a list of tables: list(X)."
        )
