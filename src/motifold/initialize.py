"""Starts: given factors, and random ones scaled to the data by least squares."""

from __future__ import annotations

import numpy as np

from motifold.missing import hidden_fit, hidden_power
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.statistics import h_statistics


def initial_factors(
    problem: Problem,
    rng: np.random.Generator,
    workers: Workers,
    W: Array | None = None,
    H: Array | None = None,
) -> tuple[Array, Array]:
    """W (N, L, K) and H (T, K) to start from, in the working scale.

    A given factor is copied as it is. One that is not given is uniform on (0, 1), as in the
    paper, and what was drawn is scaled so that α·X̂ fits the data best.
    """
    N, L, K, T = problem.N, problem.L, problem.K, problem.T
    draw_W, draw_H = W is None, H is None
    # Both are drawn in either case: a given factor does not change the other's random numbers.
    random_W = rng.random((N, L, K), dtype=np.float64)
    random_H = rng.random((T, K), dtype=np.float64)
    seen_features, seen_starts = problem.seen
    random_W[~seen_features] = 0  # nothing will ever move them
    allowed = problem.allowed & seen_starts
    W = np.array(random_W if W is None else W, dtype=problem.dtype, order="C")
    H = np.array(random_H if H is None else H, dtype=problem.dtype, order="C")
    H[~allowed] = 0
    if not (draw_W or draw_H):
        return W, H
    statistics = h_statistics(problem, W, workers)
    overlap = np.einsum("tk,tk->", statistics.C, H, dtype=np.float64)
    power = np.einsum("tk,tk->", statistics.correlate(H), H, dtype=np.float64)
    if problem.hidden:
        power -= hidden_power(hidden_fit(problem, W, H, workers), workers)
    alpha = float(overlap / power) if power > 0 else 1.0
    if draw_W and draw_H:
        W *= problem.dtype.type(np.sqrt(alpha))
        H *= problem.dtype.type(np.sqrt(alpha))
    else:
        drawn = W if draw_W else H
        drawn *= problem.dtype.type(alpha)
    return W, H
