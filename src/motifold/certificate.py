"""The KKT certificate: how far the factors are from a stationary point, free of their scale."""

from __future__ import annotations

import numpy as np

from motifold.problem import Array, Problem
from motifold.statistics import HStatistics, WStatistics


def kkt_residual_W(problem: Problem, W: Array, statistics: WStatistics) -> float:
    """‖min(W, ∇_W / diag)‖ / ‖W‖ with diag = B_pp + l2; W is (N, L, K)."""
    L = problem.L
    penalties = problem.penalties
    l1, l2 = np.tile(penalties.l1_W, L), np.tile(penalties.l2_W, L)
    flat = W.reshape(statistics.P.shape)
    gradient = statistics.gradient(flat) + l1 + l2 * flat
    return _residual(flat, gradient, np.diagonal(statistics.B) + l2)


def kkt_residual_H(
    problem: Problem, H: Array, statistics: HStatistics, gradient: Array | None = None
) -> float:
    """‖min(H, ∇_H / diag)‖ / ‖H‖ with diag the curvature + l2; gradient is A∗H − C."""
    penalties = problem.penalties
    if gradient is None:
        gradient = statistics.gradient(H)
    gradient = gradient + penalties.l1_H + penalties.l2_H * H
    diagonal = statistics.curvature() + penalties.l2_H
    free = problem.allowed
    return _residual(H[free], gradient[free], diagonal[free])


def _residual(F: Array, gradient: Array, diagonal: Array) -> float:
    """‖min(F, gradient/diagonal)‖ / ‖F‖; a flat direction counts only if the gradient is > 0."""
    curved = diagonal > 0
    step = np.divide(gradient, diagonal, out=np.zeros_like(gradient), where=curved)
    step[~np.broadcast_to(curved, F.shape) & (gradient > 0)] = np.inf
    numerator = float(np.linalg.norm(np.minimum(F, step)))
    if numerator == 0:
        return 0.0
    denominator = float(np.linalg.norm(F))
    return numerator / denominator if denominator > 0 else np.inf
