"""The convex problem in the activations alone, solved to a tolerance from a start at zero."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.problem import Array, Problem
from motifold.solvers import ANLS, HALS, Inner
from motifold.statistics import HStatistics

_MAX_SWEEPS, _MAX_SWEEPS_MASKED = 10_000, 3_000
# Sweeps between two looks at the certificate, and looks without progress before giving up.
_ROUND, _PATIENCE = Inner(max_sweeps=5, shrink=0.0), 40
_SWEEP = Inner(max_sweeps=1)


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

    With L = 1 the columns are independent, and one pass of exact solves is the solution. Missing
    entries follow H from round to round. With ``ortho_H`` the problem need not be convex, and the
    result is a stationary point. The start
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
    most_sweeps = _MAX_SWEEPS_MASKED if statistics.fill else _MAX_SWEEPS
    momentum = _Momentum(H)
    best, waited = np.inf, 0
    statistics = statistics.refilled(H)
    while True:
        if statistics.fill is None:
            solver.update_H(H, statistics, penalties, _ROUND)
        else:
            for _ in range(_ROUND.max_sweeps):
                ahead = momentum.ahead(H)
                H[...] = ahead
                solver.update_H(H, statistics.refilled(ahead), penalties, _SWEEP)
                H[~problem.seen[1]] = 0  # flat: rounding alone moves them
                momentum.judge(ahead, H)
            statistics = statistics.refilled(H)
        sweeps += _ROUND.max_sweeps
        residual = kkt_residual_H(penalties, H, statistics)
        waited = 0 if residual < 0.99 * best else waited + 1
        best = min(best, residual)
        out_of_time = max_time is not None and time.perf_counter() - began > max_time
        if residual <= tol or waited >= _PATIENCE or out_of_time or sweeps >= most_sweeps:
            H[:, order] = H.copy()
            return Deconvolution(H, residual, sweeps, tol, residual <= tol)


class _Momentum:
    """Nesterov's: missing entries follow H, which is slow unless H is extrapolated."""

    def __init__(self, H: Array) -> None:
        self.last = self.before = H.copy()
        self.t = 1.0

    def ahead(self, H: Array) -> Array:
        """The point to sweep from."""
        self.before, self.last = self.last, H.copy()
        t = 0.5 * (1 + np.sqrt(1 + 4 * self.t**2))
        beta, self.t = (self.t - 1) / t, t
        return np.maximum(H + beta * (self.last - self.before), 0)

    def judge(self, ahead: Array, H: Array) -> None:
        """Begin anew where the sweep went against the momentum (O'Donoghue & Candès 2015)."""
        if np.vdot(ahead - H, H - self.last) > 0:
            self.t = 1.0
