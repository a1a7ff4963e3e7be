"""Marks of the events over the activations, and which of them a click is meant for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.explorer.picture import LANE
from motifold.explorer.session import Session

_MAX_COLUMNS = 1200  # beyond one mark to a column and lane nobody sees more
_NEAR = 0.02  # share of the view within which a click finds an event


@dataclass(frozen=True)
class Marks:
    """Events in view: place on both axes, motif that they count as, number among its events."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    motif: npt.NDArray[np.intp]
    number: npt.NDArray[np.intp]
    verdict: list[str]  # "accepted", "rejected" or ""

    def __len__(self) -> int:
        return len(self.x)


def marks_in(session: Session, a: int, b: int) -> Marks:
    """Of the events in bins a to b; where they crowd, the strongest of each column."""
    shown, position = session.annotations.shown, session.subject.clock.position
    x, y, motif, number, verdict = [], [], [], [], []
    for i, k in enumerate(shown):
        found = session.occurrences(k)
        first, last = np.searchsorted(found.bins, [a, b])
        chosen = _thinned(found.bins[first:last], found.strengths[first:last], a, b) + first
        ceilings = session.subject.ceilings[found.motifs[chosen]]
        shares = np.clip(found.strengths[chosen] / ceilings, 0, 1)
        x.append((found.bins[chosen] + 0.5) * position(1))
        y.append(len(shown) - 1 - i + LANE * shares)
        motif.append(np.full(len(chosen), k))
        number.append(chosen)
        verdict += [found.verdicts[j] or "" for j in chosen]
    empty: list[Any] = [np.empty(0)]
    return Marks(
        np.concatenate(x or empty),
        np.concatenate(y or empty),
        np.concatenate(motif or empty).astype(np.intp),
        np.concatenate(number or empty).astype(np.intp),
        verdict,
    )


def _thinned(bins: Any, strengths: Any, a: int, b: int) -> npt.NDArray[np.intp]:
    """Positions of the events to mark."""
    if len(bins) <= _MAX_COLUMNS:
        return np.arange(len(bins))
    column = (bins - a) * _MAX_COLUMNS // (b - a)
    strongest = np.lexsort((-strengths, column))
    return np.sort(strongest[np.unique(column[strongest], return_index=True)[1]])


def clicked(marks: Marks, x: float, y: float, width: float, lanes: int) -> tuple[int, int] | None:
    """Motif and number of the event that a click at (x, y) is meant for; None where none is near.

    The lane decides on the motif, time on the event. ``width`` is that of the view.
    """
    lane = int(np.floor(y))
    if not 0 <= lane < lanes or not len(marks):
        return None
    inside = np.flatnonzero(np.floor(np.minimum(marks.y, lanes - 1e-9)).astype(int) == lane)
    if not len(inside):
        return None
    best = inside[np.argmin(np.abs(marks.x[inside] - x))]
    if abs(marks.x[best] - x) > _NEAR * width:
        return None
    return int(marks.motif[best]), int(marks.number[best])
