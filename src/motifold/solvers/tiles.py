"""H swept by tiles in two phases: how it is cut, and the call that all threads make together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from motifold.kernels.tiles import ROUND, sweep_tiles
from motifold.model import Array, Penalties
from motifold.solvers.base import HStatistics, Inner

# Tiles: so many where they are not too short (for the sake of seams and calls) or too long (for the
# cache); at least so many lengths of a motif (three less three bins, or seams would meet in g).
_TILES, _SHORTEST, _LONGEST, _MOTIFS = 256, 512, 1024, 4
# What a thread takes at a time, and seconds of a sweep per entry of H and tap: a bound from above,
# since entries that stay at zero cost next to nothing.
_ITEMS, _SECONDS = 256, 1e-10
# A sweep that takes less is not worth cutting: one tile, which is the published order.
_WORTH_TILES = 1e-3


@dataclass(frozen=True)
class Tiles:
    """A cut of the time axis, which depends on the lengths of the segments, on L and K only.

    Attributes
    ----------
    table : (n, 7), as in ``kernels.tiles.sweep_tiles``
    items : (m + 1,), runs of tiles of about equal length
    n_rows : of memory for the gradient, with what stands around tiles
    """

    table: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    n_rows: int


def seconds_of_sweep(T: int, L: int, K: int) -> float:
    """About, of one thread."""
    return _SECONDS * T * K * (2 * L - 1) * K


def tile_length(T: int, L: int, K: int) -> int:
    """Bins of a tile, at least; segments that are not twice as long are one tile each."""
    if seconds_of_sweep(T, L, K) < _WORTH_TILES:
        return T
    return max(_MOTIFS * L, min(max(T // _TILES, _SHORTEST), _LONGEST))


def cut(bounds: npt.NDArray[np.int64], L: int, K: int, length: int | None = None) -> Tiles:
    """Tiles of every segment, each at least ``length`` long, or the segment if it is shorter.

    Without ``length`` it is ``tile_length``. At its end a tile has a seam of L−1 bins, unless it is
    the last of its segment.
    """
    T = int(bounds[-1, 2])
    lengths = bounds[:, 2] - bounds[:, 0]
    counts = np.maximum(1, lengths // (tile_length(T, L, K) if length is None else length))
    segment = np.repeat(np.arange(len(bounds)), counts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts, stops_active, stops = bounds[segment].T
    begins = starts + lengths[segment] * number // counts[segment]
    ends = starts + lengths[segment] * (number + 1) // counts[segment]
    seams = np.where(ends < stops, ends - L + 1, ends)
    between = L - 1 + -(-ROUND // K)
    shifts = L - 1 + between * np.arange(len(segment))
    table = np.column_stack([begins, seams, ends, starts, stops_active, stops, shifts])
    m = min(_ITEMS, len(table))
    items = np.searchsorted(ends, T * np.arange(m + 1) // m, side="left")
    items[0], items[-1] = 0, len(table)
    return Tiles(table, np.unique(items), int(T + shifts[-1] + between))


_last: tuple[npt.NDArray[np.int64], int, int, Tiles] | None = None


def _kept_cut(bounds: npt.NDArray[np.int64], L: int, K: int) -> Tiles:
    """The cut, made once for the many iterations on the same problem."""
    global _last
    last = _last
    if last is None or last[0] is not bounds or last[1:3] != (L, K):
        _last = last = bounds, L, K, cut(bounds, L, K)
    return last[3]


def sweep(
    H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner, gradient: Array
) -> None:
    """Sweep H as ``inner`` says (changes H, and ``gradient``, A∗H − C, with it)."""
    (T, K), L = H.shape, len(statistics.E)
    tiles = _kept_cut(statistics.bounds, L, K)
    l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
    m = len(tiles.items) - 1
    workers = statistics.workers
    memory = workers.buffer("tiles", (tiles.n_rows * K,), H.dtype)
    flags = np.zeros(m + 2, dtype=np.int64)
    moved = np.zeros((inner.max_sweeps, 2, m))
    grams = np.ascontiguousarray(statistics.A), np.ascontiguousarray(statistics.E)
    args = H, gradient, memory, *grams, l1, l2, tiles.table, tiles.items, flags, moved, inner.shrink
    work = inner.max_sweeps * seconds_of_sweep(T, L, K)
    workers.together(lambda threads: sweep_tiles(*args, threads), work)


def some_of(tiles: Tiles, first: int, last: int, L: int, K: int) -> Tiles:
    """Tiles first to last by themselves, rows counted from where the first begins."""
    table = tiles.table[first:last].copy()
    origin, T = table[0, 0], int(table[-1, 2] - table[0, 0])
    table[:, :6] -= origin
    between = L - 1 + -(-ROUND // K)
    table[:, 6] = L - 1 + between * np.arange(len(table))
    m = min(_ITEMS, len(table))
    items = np.searchsorted(table[:, 2], T * np.arange(m + 1) // m, side="left")
    items[0], items[-1] = 0, len(table)
    return Tiles(table, np.unique(items), int(T + table[-1, 6] + between))


def sweep_some(
    H: Array, statistics: HStatistics, penalties: Penalties, gradient: Array, tiles: Tiles
) -> tuple[float, Array]:
    """Sweep once over tiles whose neighbours are elsewhere (changes H, and ``gradient``).

    Of the seam behind the last of them nothing is swept. Returns the squared length of the move,
    and what has been added to the gradient of the L−1 rows before the first.
    """
    (T, K), L = H.shape, len(statistics.E)
    l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
    m, workers = len(tiles.items) - 1, statistics.workers
    memory = workers.buffer("tiles", (tiles.n_rows * K,), H.dtype)
    flags, moved = np.zeros(m + 2, dtype=np.int64), np.zeros((1, 2, m))
    grams = np.ascontiguousarray(statistics.A), np.ascontiguousarray(statistics.E)
    args = H, gradient, memory, *grams, l1, l2, tiles.table, tiles.items, flags, moved, 0.0
    workers.together(lambda threads: sweep_tiles(*args, threads), seconds_of_sweep(T, L, K))
    return float(moved.sum()), memory[: (L - 1) * K].reshape(L - 1, K).copy()
