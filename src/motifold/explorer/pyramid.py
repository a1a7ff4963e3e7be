"""A long table at two resolutions, so that any stretch of it can be drawn at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.plots.decimate import bucket_edges, pool

Floats = npt.NDArray[Any]

_READ_AT_ONCE = 8_000_000  # entries that a picture may read from the table itself: some 50 ms
_COARSE_ENTRIES = 30_000_000  # of the coarse table, in memory
_LEAST_STEP = 16
_BLOCK_ENTRIES = 4_000_000  # read at a time where all of it is read


@dataclass(frozen=True)
class Pyramid:
    """Rows (T, N) that may lie on disk, and the largest of every ``step`` of them in memory.

    A short stretch is read from the rows, a long one from ``coarse``; which is None where all
    rows can be read for every picture. Maxima are kept throughout: no short event gets lost.
    """

    rows: Any
    step: int
    coarse: Floats | None
    has_nan: bool

    @classmethod
    def of(cls, rows: Any, *, at_once: int = _READ_AT_ONCE) -> Pyramid:
        """Read all rows once, a block at a time."""
        T, N = rows.shape
        step = max(_LEAST_STEP, -(-T * N // _COARSE_ENTRIES))
        block = step * max(1, _BLOCK_ENTRIES // (step * N))
        levels, has_nan = [], False
        for a in range(0, T, block):
            values = np.asarray(rows[a : a + block])
            level = _maxima(values, step, np.maximum)
            if np.isnan(level).any():  # maximum passes NaN on, fmax does not
                has_nan, level = True, _maxima(values, step, np.fmax)
            if at_once < T * N:
                levels.append(level)
        return cls(rows, step, np.concatenate(levels) if levels else None, has_nan)

    def columns(self, a: int, b: int, at_most: int, at_once: int = _READ_AT_ONCE) -> Columns:
        """Bins a to b as at most so many columns, each the largest of its bins."""
        N = self.rows.shape[1]
        if self.coarse is None or (b - a) * N <= at_once:
            edges = bucket_edges(b - a, at_most)
            return Columns(a + edges, pool(np.asarray(self.rows[a:b]), edges))
        first, last = a // self.step, -(-b // self.step)
        edges = bucket_edges(last - first, at_most)
        values = pool(self.coarse[first:last], edges)
        return Columns(np.minimum((first + edges) * self.step, len(self.rows)), values)


@dataclass(frozen=True)
class Columns:
    """What a picture shows of some bins: ``values`` (columns, N), and where each column starts.

    ``edges`` (columns + 1,) are bins; of a long stretch they may reach beyond it by a few.
    """

    edges: npt.NDArray[np.intp]
    values: Floats


def _maxima(values: Floats, step: int, largest: np.ufunc) -> Floats:
    """The largest of every ``step`` rows, the last of which may be fewer."""
    whole = len(values) // step * step
    found = largest.reduce(values[:whole].reshape(-1, step, values.shape[1]), axis=1)
    if whole == len(values):
        return found
    return np.concatenate([found, largest.reduce(values[whole:], axis=0, keepdims=True)])
