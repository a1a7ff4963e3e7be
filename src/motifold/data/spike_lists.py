"""A list of spikes, (unit, time) in each row, that passes for a recording of two features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FEWEST = 8  # rows, from which on a column that rises is no chance
_REPEATS = 2  # spikes that a unit has on average, at least


def looks_like_spikes(X: Any) -> tuple[int, int] | None:
    """The columns (unit, time) of a table of two columns that is a list of spikes, else None.

    One column has whole numbers that occur again and again, the other one times that rise, all
    along or for each unit, and not in even steps, as a clock's would.
    """
    if X.ndim != 2 or X.shape[1] != 2 or X.shape[0] < FEWEST:
        return None
    table = np.asarray(X)
    if table.dtype.kind not in "fiu" or not np.isfinite(table).all():
        return None
    return next((pair for pair in ((0, 1), (1, 0)) if _are_spikes(*table[:, pair].T)), None)


def _are_spikes(units: npt.NDArray[Any], times: npt.NDArray[Any]) -> bool:
    if units.min() < 0 or (units % 1).any() or _REPEATS * len(np.unique(units)) > len(units):
        return False
    steps = np.diff(times.astype(np.float64))
    with np.errstate(over="ignore"):  # near the largest number, which are no times
        if len(np.unique(np.round(steps, 9))) < 3:  # a clock
            return False
    if (steps >= 0).all():
        return bool(len(np.unique(times)) > len(np.unique(units)))
    order = np.argsort(units, kind="stable")
    within = np.diff(times[order].astype(np.float64))[np.diff(units[order]) == 0]
    return bool((within >= 0).all() and (times % 1).any())
