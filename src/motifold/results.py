"""From the last state of the loop to the fitted attributes: scale, order, certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.missing import hidden_fit, hidden_power
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.state import LoopState
from motifold.statistics import h_statistics


def fitted_attributes(
    problem: Problem, state: LoopState, workers: Workers, *, normalize: bool, keep_order: bool
) -> dict[str, Any]:
    """The attributes of a fit that stopped at ``state``.

    With ``normalize`` every motif has unit Frobenius norm, the activations carry the scale, and
    components come in the order of the power they explain, unless ``keep_order``. Fixed motifs
    stay as they are.
    """
    K = problem.K
    W = state.W.astype(np.float64)
    H = state.H.astype(np.float64)
    scales = np.ones(K)
    order = np.arange(K)
    if normalize:
        scales = np.sqrt(np.einsum("nlk,nlk->k", W, W))
        if problem.fixed is not None:
            scales[problem.fixed] = 1.0
        if not keep_order:
            order = np.argsort(-power_shares(problem, state, workers), kind="stable")
    unit = np.where(scales > 0, scales, 1.0)
    components = (W / unit).transpose(2, 1, 0)[order]
    activations = (H * scales / problem.scale)[:, order]
    dtype = problem.dtype
    return {
        "components_": np.ascontiguousarray(components, dtype=dtype),
        "activations_": np.ascontiguousarray(activations, dtype=dtype),
        "scales_": scales[order],
        "n_iter_": state.iteration,
        "converged_": state.stop_reason == "converged",
        "stop_reason_": state.stop_reason,
        "loss_": state.loss,
        "kkt_residual_": state.kkt_residual,
        "history_": state.history,
        "reconstruction_err_": float(np.sqrt(state.squared_residual)) / problem.scale,
        "_transform_tol": state.transform_tol,
        "_solved": state.finished_H,
        "_lengths": [segment.stop - segment.start for segment in problem.segments],
    }


def power_shares(problem: Problem, state: LoopState, workers: Workers) -> Array:
    """Share of the data's power that each motif explains alone, (K,).

    Σ(2X·X̂_k − X̂_k²)/ΣX² over observed entries, floored at zero, from the statistics.
    """
    if problem.squared_norm == 0:
        return np.zeros(problem.K)
    statistics = h_statistics(problem, state.W, workers)
    shares = np.empty(problem.K)
    for k in range(problem.K):
        alone = np.zeros_like(state.H)
        alone[:, k] = state.H[:, k]
        products = 2 * statistics.C[:, k] - statistics.correlate(alone)[:, k]
        shares[k] = np.dot(products.astype(np.float64), alone[:, k].astype(np.float64))
        if problem.hidden:
            motif, activation = state.W[:, :, k : k + 1], state.H[:, k : k + 1]
            fit = hidden_fit(problem, motif, activation.copy(), workers)
            shares[k] += hidden_power(fit, workers)
    return np.maximum(shares / problem.squared_norm, 0.0)
