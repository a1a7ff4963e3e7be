"""The problem in one factor, the other being fixed: the data passes and all that is added to them.

Missing entries and penalties that couple components change the statistics only, so that a solver
sees one quadratic problem with a nonnegative solution, whatever it is made of. See ``docs/theory``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from motifold.certificate import kkt_residual_W
from motifold.missing import filled_P, fit_of_iterate
from motifold.parallel import Workers
from motifold.problem import Array, Problem, sum_of_others
from motifold.solvers import Inner, Solver
from motifold.statistics import Fill, HStatistics, WStatistics, h_statistics, w_statistics
from motifold.toeplitz import Padding, smoothed


def w_subproblem(problem: Problem, W: Array, H: Array, workers: Workers) -> WStatistics:
    """What the motifs that are learnt depend on when H and the fixed motifs are given.

    The missing entries are those of X̂ at (W, H).
    """
    penalties = problem.penalties
    statistics = w_statistics(problem, H, workers)
    P, B = statistics.P, statistics.B
    slope = None
    if problem.hidden:
        P = P + filled_P(fit_of_iterate(problem, W, H, workers), workers)
    if penalties.ortho_W:
        different = np.tile(1 - np.eye(problem.K), (problem.L, problem.L))
        B = B + (penalties.ortho_W * different).astype(B.dtype)
    if penalties.x_ortho:
        nearby = sum_of_others(smoothed(H, Padding(problem.bounds, problem.L)))
        nearby[~problem.allowed] = 0
        slope = P.dtype.type(penalties.x_ortho) * w_statistics(problem, nearby, workers).P
    if problem.fixed is not None:
        fixed = np.tile(problem.fixed, problem.L)
        explained = W.reshape(P.shape)[:, fixed] @ B[np.ix_(fixed, ~fixed)]
        slope = explained if slope is None else slope[:, ~fixed] + explained
        P, B = P[:, ~fixed], np.ascontiguousarray(B[np.ix_(~fixed, ~fixed)])
    if slope is None:
        return replace(statistics, P=P, B=B)
    return WStatistics(P - slope, B, workers, slope, P_data=P)


def update_motifs(
    solver: Solver, problem: Problem, W: Array, statistics: WStatistics, inner: Inner
) -> None:
    """Let the solver update the motifs that are learnt (changes W)."""
    if problem.fixed is None:
        solver.update_W(W, statistics, problem.penalties, inner)
        _drop_rounding(W)
        return
    learnt = np.flatnonzero(~problem.fixed)
    if learnt.size:
        part = np.ascontiguousarray(W[:, :, learnt])
        solver.update_W(part, statistics, problem.penalties.permuted(learnt), inner)
        _drop_rounding(part)
        W[:, :, learnt] = part


def _drop_rounding(W: Array) -> None:
    """Set to zero what is not above the rounding of a motif's largest entry (changes W).

    It would be all that is left of a motif where the end of a segment cuts it off, and have an
    activation that makes up for it.
    """
    rounding = np.finfo(W.dtype).eps * W.max(axis=(0, 1))
    W[rounding >= W] = 0


def kkt_of_motifs(problem: Problem, W: Array, statistics: WStatistics) -> float:
    """The KKT residual of the motifs that are learnt."""
    if problem.fixed is None:
        return kkt_residual_W(problem.penalties, W, statistics)
    learnt = np.flatnonzero(~problem.fixed)
    if not learnt.size:
        return 0.0
    part = np.ascontiguousarray(W[:, :, learnt])
    return kkt_residual_W(problem.penalties.permuted(learnt), part, statistics)


def h_subproblem(problem: Problem, W: Array, H: Array, workers: Workers) -> HStatistics:
    """What H depends on when W is fixed; the missing entries are those of X̂ at (W, H)."""
    penalties = problem.penalties
    statistics = h_statistics(problem, W, workers)
    C = statistics.C  # of what is observed
    if penalties.ortho_H:
        different = penalties.ortho_H * (1 - np.eye(problem.K))
        A = statistics.A + different[:, None].astype(C.dtype)
        E = statistics.E + different[:, None].astype(C.dtype)
        statistics = replace(statistics, A=A, E=E, ortho=penalties.ortho_H)
    if penalties.x_ortho:
        slope = C.dtype.type(penalties.x_ortho) * sum_of_others(smoothed(C, statistics.padding))
        statistics = replace(statistics, C=C - slope, C_data=C, slope=slope)
    if problem.hidden:
        statistics = replace(statistics, fill=Fill(problem, W, C)).refilled(H)
    return statistics


def update_activations(
    solver: Solver, problem: Problem, H: Array, statistics: HStatistics, inner: Inner
) -> None:
    """Let the solver update H (changes it)."""
    solver.update_H(H, statistics, problem.penalties, inner)
    if problem.hidden:
        H[~problem.seen[1]] = 0  # the observed loss is flat there: rounding alone moves them


def penalty(problem: Problem, W: Array, H: Array, statistics: HStatistics) -> float:
    """The penalties' part of the objective at (W, H); ``statistics`` are those of W."""
    return problem.penalties.value(W, H) + sum(statistics.coupling(H))
