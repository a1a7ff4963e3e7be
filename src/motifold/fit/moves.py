"""Moves beside the iterations: a start on less, an empty motif revived, motifs centred.

Each gives the state that it leads to, or None if there is nothing to gain; J never rises.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from motifold.engines.base import Activations, Engine, Motifs
from motifold.fit.clock import Clock
from motifold.fit.state import LoopState
from motifold.fit.step import Descent
from motifold.fit.stop import StopReason
from motifold.model import Array
from motifold.model.motifs import to_the_middle
from motifold.solvers import HALS, Inner

# How often motifs are revived, per motif.
_REVIVALS = 3
# On less than the whole problem: a start whose KKT residual is below is not far from optimal;
# sweeps of H when the whole is seen; the fall of J in five iterations that is worth the while; and
# all iterations on a part together, in iterations on the whole.
_FAR, _FIRST_ACTIVATIONS, _PROGRESS, _WORTH = 0.3, Inner(max_sweeps=12), 0.99, 2
# Work of an iteration that does not grow with T (sweeps of W, Grams): that of so many bins for each
# of the K·L columns of W̃, as measured on three shapes.
_BINS_OF_MOTIFS = 10
# It may take this share of the time that is left.
_TIME_ON_LESS = 1 / 4
# Iterations in which J may come back to where it was before motifs were centred, and how often that
# is tried when the fit has converged.
_ADAPT, _LAST_CENTRINGS = 8, 5


def started_on_less(descent: Descent, state: LoopState, clock: Clock) -> LoopState | None:
    """The state after some iterations on less than the whole problem, before any other.

    On a part of the recording: motifs take shape long before every bin has been seen. And without
    the penalties that couple motifs: at a random start all of them are alike, and a penalty on what
    they share would empty them. A start that is no longer far from optimal is left alone.
    """
    accelerated = descent.rules.acceleration
    if state.iteration or accelerated is None or not descent.leaps or state.now.kkt_H <= _FAR:
        return None
    engine, n_iterations = descent.engine, accelerated.first_iterations
    part = engine.part()
    less: Engine = engine
    rows = None
    if part is not None:
        less, rows = part
        fixed = _BINS_OF_MOTIFS * engine.model.K * engine.model.L
        worth = _WORTH * (engine.facts.T + fixed) // (less.facts.T + fixed)
        n_iterations = min(n_iterations, worth)
    elif not engine.model.penalties.couple:
        return None
    less = less.with_penalties(less.model.penalties.uncoupled())
    H = engine.take(state.now.H, rows)
    W, H = _factors_of(descent, less, state.now.W, H, n_iterations, clock.part(_TIME_ON_LESS))
    # What is not known yet is as large as what is, on the average: where activations are dense a
    # start at zero would give nearly all to the motif that is swept first. Penalties on what motifs
    # share have not been felt yet: they find their way from zero.
    level = None if engine.model.penalties.couple else less.means(H)
    new = with_first_activations(descent, state, W, level)
    return replace(new, iteration=1) if descent.falls(state.now, new.now) else None


def _factors_of(
    descent: Descent, less: Engine, W: Motifs, H: Activations, n_iterations: int, clock: Clock
) -> tuple[Motifs, Activations]:
    """The factors after some iterations on another engine."""
    rules = replace(descent.rules, tol=0)
    small = Descent(less, descent.solver, rules, judged=False)
    state = small.start(W, H)
    objectives = [state.now.objective]
    while (
        state.iteration < n_iterations
        and not state.over
        and not clock.expired
        and objectives[-1] < _PROGRESS * min(objectives[:-5], default=np.inf)
    ):
        state = small.iterate(state, clock)
        objectives.append(state.now.objective)
    return state.now.W, state.now.H


def with_first_activations(
    descent: Descent, state: LoopState, W: Motifs, level: Array | None = None
) -> LoopState:
    """The state at these motifs, with activations from a few sweeps that began at a level (K,)."""
    engine = descent.engine
    problem = engine.activation_problem(W)
    H = engine.zeros() if level is None else engine.level(level)
    for _ in range(4 if engine.hides else 1):
        H = engine.sweep(H, problem, HALS("tiles"), _FIRST_ACTIVATIONS)
    return descent.moved(state, descent.at(W, H))


def revived(descent: Descent, state: LoopState, clock: Clock) -> LoopState | None:
    """The state with a motif that had become empty put where X is explained worst.

    Only if that lowers J by more than what counts as progress, and not for ever.
    """
    engine, now = descent.engine, state.now
    if not (descent.leaps and state.iteration):
        return None
    K, learnt = engine.model.K, engine.model.learnt
    empty = np.intersect1d(learnt, engine.empty_motifs(now.W))
    if not empty.size or state.tries.revivals >= _REVIVALS * K:
        return None
    found = engine.worst_window(now.W, now.H, int(empty[0]))
    if found is None:
        return None
    t, window = found
    if np.linalg.norm(window) ** 2 <= 2 * descent.progress * now.objective + descent.perfect:
        return None
    new = descent.at(*engine.plant(now.W, now.H, int(empty[0]), t, window))
    # Whether it counts as progress is to be told from the noise.
    old, new = descent.judged(now, new)
    if new.objective > old.objective * (1 - descent.progress):
        return replace(state, tries=replace(state.tries, revivals=_REVIVALS * K))  # nor later
    tries = replace(state.tries, revivals=state.tries.revivals + 1)
    new = replace(new, kkt_H=np.nan)  # it is to go on from there, not to be certified
    return replace(descent.moved(state, new), tries=tries, iteration=state.iteration + 1)


def centred(descent: Descent, state: LoopState, clock: Clock) -> LoopState | None:
    """The state with the motifs moved to the middle of their windows (``center=True``).

    Tried after 1, 2, 4, 8, … iterations, and some times when the fit has converged. What a motif
    loses at the edge of its window is to be made up for in a few iterations, or it stays where it
    was. All motifs are tried together, then one by one.
    """
    m = state.iteration
    converged = state.stop_reason is StopReason.CONVERGED
    if not descent.rules.center or m == 0 or (m & (m - 1) and not converged):
        return None
    if converged and state.tries.centrings >= _LAST_CENTRINGS:
        return None
    model = descent.engine.model
    shifts = to_the_middle(descent.engine.motifs(state.now.W))
    off = sorted((k for k in model.learnt if shifts[k]), key=lambda k: -abs(shifts[k]))
    for motifs in [off] * (len(off) > 1) + [[k] for k in off]:
        new = _after_shifts(descent, state, {int(k): int(shifts[k]) for k in motifs}, clock)
        if new is not None:
            tries = replace(state.tries, centrings=state.tries.centrings + converged)
            return replace(new, iteration=m + 1, tries=tries)
    return None


def _after_shifts(
    descent: Descent, state: LoopState, shifts: dict[int, int], clock: Clock
) -> LoopState | None:
    """The state a few iterations after motifs were shifted, as soon as J is no higher again.

    None if it stays higher, or the time is up.
    """
    if clock.expired:
        return None
    now = descent.at(*descent.engine.shift(state.now.W, state.now.H, shifts))
    goal = replace(state.goal, certify=False)
    new = replace(descent.moved(state, replace(now, kkt_H=np.nan)), stop_reason=None, goal=goal)
    for _ in range(_ADAPT):
        new = descent.iterate(new, clock)
        if descent.falls(state.now, new.now):
            return new
        if new.over or clock.expired:
            break
    return None
