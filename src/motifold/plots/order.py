"""Whether features have an order of their own, which a picture should keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_RUNS, _RUN = 20, 200  # runs of rows that are looked at, and rows of each
_PAIRS = 1000
_FEW_FEATURES = 8  # with so few, chance makes neighbours alike
_ALIKE, _MORE_ALIKE = 0.5, 0.2


@dataclass(frozen=True)
class Likeness:
    """Median correlation over time of neighbouring features, and of pairs taken at random."""

    neighbours: float
    others: float

    @property
    def shows_an_order(self) -> bool:
        """Neighbours are strongly correlated, and clearly more so than others.

        So are the frequencies of a spectrogram (0.7 to 0.9 against 0.1 to 0.4), and not neurons in
        the order in which they were found (about 0 for both).
        """
        return self.neighbours >= _ALIKE and self.neighbours - self.others >= _MORE_ALIKE


def likeness(X: npt.NDArray[Any]) -> Likeness:
    """How alike the features of X (T, N) are; NaN does not count, constant features neither."""
    step = max(_RUN, len(X) // _RUNS)
    runs = [X[a : a + _RUN] for a in range(0, len(X), step)]
    rows = np.concatenate(runs).astype(np.float64)
    missing = np.isnan(rows)
    counts = np.maximum((~missing).sum(axis=0), 1)
    rows[missing] = 0
    rows -= rows.sum(axis=0) / counts
    rows[missing] = 0
    norms = np.sqrt(np.einsum("tn,tn->n", rows, rows))
    alive = np.flatnonzero(norms > 0)
    if len(alive) < _FEW_FEATURES:
        return Likeness(0.0, 0.0)
    rows = rows[:, alive] / norms[alive]
    near = np.einsum("tn,tn->n", rows[:, 1:], rows[:, :-1])
    pairs = np.random.default_rng(0).integers(len(alive), size=(_PAIRS, 2))
    pairs = pairs[np.abs(pairs[:, 0] - pairs[:, 1]) > 1]
    far = np.einsum("tn,tn->n", rows[:, pairs[:, 0]], rows[:, pairs[:, 1]])
    return Likeness(float(np.median(near)), float(np.median(far)))
