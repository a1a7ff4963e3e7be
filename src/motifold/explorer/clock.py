"""Times as the recording's own clock tells them, and where to write them on an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from motifold.data import Segments

_STEPS = (1, 2, 5)
_CLOCK_STEPS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MANY_SEGMENTS = 6  # from so many on, an axis tells which segment it is and no times
_MINUTES = 600  # seconds from which on a time is written as 10:00

Ticks = list[tuple[float, str]]  # where on the axis, and what is written there


@dataclass(frozen=True)
class Clock:
    """Between bins and the axis of time, on which segments follow one another.

    The axis is in seconds from the first bin, or in bins where the rate is not known; what is
    written on it is the clock: ``starts`` has the time of the first bin of each segment.
    """

    segments: Segments
    rate: float | None = None
    starts: tuple[float, ...] | None = None

    @property
    def unit(self) -> str:
        """Of the axis."""
        return "bins" if self.rate is None else "s"

    @property
    def scale(self) -> str:
        """What is written on the axis."""
        if self.rate is None:
            return "bins"
        latest = self.end + max(0.0, self.offset(len(self.segments.lengths) - 1))
        return "s" if latest < _MINUTES else "min:s" if latest < 3600 else "h:min:s"

    @property
    def end(self) -> float:
        """Of the axis."""
        return self.position(int(self.segments.edges[-1]))

    def position(self, t: float) -> float:
        """The place of a bin on the axis."""
        return t / (self.rate or 1.0)

    def bins(self, left: float, right: float) -> tuple[int, int]:
        """First bin and end of a stretch of the axis, within the recording and not empty."""
        T, rate = int(self.segments.edges[-1]), self.rate or 1.0
        a = min(max(0, math.floor(left * rate + 1e-6)), T - 1)
        return a, max(a + 1, min(T, math.ceil(right * rate - 1e-6)))

    def offset(self, segment: int) -> float:
        """By how much the clock is ahead of the axis in a segment."""
        if self.starts is None or self.rate is None:
            return 0.0
        return self.starts[segment] - self.position(int(self.segments.edges[segment]))

    def segment(self, t: int) -> int:
        """That of a bin."""
        return int(np.searchsorted(self.segments.edges, t, side="right")) - 1

    def told(self, t: int) -> str:
        """The time of a bin, and of several segments which it is in."""
        i = self.segment(t)
        position = self.position(t)
        time = written(position + self.offset(i), 1 / self.rate if self.rate else 1.0)
        text = f"bin {t}" if self.rate is None else time if ":" in time else f"{time} s"
        return text if len(self.segments.lengths) == 1 else f"{text} (segment {i})"

    def ticks(self, left: float, right: float, about: int = 8) -> Ticks:
        """What to write on a stretch of the axis: round times of the clock."""
        a, b = self.bins(left, right)
        first, last = self.segment(a), self.segment(b - 1)
        if self.starts is None or self.rate is None:
            return _round_times(left, right, 0.0, about, self.rate is not None)
        if last - first >= _MANY_SEGMENTS:
            step = -(-(last - first) // about)
            edges = self.segments.edges
            chosen = range(first + (self.position(int(edges[first])) < left), last + 1, step)
            return [(self.position(int(edges[i])), f"#{i}") for i in chosen]
        found: Ticks = []
        for i in range(first, last + 1):
            start, stop = (self.position(int(e)) for e in self.segments.edges[i : i + 2])
            start, stop = max(start, left), min(stop, right)
            share = math.ceil(about * (stop - start) / (right - left))
            ticks = _round_times(start, stop, self.offset(i), share, True)
            found += [tick for tick in ticks if tick[0] < stop - 1e-9 or i == last]
        return found


def _round_times(left: float, right: float, offset: float, about: int, seconds: bool) -> Ticks:
    step = _step((right - left) / max(about, 1), seconds)
    first, last = math.ceil((left + offset) / step - 1e-9), math.floor((right + offset) / step)
    times = [n * step for n in range(first, last + 1)]
    if not seconds:
        return [(t, f"{t:g}") for t in times if t == round(t)]
    return [(t - offset, written(t, step)) for t in times]


def _step(least: float, seconds: bool) -> float:
    """A round distance that is at least so large."""
    if seconds and least > 20:
        days = 86400.0 * math.ceil(least / 86400)
        return next((float(s) for s in _CLOCK_STEPS if s >= least), days)
    power = 10.0 ** math.floor(math.log10(least))
    return next((s * power for s in _STEPS if s * power >= least * (1 - 1e-9)), 10 * power)


def written(time: float, step: float) -> str:
    """Seconds, as precise as the distance of two times; from ten minutes on as h:mm:ss."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(time) < _MINUTES:
        return f"{time:.{digits}f}"
    sign, rest = ("−" if time < 0 else ""), round(abs(time), digits)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(int(minutes), 60)
    tail = f"{seconds:0{2 + bool(digits) + digits}.{digits}f}"
    return f"{sign}{hours}:{minutes:02d}:{tail}" if hours else f"{sign}{minutes}:{tail}"
