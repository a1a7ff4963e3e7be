"""Hierarchical alternating least squares (the paper's section III-A)."""

from __future__ import annotations

from typing import Literal

from motifold.kernels.hals import sweep_H, sweep_W
from motifold.problem import Array, Penalties
from motifold.solvers.base import Inner, SolverOptions
from motifold.statistics import HStatistics, WStatistics


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
        for sweep in range(1, inner.max_sweeps + 1):
            moved = sweep_W(flat, gradient, statistics.B, l1, l2)
            first = first or moved
            if inner.enough(sweep, moved, first):
                break

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> Array:
        """For each k, for each t: h ← max(0, h − g / A_kk)."""
        if self.order not in ("entries", "blocks"):
            raise ValueError(f"HALS: order must be 'entries' or 'blocks', not {self.order!r}.")
        stride = 1 if self.order == "entries" else statistics.E.shape[0]
        gradient = statistics.gradient(H)
        l1, l2 = (weight.astype(H.dtype) for weight in (penalties.l1_H, penalties.l2_H))
        A, E, bounds = statistics.A, statistics.E, statistics.bounds
        first = 0.0
        for sweep in range(1, inner.max_sweeps + 1):
            moved = sweep_H(H, gradient, A, E, bounds, l1, l2, stride)
            first = first or moved
            if inner.enough(sweep, moved, first):
                break
        return gradient
