"""What is told from afar to be no table of numbers, in words of ours."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np


def refuse_no_table(X: Any, name: str) -> None:
    """Raise for a name of a file, for text, dates and durations, and for other than two axes."""
    if isinstance(X, (str, PathLike)):
        raise TypeError(
            f"{name} is the name of a file, {str(X)!r}, not what is in it. Read it first: "
            "motifold.io.read(...)."
        )
    dtype, axes = getattr(X, "dtype", None), getattr(X, "ndim", 2)
    if isinstance(dtype, np.dtype) and dtype.kind in "SUmM":
        what = "text" if dtype.kind in "SU" else "dates or durations"
        raise TypeError(
            f"{name} holds {what} (dtype {dtype}), first at row 0, column 0; it must hold "
            "nonnegative numbers. Convert it first, e.g. with astype(float)."
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
