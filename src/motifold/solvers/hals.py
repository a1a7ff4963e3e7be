"""Hierarchical alternating least squares (the paper's section III-A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from motifold.kernels.hals import sweep_in_blocks, sweep_in_time, sweep_W
from motifold.problem import Array, Penalties
from motifold.solvers.base import Inner, SolverOptions
from motifold.statistics import HStatistics, WStatistics

# Rows of W that one thread sweeps at a time.
_ROWS = 64


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
        flat = W.reshape(statistics.P.shape)
        gradient = statistics.gradient(flat)
        l1, l2 = (weight.astype(W.dtype) for weight in (penalties.l1_W, penalties.l2_W))
        first = 0.0
        chunks = [slice(n, n + _ROWS) for n in range(0, len(flat), _ROWS)]

        def sweep_rows(rows: slice) -> float:
            return sweep_W(flat[rows], gradient[rows], statistics.B, l1, l2)

        for sweep in range(1, inner.max_sweeps + 1):
            moved = sum(statistics.workers.map(sweep_rows, chunks))
            first = first or moved
            if inner.enough(sweep, moved, first):
                break

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> Array:
        """For each k, for each t: h ← max(0, h − g / A_kk)."""
        if self.order not in ("entries", "blocks"):
            raise ValueError(f"HALS: order must be 'entries' or 'blocks', not {self.order!r}.")
        sweep_row = sweep_in_time if self.order == "entries" else sweep_in_blocks
        gradient = statistics.gradient(H)
        l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
        first = 0.0
        for sweep in range(1, inner.max_sweeps + 1):
            moved = 0.0
            for k in range(H.shape[1]):
                moved += _sweep_component(sweep_row, H, gradient, statistics, k, l1[k], l2[k])
            first = first or moved
            if inner.enough(sweep, moved, first):
                break
        return gradient


def _sweep_component(
    sweep_row: Callable[..., float],
    H: Array,
    gradient: Array,
    statistics: HStatistics,
    k: int,
    l1: np.floating,
    l2: np.floating,
) -> float:
    """One sweep over row k of H (changes H, gradient); returns the squared length of the move.

    While row k is swept only its own gradient is needed. What its moves mean for the other rows is
    added afterwards, for all times at once.
    """
    h, g = H[:, k].copy(), gradient[:, k].copy()
    moves = np.zeros_like(h)
    L = statistics.E.shape[0]
    a = np.ascontiguousarray(statistics.A[k, L - 1 :, k])
    e = np.ascontiguousarray(statistics.E[:, k, :, k])
    moved = sweep_row(h, g, moves, a, e, statistics.bounds, l1, l2)
    if moved > 0:
        H[:, k] = h
        statistics.add_correlation(gradient, moves, k)
    return float(moved)
