"""Times as people give them, in bins."""

from __future__ import annotations


def bins_of(
    time_range: tuple[float, float] | None, rate: float | None, T: int, *, cut: bool = False
) -> tuple[int, int]:
    """First bin and the one after the last; None means all T.

    ``time_range`` is in seconds or, without a rate, in bins. An end beyond the recording is an
    error unless it is to be cut.
    """
    start, stop = 0, T
    if time_range is not None:
        start, stop = (round(time * (rate or 1)) for time in time_range)
        stop = min(stop, T) if cut else stop
    if not 0 <= start < stop <= T:
        unit, end = ("bins", T) if rate is None else ("seconds", T / rate)
        raise ValueError(
            f"time_range must be (start, end) within the recording, 0 to {end:.6g} {unit}; it is "
            f"{time_range}."
        )
    return start, stop
