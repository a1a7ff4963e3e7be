"""Hierarchical alternating least squares (the paper's section III-A)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from motifold.kernels.hals import sweep_columns, sweep_in_blocks, sweep_in_time
from motifold.parallel import Workers
from motifold.problem import Array, Penalties
from motifold.solvers.base import Inner, SolverOptions
from motifold.statistics import HStatistics, WStatistics

# Of a factor with independent rows: entries and rows that one thread sweeps at a time, and columns
# between two gradients by a matrix product.
_ENTRIES, _LINE, _COLUMNS = 2**15, 1024, 12
# Time bins of a tile: so many tiles where they are not too short or too long for a task.
_TILES, _SHORTEST, _LONGEST = 16, 2048, 8192


class HALS(SolverOptions):
    """Coordinate descent: each entry in turn takes its best nonnegative value.

    Parameters
    ----------
    order : {"entries", "blocks"}
        Order of the entries of H. ``"entries"``: for each component, for each time bin (the
        variant of the paper's experiments). ``"blocks"``: for each component, every L-th time
        bin together, which do not interact (the paper's other variant).

    Examples
    --------
    >>> from motifold import CNMF, HALS
    >>> model = CNMF(n_components=2, n_lags=3, solver=HALS(order="blocks"))
    """

    def __init__(self, order: Literal["entries", "blocks"] = "entries") -> None:
        self.order = order

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
    ) -> None:
        """For each k, for each t: h ← max(0, h − g / A_kk)."""
        if self.order not in ("entries", "blocks"):
            raise ValueError(f"HALS: order must be 'entries' or 'blocks', not {self.order!r}.")
        l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
        C, A, E = statistics.C, statistics.A, statistics.E
        L = len(E)
        workers, layout = statistics.workers, statistics.padding.layout
        if L == 1:  # no lags: the rows of H are as independent as those of W
            _sweep_rows(H, C, np.ascontiguousarray(A[:, 0]), l1, l2, inner, workers)
            return
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


def _sweep_rows(
    F: Array, right: Array, gram: Array, l1: Array, l2: Array, inner: Inner, workers: Workers
) -> None:
    """Sweep a factor whose rows are independent: min ½f'Gf − r'f for each (changes F).

    F, right (rows, M), gram (M, M), l1, l2 (M,). A few columns at a time: their gradient comes
    from one matrix product, and only what happens among them from the kernel.
    """
    M = F.shape[1]
    step = min(max(16, _ENTRIES // M), _LINE)
    starts = range(0, len(F), step)
    chunks = [(F[i : i + step].T.copy(), right[i : i + step].T.copy()) for i in starts]

    def sweep_chunk(chunk: tuple[Array, Array]) -> float:
        lines, aims = chunk
        moved = 0.0
        for p in range(0, M, _COLUMNS):
            columns = slice(p, p + _COLUMNS)
            gradient = gram[columns] @ lines
            gradient -= aims[columns]
            block = np.ascontiguousarray(gram[columns, columns])
            moved += sweep_columns(lines[columns], gradient, block, l1[columns], l2[columns])
        return moved

    inner.repeat(lambda: sum(workers.map(sweep_chunk, chunks)))
    for i, (lines, _) in zip(starts, chunks, strict=True):
        F[i : i + step] = lines.T
