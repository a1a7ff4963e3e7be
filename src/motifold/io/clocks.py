"""The clock of a table: times of its rows in, rate, segments and their starts out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.guards import RecordingError

_JITTER = 0.01  # of a step, by which steps may differ
_GAP = 1.5  # steps from which on it is a gap
_MOST_GAPS = 0.1  # of all steps; with more it is no clock with gaps
_NAMES = {"time", "t", "times", "timestamp", "timestamps", "seconds", "time_s"}  # of a clock
_DIGITS = range(10)  # after the point, to which times may be rounded


@dataclass(frozen=True)
class Clock:
    """What the times of the rows say.

    Attributes
    ----------
    rate : time bins per second
    starts : seconds of the first bin of each segment
    lengths : rows of each segment, None where it is one
    hints : what was done about gaps, rounding and dates
    """

    rate: float
    starts: tuple[float, ...]
    lengths: tuple[int, ...] | None = None
    hints: tuple[str, ...] = ()

    def repeated(self, n: int) -> Clock:
        """Of n stretches of time, one after the other, that all have these times."""
        lengths = None if self.lengths is None else self.lengths * n
        return Clock(self.rate, self.starts * n, lengths, self.hints)


def clock_of(times: Any, source: str, rate: float | None = None) -> Clock:
    """The clock that evenly spaced times (numbers in seconds, or dates) make.

    Steps may differ by 1 %, or by the unit to which the times are rounded if that is no more than
    half a step. Longer steps are gaps, at which a segment ends. Dates become seconds from midnight
    of the first day. ``rate``: the steps are to be those of it.
    """
    stamps, hints = _in_seconds(np.asarray(times), source)
    bad = np.flatnonzero(~np.isfinite(stamps))
    if bad.size:
        raise RecordingError(f"{source}: row {bad[0]} has no time. Fill it in, or remove the row.")
    steps = np.diff(stamps)
    step = float(np.median(steps)) if rate is None else 1 / rate
    unit = _rounding(stamps)
    tolerance = max(_JITTER * step, min(unit, step / 2) * 1.001)
    even = np.abs(steps - step) <= tolerance
    gaps = ~even & (steps >= max(_GAP * step, step + tolerance))
    odd = np.flatnonzero(~even & ~gaps)
    if not step > 0 or odd.size or gaps.sum() > max(1, _MOST_GAPS * len(steps)):
        first = int(odd[0]) if odd.size else int(np.argmax(~even))
        raise RecordingError(_uneven(source, stamps, first, step, tolerance))
    bounds = np.r_[0, np.flatnonzero(gaps) + 1, len(stamps)]
    lengths = tuple(np.diff(bounds).tolist())
    starts = tuple(stamps[bounds[:-1]].tolist())
    if rate is None:
        rate = float(even.sum() / steps[even].sum())
    hints += _told(stamps, bounds, rate, unit, step)
    return Clock(rate, starts, lengths if len(lengths) > 1 else None, hints)


def _in_seconds(
    stamps: npt.NDArray[Any], source: str
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    """Numbers as they are; dates from midnight of the first day, which is said."""
    if stamps.ndim != 1 or stamps.dtype.kind not in "fiumM" or len(stamps) < 2:
        raise RecordingError(f"{source}: times must be two or more numbers or dates in a row.")
    if stamps.dtype.kind == "m":
        return stamps / np.timedelta64(1, "s"), ()
    if stamps.dtype.kind != "M":
        return stamps.astype(np.float64), ()
    day = stamps[0].astype("datetime64[D]")
    told = f"Times are seconds from {day} 00:00, as the dates in the file have it."
    return (stamps - day) / np.timedelta64(1, "s"), (told,)


def _rounding(stamps: npt.NDArray[np.float64]) -> float:
    """The decimal unit of which all times are multiples; 0 if there is none."""
    scale = float(np.abs(stamps).max())
    for digits in _DIGITS:
        unit = 10.0**-digits
        off = np.abs(stamps / unit - np.rint(stamps / unit)) * unit
        if off.max() <= max(1e-4 * unit, 4e-16 * scale) and unit > 1e-12 * scale:
            return unit
    return 0.0


def _uneven(
    source: str, stamps: npt.NDArray[np.float64], first: int, step: float, tolerance: float
) -> str:
    found = stamps[first + 1] - stamps[first]
    back = " The time goes back there: sort the rows." if found < 0 else ""
    return (
        f"{source}: the times are not evenly spaced, first between rows {first} and {first + 1} "
        f"(from {stamps[first]:.10g} s by {found:g} s, mostly {step:g} s; {tolerance:.2g} s more "
        f"or less are taken for rounding, steps {_GAP:g} times as long for gaps).{back} "
        "Resample first, or leave the times out and give rate."
    )


def _told(
    stamps: npt.NDArray[np.float64], bounds: npt.NDArray[Any], rate: float, unit: float, step: float
) -> tuple[str, ...]:
    hints: tuple[str, ...] = ()
    if len(bounds) > 2:
        at = bounds[1]
        hints += (
            f"The clock has {len(bounds) - 2} gaps, the first before row {at} (from "
            f"{stamps[at - 1]:.10g} to {stamps[at]:.10g} s): there are {len(bounds) - 1} segments.",
        )
    if unit > _JITTER * step:
        hints += (f"Times are rounded to {unit:g} s; the rate, {rate:.6g} Hz, is their mean.",)
    strays = [
        np.abs(stamps[a:b] - stamps[a] - np.arange(b - a) / rate).max() for a, b in pairwise(bounds)
    ]
    if max(strays) > 1 / rate:
        hints += (
            f"The clock is not steady: times stray by up to {max(strays):.3g} s from bins of one "
            "length, and so do the times of events.",
        )
    return hints


def clock_hint(names: list[str] | None) -> tuple[str, ...]:
    """What to say where a feature has the name of a clock."""
    clocks = [name for name in names or [] if name.strip().lower() in _NAMES]
    if not clocks:
        return ()
    return (f"The column {clocks[0]!r} is taken for a feature; if it is the clock, set time.",)
