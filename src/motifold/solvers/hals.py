"""Hierarchical alternating least squares (the paper's section III-A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from motifold.kernels.hals import sweep_in_blocks, sweep_in_time, sweep_W, sweep_W_together
from motifold.parallel import Workers
from motifold.problem import Array, Penalties
from motifold.solvers.base import Inner, SolverOptions
from motifold.statistics import HStatistics, WStatistics

# Entries of a factor with independent rows that one thread sweeps at a time.
_ENTRIES = 2**15
# Rows up to this length are swept sixteen at a time.
_SHORT = 48


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
        weights = penalties.l1_W, penalties.l2_W
        _sweep_rows(flat, gradient, statistics.B, weights, inner, statistics.workers)

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> Array:
        """For each k, for each t: h ← max(0, h − g / A_kk)."""
        if self.order not in ("entries", "blocks"):
            raise ValueError(f"HALS: order must be 'entries' or 'blocks', not {self.order!r}.")
        gradient = statistics.gradient(H)
        if statistics.E.shape[0] == 1:  # no lags: the rows of H are as independent as those of W
            gram = np.ascontiguousarray(statistics.A[:, 0])
            weights = penalties.l1_H, penalties.l2_H
            _sweep_rows(H, gradient, gram, weights, inner, statistics.workers)
            return gradient
        sweep_row = sweep_in_time if self.order == "entries" else sweep_in_blocks
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


def _sweep_rows(
    F: Array,
    gradient: Array,
    gram: Array,
    weights: tuple[Array, Array],
    inner: Inner,
    workers: Workers,
) -> None:
    """Sweep a factor whose rows are independent, given its Gram (changes F, gradient)."""
    l1, l2 = (weight.astype(F.dtype) for weight in weights)
    step = max(1, _ENTRIES // F.shape[1])
    chunks = [slice(n, n + step) for n in range(0, len(F), step)]
    kernel = sweep_W_together if F.shape[1] <= _SHORT else sweep_W

    def sweep_chunk(rows: slice) -> float:
        return kernel(F[rows], gradient[rows], gram, l1, l2)

    first = 0.0
    for sweep in range(1, inner.max_sweeps + 1):
        moved = sum(workers.map(sweep_chunk, chunks))
        first = first or moved
        if inner.enough(sweep, moved, first):
            break


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
