"""The motifs that are learnt, among fixed ones: their update, and their KKT residual."""

from __future__ import annotations

import numpy as np

from motifold.kernels.residuals import kkt_sums_W
from motifold.model import Array, Model
from motifold.model.certificate import kkt_ratio
from motifold.model.motifs import drop_rounding
from motifold.solvers.base import Inner, Solver, WStatistics


def update_motifs(
    solver: Solver, model: Model, W: Array, statistics: WStatistics, inner: Inner
) -> Array:
    """New motifs (N, L, K), those that are learnt updated by the solver."""
    learnt, penalties = model.learnt, model.penalties
    W = W.copy()
    if not learnt.size:
        return W
    part = W if model.held is None else np.ascontiguousarray(W[:, :, learnt])
    solver.update_W(part, statistics, penalties.for_components(learnt.size), inner)
    drop_rounding(part, np.diagonal(statistics.B).reshape(part.shape[1:]))
    if model.held is not None:
        W[:, :, learnt] = part
    return W


def update_background(W: Array, P: Array, B: Array, signed: bool = False) -> float:
    """Set the last component's lag 0 to what is best for it (changes W).

    P (N, L·K) and B (L·K, L·K) of all components. ``signed``: it may be below zero. Returns the
    KKT residual that it had.
    """
    N, _, K = W.shape
    column = K - 1
    flat = W.reshape(N, -1)
    level, curvature = W[:, 0, column].astype(np.float64), float(B[column, column])
    step = (flat @ B[:, column] - P[:, column]) / max(curvature, 1e-300)
    part = step if signed else np.minimum(level, step)
    W[:, 0, column] = level - step if signed else np.maximum(0, level - step)
    return kkt_ratio(float(part @ part), float(level @ level))


def kkt_of_background(W: Array, P: Array, B: Array, signed: bool = False) -> float:
    """The KKT residual of the last component."""
    return update_background(W.copy(), P, B, signed)


def kkt_residual_W(model: Model, W: Array, statistics: WStatistics) -> float:
    """‖min(W, ∇_W / diag)‖ / ‖W‖ with diag = B_pp + l2, of the motifs that are learnt."""
    learnt = model.learnt
    if not learnt.size:
        return 0.0
    part = W if model.held is None else np.ascontiguousarray(W[:, :, learnt])
    flat = part.reshape(statistics.P.shape)
    diagonal = np.diagonal(statistics.B).copy()
    penalties = model.penalties.for_components(learnt.size)
    gradient = statistics.gradient(flat)
    above, below = kkt_sums_W(flat, gradient, diagonal, penalties.l1_W, penalties.l2_W)
    return kkt_ratio(above, below)
