"""Hierarchical alternating least squares (the paper's section III-A)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from motifold.kernels.hals import sweep_in_blocks, sweep_in_time, sweep_rows
from motifold.model import Array, Penalties
from motifold.solvers import tiles
from motifold.solvers.base import HStatistics, Inner, SolverOptions, Workers, WStatistics

_ORDERS = ("entries", "blocks", "tiles")
# Of a factor with independent rows: chunks for the threads' sake, and rows (at least, at most) and
# entries of one; columns between two gradients by a matrix product.
_CHUNKS, _LEAST, _LINE, _ENTRIES, _COLUMNS = 32, 32, 1024, 2**15, 12
# Seconds of such a sweep, about: for each multiplication, for each entry.
_SECONDS, _SECONDS_OF_ENTRY = 3.5e-11, 1.5e-9
# Time bins of a tile: so many tiles where they are not too short or too long for a task.
_TILES, _SHORTEST, _LONGEST = 16, 2048, 8192


class HALS(SolverOptions):
    """Coordinate descent: each entry in turn takes its best nonnegative value.

    Parameters
    ----------
    order : {"entries", "blocks", "tiles"}
        Order of the entries of H. ``"entries"``: for each component, for each time bin (the
        variant of the paper's experiments). ``"blocks"``: for each component, every L-th time
        bin together, which do not interact (the paper's other variant). ``"tiles"``: time is cut
        into tiles, each with a seam of L − 1 bins at its end; first all tiles but their seams,
        then all seams, in each for each component, for each time bin. Tiles do not wait for each
        other, so this order uses many processors best. Their length follows from that of the
        recording and from L, never from the number of threads.

    Examples
    --------
    >>> from motifold import CNMF, HALS
    >>> model = CNMF(n_components=2, n_lags=3, solver=HALS(order="blocks"))
    """

    def __init__(self, order: Literal["entries", "blocks", "tiles"] = "entries") -> None:
        self.order = order

    def accelerated(self) -> HALS:
        """The same by tiles, which many processors can sweep; the paper's blocks stay."""
        return HALS("tiles") if self.order == "entries" else self

    def update_W(
        self, W: Array, statistics: WStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """For each k, for each lag: w_p ← max(0, w_p − g_p / B_pp)."""
        N, L, K = W.shape
        # In the order of the sweep: component by component.
        by_component = np.arange(L * K).reshape(L, K).T.ravel()
        rows = W.transpose(0, 2, 1).reshape(N, L * K)
        B = np.ascontiguousarray(statistics.B[np.ix_(by_component, by_component)])
        l1, l2 = (np.repeat(w, L).astype(W.dtype) for w in (penalties.l1_W, penalties.l2_W))
        _sweep_rows(rows, statistics.P[:, by_component], B, l1, l2, inner, statistics.workers)
        W[...] = rows.reshape(N, K, L).transpose(0, 2, 1)

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> Array | None:
        """For each k, for each t: h ← max(0, h − g / A_kk).

        In the order of tiles the gradient is kept while H moves, and returned: A∗H − C at the new
        H, (T, K). In the other orders there is none to return.
        """
        if self.order not in _ORDERS:
            raise ValueError(f"HALS: order must be one of {_ORDERS}, not {self.order!r}.")
        l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
        C, A, E = statistics.C, statistics.A, statistics.E
        L = len(E)
        workers, layout = statistics.workers, statistics.padding.layout
        if L == 1:  # no lags: the rows of H are as independent as those of W
            _sweep_rows(H, C, np.ascontiguousarray(A[:, 0]), l1, l2, inner, workers)
            return None
        if self.order == "tiles":
            # By a product, anew in every iteration: rounding does not pile up.
            gradient, rows = statistics.gradient(H), np.ascontiguousarray(H)
            tiles.sweep(rows, statistics, penalties, inner, gradient)
            if rows is not H:
                H[...] = rows
            return gradient
        T, K = H.shape
        sweep_row, tile = sweep_in_blocks, T
        if self.order == "entries":
            sweep_row = sweep_in_time
            tile = max(2 * L - 2, min(max(T // _TILES, _SHORTEST), _LONGEST))
        rows = statistics.padding.padded(H)

        def sweep_tile(k: int, i: int) -> float:
            t0, t1 = i * tile, (i + 1) * tile
            return float(sweep_row(rows, C, A, E, layout, k, l1[k], l2[k], t0, t1))

        inner.repeat(lambda: workers.wavefront(sweep_tile, K, -(-T // tile)))
        statistics.padding.unpad(rows, H)
        return None


def _sweep_rows(
    F: Array, right: Array, gram: Array, l1: Array, l2: Array, inner: Inner, workers: Workers
) -> None:
    """Sweep a factor whose rows are independent: min ½f'Gf − r'f for each (changes F).

    F, right (rows, M), gram (M, M), l1, l2 (M,). A few columns at a time: their gradient comes
    from one matrix product, and only what happens among them from the kernel.
    """
    n, M = F.shape
    in_order = np.ascontiguousarray(F)
    rows = min(max(_LEAST, min(_ENTRIES // M, -(-n // _CHUNKS))), _LINE)
    m = -(-n // rows)
    aims, gram = np.ascontiguousarray(right), np.ascontiguousarray(gram)
    lines = workers.buffer("lines", (m, 2, M, rows), F.dtype)
    flags, moved = np.zeros(m + 2, dtype=np.int64), np.zeros((inner.max_sweeps, m))
    args = in_order, aims, gram, l1, l2, _COLUMNS, lines, flags, moved, inner.shrink
    work = inner.max_sweeps * n * M * (M * _SECONDS + _SECONDS_OF_ENTRY)
    workers.together(lambda threads: sweep_rows(*args, threads), work)
    if in_order is not F:
        F[...] = in_order
