"""pynapple: time series and groups of spike trains in, activations out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from motifold.data.given import series_of
from motifold.io.guards import RecordingError, require
from motifold.io.recording import Recording
from motifold.io.spikes import Spikes, Stretch


def from_pynapple(
    data: Any,
    *,
    bin_size: float | None = None,
    sparse: bool | None = None,
    max_bytes: int | None = None,
) -> Recording:
    """Make a recording of a pynapple object; its epochs become segments.

    Parameters
    ----------
    data : TsGroup, TsdFrame or Tsd
        Spikes of a group are counted in bins; a frame is taken as it is, its columns are features.
    bin_size : float or None
        Seconds of a bin; a ``TsGroup`` needs it, and the error without it suggests one. Each epoch
        is cut into as many whole bins as it has, from its start on.
    sparse, max_bytes
        Of a ``TsGroup``, as in ``from_spikes``.

    Returns
    -------
    Recording
        ``starts`` has the clock. ``timestamps`` are pynapple's times: of counts the middles of the
        bins, which begin half a bin before.

    Examples
    --------
    >>> import pynapple
    >>> from motifold.io import from_pynapple
    >>> spikes = {3: pynapple.Ts([0.1, 0.2]), 7: pynapple.Ts([0.4, 0.9])}
    >>> recording = from_pynapple(pynapple.TsGroup(spikes), bin_size=0.1)
    >>> recording.feature_names
    ('3', '7')
    """
    kind = type(data).__name__
    source = f"the pynapple {kind}"
    if kind == "TsGroup":
        return _counted(data, source, bin_size, sparse, max_bytes)
    if kind not in ("TsdFrame", "Tsd"):
        raise TypeError(f"from_pynapple takes a TsGroup, TsdFrame or Tsd, not {kind}.")
    if bin_size is not None:
        raise RecordingError(f"{source}: bin_size is for a TsGroup; see bin_average.")
    try:
        found = series_of(data)
    except ValueError as error:
        raise RecordingError(str(error)) from error
    return Recording(
        found.X,
        source,
        found.rate,
        found.names,
        found.lengths,
        timestamps=found.times,
        starts=found.starts,
    )


def _counted(
    group: Any, source: str, bin_size: float | None, sparse: bool | None, max_bytes: int | None
) -> Recording:
    """Spikes of a group in the bins of its epochs."""
    units = [str(unit) for unit in group.index]
    times = [np.asarray(group[unit].index.values, np.float64) for unit in group.index]
    found = Spikes(tuple(units), tuple(times), source)
    bins = found.needed_bin_size(bin_size)
    epochs = [Stretch(float(a), int((b - a) / bins + 1e-6)) for a, b in group.time_support.values]
    epochs = [epoch for epoch in epochs if epoch.n_bins]
    recording = found.counted(bins, epochs, sparse=sparse, max_bytes=max_bytes)
    return replace(recording, timestamps=recording.times + bins / 2)


def to_pynapple(activations: Any, recording: Recording) -> Any:
    """Give activations, or a reconstruction, the times of the recording they belong to.

    Parameters
    ----------
    activations : array-like of shape (n_samples, n_columns)
    recording : Recording

    Returns
    -------
    pynapple.TsdFrame
        With one epoch for each segment.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.io import Recording, to_pynapple
    >>> recording = Recording(np.ones((50, 3)), "made up", rate=10.0)
    >>> activations = np.zeros((50, 2))
    >>> to_pynapple(activations, recording).shape
    (50, 2)
    """
    nap = require("pynapple", "pynapple")
    values = np.asarray(activations)
    times = recording.times
    if values.ndim != 2 or len(values) != len(times):
        raise ValueError(
            f"activations must have {len(times)} rows, as the recording has; their shape is "
            f"{values.shape}."
        )
    stops = np.cumsum(recording.lengths or [len(times)])
    starts = np.r_[0, stops[:-1]]
    # Half a bin around the first and the last time: neighbours that touch would be merged.
    half = 0.499 / (recording.rate or 1.0)
    epochs = nap.IntervalSet(times[starts] - half, times[stops - 1] + half)
    return nap.TsdFrame(t=times, d=values, time_support=epochs)
