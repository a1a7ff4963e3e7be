"""Which bins of a motif's activations are its occurrences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import find_peaks

from motifold.data import Segments
from motifold.findings.overlap import Floats

THRESHOLD = 0.3  # least strength, in units of the typical one, where nothing else is known
# Below this correlation of a motif with itself, moved, two occurrences are told apart.
_APART = 0.5
# Nearer than this many bins they are one, however sharp the motif: jitter of one bin to either
# side splits an occurrence over three.
_LEAST_BINS = 3


def default_refractory(motif: Floats) -> int:
    """Least distance of two events, in bins: where the motif no longer resembles itself.

    The first lag at which the correlation of the motif (L, N) with itself, moved by it, is below
    one half, and 3 at least. Lags that are empty change nothing.
    """
    L = len(motif)
    own = float(np.vdot(motif, motif))
    for lag in range(1, L):
        if np.vdot(motif[lag:], motif[: L - lag]) < _APART * own:
            return max(lag, _LEAST_BINS)
    return max(L, _LEAST_BINS) if own > 0 else _LEAST_BINS


@dataclass(frozen=True)
class Peaks:
    """The rule by which peaks of activations are events.

    Attributes
    ----------
    segments : of the activations
    distance : least distance of two, in bins
    threshold : least strength, in units of the typical one
    reach : lags that a motif needs to be whole
    """

    segments: Segments
    distance: int
    threshold: float
    reach: int

    def of(self, h: Floats, *, partial: bool) -> list[tuple[int, bool]]:
        """Rows of h (T,) that are events, in order, and whether their motif is cut off.

        Those that are cut off rest on a few lags and may be huge: they neither set the threshold
        nor shadow another, and are told only if ``partial``.
        """
        whole = self.segments.whole(self.reach)
        places = self._places(np.where(whole, h, 0))
        cut = self._places(np.where(whole, 0, h))
        level = typical(h[places] if h[places].any() else h[cut])

        def strong(rows: npt.NDArray[np.intp]) -> list[int]:
            return rows[(h[rows] > 0) & (h[rows] >= self.threshold * level)].tolist()

        events = strong(places)
        found = [(t, False) for t in events]
        if partial:  # what lies beside a whole one is a part of it
            found += [(t, True) for t in strong(cut) if not self._near(t, events)]
        return sorted(found)

    def _places(self, h: Floats) -> npt.NDArray[np.intp]:
        """Local maxima that are the largest within the distance, segment by segment."""
        found = []
        for start, stop in self.segments:
            padded = np.concatenate([[0.0], h[start:stop], [0.0]])  # the ends may be peaks
            found.append(start + find_peaks(padded, distance=self.distance)[0] - 1)
        return np.concatenate(found).astype(np.intp)

    def _near(self, t: int, events: Iterable[int]) -> bool:
        """Whether an event of the same segment is nearer than the distance."""
        ids = self.segments.ids
        return any(abs(t - other) < self.distance and ids[t] == ids[other] for other in events)


def typical(strengths: Floats) -> float:
    """Σh²/Σh: the mean weighted by the strengths themselves, which small ones hardly change."""
    total = float(strengths.sum())
    return float(strengths @ strengths) / total if total > 0 else 0.0
