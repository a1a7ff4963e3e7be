"""How sure early activations are: as a rehearsal says at first, then as the stream itself shows."""

from __future__ import annotations

import numpy as np

from motifold.model import Array

# What a rehearsal counts for, in windows of L bins: the stream's own data soon weigh more.
_WORTH = 10


class Calibration:
    """1 − (error/size)² of activations that are given out early, as far as it is known by then.

    Bins stay open after they were given out. What they settle at is compared with what was said of
    them: real data is less orderly than the model, and a rehearsal on made-up data alone would make
    very early values look too good. What is told of a row depends on the rows before it only.

    Parameters
    ----------
    early, final : (bins, K), of the rehearsal
    L : lags of the motifs
    unknown : (K,), what is told of a motif that has not occurred
    """

    def __init__(self, early: Array, final: Array, L: int, unknown: Array) -> None:
        weight = _WORTH * L / max(len(final), 1)
        self._left = weight * np.square(early - final).sum(axis=0)
        self._size = weight * np.square(final).sum(axis=0)
        self._open = early[:0]  # given out, and not settled yet
        self._unknown = unknown

    def begin(self) -> None:
        """A segment begins: what is open will not settle."""
        self._open = self._open[:0]

    def note(self, early: Array, settled: Array) -> Array:
        """What was given out and what has settled, (rows, K) each, the last of both together.

        Returns how sure each row of ``early`` is.
        """
        given = np.concatenate([self._open, early])
        n, self._open = len(settled), given[len(settled) :].copy()
        left = _sums(self._left, np.square(given[:n] - settled))
        size = _sums(self._size, np.square(settled))
        self._left, self._size = left[-1].copy(), size[-1].copy()
        known = np.clip(np.arange(1, len(early) + 1) - len(early) + n, 0, n)
        right = np.clip(1 - left / np.where(size > 0, size, 1), 0, 1)
        sure: Array = np.where(size > 0, right, self._unknown)[known]
        return sure


def _sums(before: Array, terms: Array) -> Array:
    """Those before and after each term, added one by one: the same however they are handed over."""
    return np.cumsum(np.concatenate([before[None], terms]), axis=0)
