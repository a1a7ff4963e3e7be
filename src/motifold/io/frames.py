"""pandas and polars frames: columns are features, their names are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.io.clocks import clock_of
from motifold.io.guards import RecordingError
from motifold.io.recording import Recording


def from_frame(
    frame: Any, *, time: str | None = None, rate: float | None = None, source: str | None = None
) -> Recording:
    """Make a recording of a pandas or polars frame.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        Rows are time bins, columns are features.
    time : str or None
        The column that has the time (seconds, or dates), evenly spaced but for gaps, at which a
        segment ends; it gives the rate and the clock and is no feature.
    rate : float or None
        Time bins per second.
    source : str or None
        What messages call it.

    Returns
    -------
    Recording

    Examples
    --------
    >>> import pandas
    >>> from motifold.io import from_frame
    >>> frame = pandas.DataFrame({"clock": [0.0, 0.1, 0.2], "a": [1, 2, 3], "b": [0, 1, 0]})
    >>> recording = from_frame(frame, time="clock")
    >>> recording.feature_names, round(recording.rate, 6)
    (('a', 'b'), 10.0)
    """
    source = source or f"the {type(frame).__module__.partition('.')[0]} frame"
    columns = [str(name) for name in frame.columns]
    clock = None
    if time is not None:
        if time not in columns:
            raise RecordingError(
                f"{source}: there is no column {time!r}; it has {', '.join(columns)}."
            )
        clock = clock_of(frame[time].to_numpy(), source, rate)
    kept = [name for name in frame.columns if str(name) != time]
    arrays = [_column(frame[name]) for name in kept]
    odd = [str(n) for n, a in zip(kept, arrays, strict=True) if a.dtype.kind not in "fiub"]
    if odd:
        raise RecordingError(
            f"{source}: these columns are no numbers: {', '.join(odd)}. Leave them out, or name "
            "the one that has the time with time."
        )
    X = np.column_stack(arrays) if arrays else np.empty((len(frame), 0))
    names = tuple(str(name) for name in kept)
    if clock is None:
        return Recording(X, source, rate, names)
    more: dict[str, Any] = {"hints": clock.hints, "starts": clock.starts}
    return Recording(X, source, clock.rate, names, clock.lengths, **more)


def _column(column: Any) -> Any:
    """The values; pandas' own types for numbers with gaps give NaN there."""
    if getattr(column.dtype, "na_value", None) is not None and column.dtype.kind in "fiub":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(column.to_numpy())
