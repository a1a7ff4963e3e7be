"""xarray: dimensions are found by their names."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from motifold.io.clocks import clock_of
from motifold.io.fills import as_missing, declared_fills
from motifold.io.guards import RecordingError
from motifold.io.recording import Recording


def from_xarray(
    array: Any, *, time: str = "time", segments: str | None = None, rate: float | None = None
) -> Recording:
    """Make a recording of an ``xarray.DataArray``, whatever the order of its dimensions.

    Parameters
    ----------
    array : xarray.DataArray
    time : str, default="time"
        The dimension of time. An evenly spaced coordinate (seconds, or dates) gives the rate and
        the clock; at gaps in it a segment ends.
    segments : str or None
        A dimension, such as the trial, along which segments are stacked. All others make the
        features, named by their coordinates.
    rate : float or None
        Time bins per second, where there is no coordinate.

    Returns
    -------
    Recording

    Examples
    --------
    >>> import numpy, xarray  # doctest: +SKIP
    >>> counts = xarray.DataArray(numpy.ones((3, 100)), dims=("neuron", "time"))  # doctest: +SKIP
    >>> from_xarray(counts).shape  # doctest: +SKIP
    (100, 3)
    """
    name = f"the xarray DataArray {array.name!r}" if array.name else "the xarray DataArray"
    first = [time] if segments is None else [segments, time]
    missing = [dimension for dimension in first if dimension not in array.dims]
    if missing:
        raise RecordingError(
            f"{name}: there is no dimension {', '.join(missing)}; it has "
            f"{', '.join(str(d) for d in array.dims)}. Name them with time and segments."
        )
    others = [dimension for dimension in array.dims if dimension not in first]
    ordered = array.transpose(*first, *others)
    T = array.sizes[time]
    n_segments = 1 if segments is None else array.sizes[segments]
    X = np.asarray(ordered.values).reshape(n_segments * T, -1)
    fills = declared_fills(array.attrs)  # as they are where xarray was told not to decode
    if fills and X.dtype.kind in "fiu":
        X = as_missing(X, fills)
    lengths = (T,) * n_segments if n_segments > 1 else None
    more: dict[str, Any] = {}
    if time in array.coords and T > 1:
        clock = clock_of(array.coords[time].values, name, rate).repeated(n_segments)
        rate, lengths = clock.rate, clock.lengths or lengths
        more = {"starts": clock.starts, "hints": clock.hints}
    labels = [
        [str(value) for value in array.coords[d].values]
        if d in array.coords
        else [f"{d} {i}" for i in range(array.sizes[d])]
        for d in others
    ]
    return Recording(
        X,
        name,
        rate,
        tuple(", ".join(parts) for parts in product(*labels)) if others else (str(array.name),),
        lengths,
        **more,
    )
