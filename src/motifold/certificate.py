"""The KKT certificate: how far the factors are from a stationary point, free of their scale."""

from __future__ import annotations

import numpy as np

from motifold.kernels.residuals import kkt_sums_H, kkt_sums_W
from motifold.problem import Array, Penalties
from motifold.statistics import HStatistics, WStatistics


def kkt_residual_W(penalties: Penalties, W: Array, statistics: WStatistics) -> float:
    """‖min(W, ∇_W / diag)‖ / ‖W‖ with diag = B_pp + l2; W is (N, L, K)."""
    flat = W.reshape(statistics.P.shape)
    gradient = statistics.gradient(flat)
    diagonal = np.diagonal(statistics.B).copy()
    return _ratio(*kkt_sums_W(flat, gradient, diagonal, penalties.l1_W, penalties.l2_W))


def kkt_residual_H(
    penalties: Penalties, H: Array, statistics: HStatistics, gradient: Array | None = None
) -> float:
    """‖min(H, ∇_H / diag)‖ / ‖H‖ with diag the curvature + l2; gradient is A∗H − C."""
    if gradient is None:
        gradient = statistics.gradient(H)
    A, E, bounds = statistics.A, statistics.E, statistics.bounds
    return _ratio(*kkt_sums_H(H, gradient, A, E, bounds, penalties.l1_H, penalties.l2_H))


def _ratio(above: float, below: float) -> float:
    if above == 0:
        return 0.0
    return float(np.sqrt(above / below)) if below > 0 else np.inf
