"""The convex problem in the activations alone, solved to a tolerance from a start at zero."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.kernels.pivoting import pass_H
from motifold.problem import Array, Problem
from motifold.statistics import HStatistics

_MAX_PASSES = 10_000
# Passes between two looks at the certificate, and looks without progress before giving up.
_LOOK_EVERY, _PATIENCE = 5, 40


@dataclass(frozen=True)
class Deconvolution:
    """The activations, how optimal they are, and the gradient to go on from.

    Attributes
    ----------
    H, gradient : (T, K), float64; gradient is A∗H − C
    kkt_residual : of H
    passes : how many were made
    tol : what was asked for
    solved : whether ``kkt_residual`` ≤ ``tol``
    """

    H: Array
    gradient: Array
    kkt_residual: float
    passes: int
    tol: float
    solved: bool


def solve_H(
    problem: Problem,
    statistics: HStatistics,
    tol: float,
    start: Deconvolution | None = None,
    max_time: float | None = None,
) -> Deconvolution:
    """Min J over H ≥ 0 with W fixed, by passes over its columns (block coordinate descent).

    Each pass solves every column exactly by block pivoting; with L = 1 one pass is the solution.
    The start is zero, or where an earlier solve ended: the way is the same, so that a tighter
    tolerance asked for later gives what it would have given at once. All in float64, whatever the
    data is: in single precision the passes stop short of tight tolerances.
    """
    began = time.perf_counter()
    statistics = statistics.astype(np.float64)
    H, gradient = (
        (np.zeros_like(statistics.C), -statistics.C)
        if start is None
        else (start.H.copy(), start.gradient.copy())
    )
    penalties = problem.penalties
    A, E, bounds = statistics.A, statistics.E, statistics.bounds
    best, waited = np.inf, 0
    residual = kkt_residual_H(problem, H, statistics, gradient)
    passes = start.passes if start else 0
    while passes < _MAX_PASSES:
        pass_H(H, gradient, A, E, bounds, penalties.l1_H, penalties.l2_H)
        passes += 1
        if passes > 1 and passes % _LOOK_EVERY:
            continue
        gradient = statistics.gradient(H)  # afresh: what pass_H keeps up to date drifts
        residual = kkt_residual_H(problem, H, statistics, gradient)
        waited = 0 if residual < 0.99 * best else waited + 1
        best = min(best, residual)
        out_of_time = max_time is not None and time.perf_counter() - began > max_time
        if residual <= tol or waited >= _PATIENCE or out_of_time:
            break
    return Deconvolution(H, gradient, residual, passes, tol, residual <= tol)
