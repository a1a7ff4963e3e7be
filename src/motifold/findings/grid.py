"""The points of a sweep: every combination of the values that parameters are given."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import numpy as np

from motifold.estimator import CNMF

# The sweep's business.
_OWN = {"random_state", "n_jobs", "device", "verbose", "callback", "warm_start"}

Point = dict[str, Any]


def points_of(grid: dict[str, Any]) -> list[Point]:
    """Every combination of the grid's values, the last parameter running fastest."""
    known = set(inspect.signature(CNMF).parameters) - _OWN
    for name in grid:
        if name not in known:
            reason = "is set by the sweep itself" if name in _OWN else "is not a parameter of CNMF"
            raise TypeError(f"sweep: {name} {reason}; there are {', '.join(sorted(known))}.")
    for name in ("n_components", "n_lags"):
        if name not in grid:
            raise TypeError(f"sweep needs {name}: a number, or a list of numbers to go through.")
    values = {name: _values(name, given) for name, given in grid.items()}
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def _values(name: str, given: Any) -> list[Any]:
    """The values of one parameter, as plain Python objects."""
    several = isinstance(given, (list, tuple, range)) or np.ndim(given) == 1
    values = [
        value.item() if isinstance(value, np.generic) else value
        for value in (given if several else [given])
    ]
    if not values:
        raise ValueError(f"sweep: the list of values of {name} is empty.")
    if name in ("n_components", "n_lags") and not all(isinstance(v, int) and v > 0 for v in values):
        raise ValueError(
            f"sweep: {name} must be a whole number of 1 or more, or several such as range(1, 6), "
            f"not {given!r}."
        )
    return values
