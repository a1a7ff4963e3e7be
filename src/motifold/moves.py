"""Moves beside the iterations: a start on less, an empty motif revived, motifs centred.

Each gives the state that it leads to, or None if there is nothing to gain; J never rises.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.descent import Descent
from motifold.problem import Array, Problem
from motifold.solvers import HALS, Inner
from motifold.state import LoopState
from motifold.statistics import worst_window
from motifold.subproblem import h_subproblem, update_activations
from motifold.subset import subset

# How often motifs are revived, per motif.
_REVIVALS = 3
# On less than the whole problem: a start whose KKT residual is below is not far from optimal;
# sweeps of H when the whole is seen; the fall of J in five iterations that is worth the while; and
# all iterations on a part together, in iterations on the whole.
_FAR, _FIRST_ACTIVATIONS, _PROGRESS, _WORTH = 0.3, Inner(max_sweeps=12), 0.99, 2
# Iterations in which J may come back to where it was before motifs were centred, and how often that
# is tried when the fit has converged.
_ADAPT, _LAST_CENTRINGS = 8, 5


def started_on_less(descent: Descent, state: LoopState) -> LoopState | None:
    """The state after some iterations on less than the whole problem, before any other.

    On a part of the recording: motifs take shape long before every bin has been seen. And without
    the penalties that couple motifs: at a random start all of them are alike, and a penalty on what
    they share would empty them. A start that is no longer far from optimal is left alone.
    """
    accelerated = descent.rules.acceleration
    if state.iteration or accelerated is None or not descent.leaps or state.kkt_H <= _FAR:
        return None
    problem, n_iterations = descent.problem, accelerated.first_iterations
    part = subset(problem)
    if part is not None:
        less, rows = part
        n_iterations = min(n_iterations, _WORTH * problem.T // less.T)
    elif problem.penalties.couple:
        less, rows = problem, np.arange(problem.T)
    else:
        return None
    less = replace(less, penalties=less.penalties.uncoupled())
    W = _motifs_of(descent, less, rows, state, n_iterations)
    new = with_first_activations(descent, state, W)
    return replace(new, iteration=1) if descent.falls(state, new) else None


def _motifs_of(
    descent: Descent, less: Problem, rows: np.ndarray, state: LoopState, n_iterations: int
) -> Array:
    """The motifs after some iterations on another problem, which has these rows of this one."""
    rules = replace(descent.rules, tol=0)
    small = Descent(less, descent.solver, rules, descent.workers)
    small.noise = 0.0  # nobody judges this loss
    end = time.perf_counter() + _time_left(descent, state) / 4
    now = small.start(state.W, np.ascontiguousarray(state.H[rows]))
    objectives = [now.working_objective]
    while (
        now.iteration < n_iterations
        and not now.stop_reason
        and time.perf_counter() < end
        and objectives[-1] < _PROGRESS * min(objectives[:-5], default=np.inf)
    ):
        now = small.iterate(now)
        objectives.append(now.working_objective)
    return now.W


def _time_left(descent: Descent, state: LoopState) -> float:
    """Seconds of ``max_time`` that were left when the state was reached."""
    max_time = descent.rules.max_time
    return np.inf if max_time is None else max_time - state.seconds


def with_first_activations(descent: Descent, state: LoopState, W: Array) -> LoopState:
    """The state at these motifs, with activations from a few sweeps that began at zero."""
    problem = descent.problem
    H = np.zeros_like(state.H)
    statistics = h_subproblem(problem, W, H, descent.workers)
    for _ in range(4 if problem.hidden else 1):
        update_activations(HALS(), problem, H, statistics, _FIRST_ACTIVATIONS)
        statistics = statistics.refilled(H)
    kkt_H = kkt_residual_H(problem.penalties, H, statistics)
    return descent.moved(state, W, H, statistics, kkt_H=kkt_H)


def revived(descent: Descent, state: LoopState) -> LoopState | None:
    """The state with a motif that had become empty put where X is explained worst.

    Only if that lowers J by more than what counts as progress, and not for ever.
    """
    problem = descent.problem
    empty = ~state.W.any(axis=(0, 1))
    dead = np.flatnonzero(empty if problem.fixed is None else empty & ~problem.fixed)
    if not (descent.leaps and dead.size and state.iteration):
        return None
    if state.revivals >= _REVIVALS * problem.K:
        return None
    found = worst_window(problem, state.W, state.H, descent.workers)
    if found is None:
        return None
    t, window = found
    norm = np.linalg.norm(window)
    if norm**2 <= 2 * descent.progress * state.working_objective + descent.perfect:
        return None
    W, H, k = state.W.copy(), state.H.copy(), dead[0]
    # The weight in both factors alike, as after a while of alternating.
    level = np.sqrt(norm)
    H[:, k] = 0
    W[:, :, k], H[t, k] = window.T * (level / norm), level
    statistics = h_subproblem(problem, W, H, descent.workers)
    counts = {"revivals": state.revivals + 1, "iteration": state.iteration + 1}
    new = descent.moved(state, W, H, statistics, **counts)
    if new.working_objective > state.working_objective * (1 - descent.progress):
        state.revivals = _REVIVALS * problem.K  # not now, not later
        return None
    return new


def centred(descent: Descent, state: LoopState) -> LoopState | None:
    """The state with the motifs moved to the middle of their windows (``center=True``).

    Tried after 1, 2, 4, 8, … iterations, and some times when the fit has converged. What a motif
    loses at the edge of its window is to be made up for in a few iterations, or it stays where it
    was. All motifs are tried together, then one by one.
    """
    m = state.iteration
    converged = state.stop_reason == "converged"
    if not descent.rules.center or m == 0 or (m & (m - 1) and not converged):
        return None
    if converged and state.centrings >= _LAST_CENTRINGS:
        return None
    shifts = _shifts(descent.problem, state.W)
    off = sorted(np.flatnonzero(shifts), key=lambda k: -abs(shifts[k]))
    end = time.perf_counter() + _time_left(descent, state)
    for motifs in [off] * (len(off) > 1) + [[k] for k in off]:
        new = _after_shifts(descent, state, {int(k): int(shifts[k]) for k in motifs}, end)
        if new is not None:
            return replace(new, iteration=m + 1, centrings=state.centrings + converged)
    return None


def _after_shifts(
    descent: Descent, state: LoopState, shifts: dict[int, int], end: float
) -> LoopState | None:
    """The state a few iterations after motifs were shifted, as soon as J is no higher again.

    None if it stays higher, or the clock has passed ``end``.
    """
    if time.perf_counter() >= end:
        return None
    problem = descent.problem
    W, H = state.W.copy(), state.H.copy()
    for k, by in shifts.items():
        _shift(problem, W, H, k, by)
    statistics = h_subproblem(problem, W, H, descent.workers)
    new = descent.moved(state, W, H, statistics, stop_reason="", certify=False)
    for _ in range(_ADAPT):
        new = descent.iterate(new)
        if descent.falls(state, new):
            return new
        if new.stop_reason or time.perf_counter() >= end:
            break
    return None


def _shifts(problem: Problem, W: Array) -> np.ndarray:
    """For each motif by how many lags its centre of mass is to move, (K,) of int."""
    L = problem.L
    mass = W.sum(axis=0, dtype=np.float64)  # (L, K)
    total = mass.sum(axis=0)
    centre = np.arange(L) @ mass / np.where(total > 0, total, 1)
    shifts = np.where(total > 0, np.rint((L - 1) / 2 - centre), 0).astype(int)
    if problem.fixed is not None:
        shifts[problem.fixed] = 0
    return shifts


def _shift(problem: Problem, W: Array, H: Array, k: int, by: int) -> None:
    """Move motif k to later lags and its activations to earlier bins (changes W and H)."""
    W[:, :, k] = _moved_along(W[:, :, k], by, axis=1)
    for start, _, stop in problem.bounds:
        H[start:stop, k] = _moved_along(H[start:stop, k], -by, axis=0)
    H[~problem.allowed, k] = 0


def _moved_along(array: Array, by: int, axis: int) -> Array:
    """The array with its entries moved along an axis, zeros behind them."""
    moved = np.roll(array, by, axis=axis)
    n = min(abs(by), array.shape[axis])
    vacated = np.arange(n) if by > 0 else np.arange(array.shape[axis] - n, array.shape[axis])
    index: list[slice | np.ndarray] = [slice(None)] * array.ndim
    index[axis] = vacated
    moved[tuple(index)] = 0
    return moved
