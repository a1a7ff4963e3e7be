"""Peaks of a line that goes on: local maxima, the highest within a distance, one bin at a time."""

from __future__ import annotations

from typing import NamedTuple


class Peak(NamedTuple):
    """A local maximum: its bin, its height, and how sure that is."""

    t: int
    height: float
    certainty: float


class RunningPeaks:
    """What ``scipy.signal.find_peaks(h, distance=...)`` finds, with a zero before and behind h.

    Higher peaks come first, and leave out what is nearer than the distance. So a peak stays if no
    higher one near it does; it is decided when all that are near are known, and those of them that
    are higher are decided. (Of two of the same height the later one comes first.)

    Parameters
    ----------
    distance : int
        Least distance of two peaks, in bins.
    """

    def __init__(self, distance: int) -> None:
        self._distance = distance
        self._begin()

    def _begin(self) -> None:
        self._last, self._rose, self._since, self._sure = 0.0, False, 0, 0.0
        self._t = -1
        self._open: list[Peak] = []  # in the order of time
        self._kept: list[Peak] = []  # those that may still leave others out

    def add(self, t: int, height: float, certainty: float = 1.0) -> list[Peak]:
        """The next bin; returns the peaks that are decided by it, in the order of time."""
        if height > self._last:
            self._rose, self._since, self._sure = True, t, certainty
        elif height < self._last and self._rose:
            middle = (self._since + t - 1) // 2  # of a plateau
            self._open.append(Peak(middle, self._last, self._sure))
            self._rose = False
        self._last, self._t = height, t
        return self._decided(self._since if self._rose else t) if self._open else []

    def end(self) -> list[Peak]:
        """The line is over; returns the peaks that are left, and begins anew."""
        found = self.add(self._t + 1, 0.0)
        found += self._decided(None)
        self._begin()
        return found

    def _decided(self, known: int | None) -> list[Peak]:
        """Decide what can be decided; every maximum before bin ``known`` is there (None: all)."""
        found: list[Peak] = []
        left: list[Peak] = []
        near = self._distance
        for peak in sorted(self._open, key=lambda peak: (peak.height, peak.t), reverse=True):
            if any(abs(peak.t - other.t) < near for other in self._kept):
                continue
            waits = known is not None and peak.t + near > known
            if waits or any(abs(peak.t - other.t) < near for other in left):
                left.append(peak)
            else:
                self._kept.append(peak)
                found.append(peak)
        self._open = sorted(left)
        oldest = self._open[0].t if self._open else (known if known is not None else self._t)
        self._kept = [peak for peak in self._kept if peak.t > oldest - near]
        return sorted(found)
