"""Times as people give them, in bins, and bins in the recording's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Clock:
    """When each bin of stacked segments was.

    Attributes
    ----------
    rate : time bins per second; None: times are bins
    firsts : the first row of each segment
    starts : seconds of that bin, of each segment
    T : number of bins
    """

    rate: float | None
    firsts: npt.NDArray[np.intp]
    starts: npt.NDArray[np.float64]
    T: int

    @classmethod
    def of(cls, rate: float | None, lengths: Sequence[int], starts: Any = None) -> Clock:
        """Of segments that begin at ``starts``; None: the first at 0, and the others follow."""
        bounds = np.r_[0, np.cumsum(np.asarray(lengths, np.intp))]
        firsts, T = bounds[:-1], int(bounds[-1])
        if starts is None or rate is None:
            return cls(rate, firsts, firsts / (rate or 1), T)
        given = np.asarray(starts, np.float64)
        if given.shape != firsts.shape or not np.isfinite(given).all():
            raise ValueError(
                f"starts must be the seconds at which each of the {len(firsts)} segments begins, "
                f"not {starts!r}."
            )
        ends = given + np.asarray(lengths) / rate
        if (given[1:] < ends[:-1] - 0.5 / rate).any():
            given = firsts / rate  # clocks of their own: no time would mean one bin
        return cls(rate, firsts, given, T)

    @property
    def is_one(self) -> bool:
        """Whether there is one segment, so that bins and times are proportional."""
        return len(self.firsts) == 1

    def times(self, bins: Any) -> npt.NDArray[np.float64]:
        """Seconds (or bins, without a rate) of bins, which need not be whole."""
        bins = np.asarray(bins, np.float64)
        i = np.clip(np.searchsorted(self.firsts, bins, side="right") - 1, 0, None)
        return np.asarray(self.starts[i] + (bins - self.firsts[i]) / (self.rate or 1))

    def bins_of(
        self, time_range: tuple[float, float] | None, *, cut: bool = False
    ) -> tuple[int, int]:
        """First bin and the one after the last; None means all.

        What lies between two segments is nearest to an end of one. An end beyond the recording is
        an error unless it is to be cut.
        """
        start, stop = 0, self.T
        if time_range is not None:
            start, stop = (self._bin(time) for time in time_range)
            stop = min(stop, self.T) if cut else stop
        if not 0 <= start < stop <= self.T:
            unit = "bins" if self.rate is None else "seconds"
            first = float(self.starts[0])
            last = float(self.starts[-1] + (self.T - self.firsts[-1]) / (self.rate or 1))
            raise ValueError(
                f"time_range must be (start, end) within the recording, {first:.10g} to "
                f"{last:.10g} {unit}; it is {time_range}."
            )
        return start, stop

    def _bin(self, time: float) -> int:
        i = max(0, int(np.searchsorted(self.starts, time, side="right")) - 1)
        found = int(self.firsts[i]) + round((time - self.starts[i]) * (self.rate or 1))
        following = self.firsts[i + 1] if i + 1 < len(self.firsts) else found
        return min(found, int(following))


def bins_of(
    time_range: tuple[float, float] | None, rate: float | None, T: int, *, cut: bool = False
) -> tuple[int, int]:
    """The same of a recording that begins at 0."""
    return Clock.of(rate, [T]).bins_of(time_range, cut=cut)
