"""The convex problem in the activations alone, solved to a tolerance from a start at zero."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.problem import Array, Problem
from motifold.solvers import ANLS, HALS, Inner
from motifold.statistics import HStatistics

_MAX_SWEEPS = 10_000
# Sweeps between two looks at the certificate, and looks without progress before giving up.
_ROUND, _PATIENCE = Inner(max_sweeps=5, shrink=0.0), 40


@dataclass(frozen=True)
class Deconvolution:
    """The activations and how optimal they are.

    Attributes
    ----------
    H : (T, K), float64
    kkt_residual : of H
    sweeps : how many were made
    tol : what was asked for
    solved : whether ``kkt_residual`` ≤ ``tol``
    """

    H: Array
    kkt_residual: float
    sweeps: int
    tol: float
    solved: bool


def solve_H(
    problem: Problem,
    statistics: HStatistics,
    tol: float,
    start: Deconvolution | None = None,
    max_time: float | None = None,
) -> Deconvolution:
    """Minimise J over H with W fixed, by sweeps over its entries (coordinate descent).

    With L = 1 the columns are independent, and one pass of exact solves is the solution. The start
    is zero, or where an earlier solve ended: the way is the same, so that a tighter tolerance asked
    for later gives what it would have given at once. All in float64, whatever the data is: in
    single precision the sweeps stop short of tight tolerances.
    """
    began = time.perf_counter()
    # Components are swept by falling norm: a fit and the model it leaves, which has them in
    # another order, then take the same way.
    L = problem.L
    order = np.argsort(-np.einsum("kk->k", statistics.A[:, L - 1]), kind="stable")
    statistics = statistics.astype(np.float64).permuted(order)
    penalties = problem.penalties.permuted(order)
    solver = HALS() if L > 1 else ANLS()
    H = np.zeros_like(statistics.C)
    if start is not None:
        H[:] = start.H[:, order]
    sweeps = 0 if start is None else start.sweeps
    best, waited = np.inf, 0
    while True:
        solver.update_H(H, statistics, penalties, _ROUND)
        sweeps += _ROUND.max_sweeps
        residual = kkt_residual_H(penalties, H, statistics)
        waited = 0 if residual < 0.99 * best else waited + 1
        best = min(best, residual)
        out_of_time = max_time is not None and time.perf_counter() - began > max_time
        if residual <= tol or waited >= _PATIENCE or out_of_time or sweeps >= _MAX_SWEEPS:
            H[:, order] = H.copy()
            return Deconvolution(H, residual, sweeps, tol, residual <= tol)
