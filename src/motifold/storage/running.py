"""The state of a stream (``partial_fit``) in a model file: optional, and checked like the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.fit.running import Running

PREFIX = "running_."
_ARRAYS = ("W", "P", "B", "H", "X", "observed", "level")
_WHOLE, _REAL = ("n_seen", "n_done"), ("scale", "weight", "power", "residual")


def arrays_of_stream(model: CNMF) -> dict[str, np.ndarray]:
    """Its arrays by their names in the file; none if there is no stream."""
    state = model.running_
    if state is None:
        return {}
    found = {name: getattr(state, name) for name in _ARRAYS}
    return {PREFIX + name: array for name, array in found.items() if array is not None}


def numbers_of_stream(model: CNMF) -> dict[str, Any] | None:
    """What is no array."""
    state = model.running_
    if state is None:
        return None
    whole = {name: int(getattr(state, name)) for name in _WHOLE}
    return whole | {name: float(getattr(state, name)) for name in _REAL}


def names_of_stream(members: Mapping[str, Any]) -> tuple[str, ...]:
    """The arrays that a file has of it."""
    known = (f"{PREFIX}{name}" for name in _ARRAYS)
    return tuple(name for name in known if f"{name}.npy" in members)


def check_stream_spec(
    model: CNMF, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int
) -> None:
    """Raise unless the array has the shape that follows from the model; ``rows``: of open ones."""
    N, L = model.n_features_in_, int(model.n_lags)
    K = int(model.n_components) + bool(model.background)
    shapes = {
        "W": (N, L, K),
        "P": (N, L * K),
        "B": (L * K, L * K),
        "H": (L - 1, K),
        "X": (rows, N),
        "observed": (rows, N),
        "level": (K,),
    }
    short = name.removeprefix(PREFIX)
    kinds = ("|b1",) if short == "observed" else ("<f4", "<f8") if short == "X" else ("<f8",)
    if shape != shapes[short] or dtype.str not in kinds:
        raise ValueError(
            f"{name} has shape {shape} and dtype {dtype}; by the parameters it must be "
            f"{shapes[short]} of {' or '.join(kinds)}."
        )


def stream_of(numbers: Any, arrays: Mapping[str, np.ndarray]) -> Running:
    """The state, from what the file has; every value is checked."""
    names = {*_WHOLE, *_REAL}
    if not isinstance(numbers, dict) or numbers.keys() != names:
        raise ValueError(f"stream must be a table of {', '.join(sorted(names))}.")
    for name in names:
        value, kind = numbers[name], int if name in _WHOLE else float
        if type(value) is not kind or not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"stream: {name} must be a finite number of type {kind.__name__}.")
    if not (numbers["scale"] > 0 and math.frexp(numbers["scale"])[0] == 0.5):
        raise ValueError("stream: scale must be a power of two.")
    given = {name: arrays.get(PREFIX + name) for name in _ARRAYS}
    missing = [name for name, array in given.items() if array is None and name != "observed"]
    if missing:
        raise ValueError(f"stream: the array {missing[0]} is missing.")
    for name, array in given.items():
        if array is not None and not np.isfinite(array).all():
            raise ValueError(f"stream: {name} must be finite; it is not.")
    return Running(**given, **numbers)  # type: ignore[arg-type]
