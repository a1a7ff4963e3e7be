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
# A motif is cut off if lags at one end of its window are silent (below a share of the power of an
# average one), the lag at the other end is not (above another share), and otherwise it fills its
# window: no more than this share of the lags is silent, and half of them are not weak either. How
# often motifs are moved for it, and iterations on the part in which that has to pay.
_SILENT, _CUT_OFF, _FEW, _MENDS, _TO_MEND = 0.1, 0.5, 0.25, 2, 3
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
    found = motifs_of_less(descent, state.now.W, state.now.H, clock)
    if found is None:
        return None
    new = with_first_activations(descent, state, *found)
    return replace(new, iteration=1) if descent.falls(state.now, new.now) else None


def motifs_of_less(
    descent: Descent,
    W: Motifs,
    H: Activations,
    clock: Clock,
    *,
    worth: float = _WORTH,
    mend: bool = False,
) -> tuple[Motifs, Array | None] | None:
    """Motifs after some iterations on less than the whole, and the level of their activations.

    None if there is nothing less than the whole. ``worth``: all iterations on a part together, in
    iterations on the whole. ``mend``: motifs that their window cuts off are moved into it.
    """
    accelerated = descent.rules.acceleration
    assert accelerated is not None
    engine, n_iterations = descent.engine, accelerated.first_iterations
    part = engine.part()
    less: Engine = engine
    rows = None
    if part is not None:
        less, rows = part
        fixed = _BINS_OF_MOTIFS * engine.model.K * engine.model.L
        affordable = int(worth * (engine.facts.T + fixed) / (less.facts.T + fixed))
        n_iterations = min(n_iterations, affordable)
    elif not engine.model.penalties.couple:
        return None
    less = less.with_penalties(less.model.penalties.uncoupled())
    small = Descent(less, descent.solver, replace(descent.rules, tol=0), judged=False)
    clock = clock.part(_TIME_ON_LESS)
    state = _iterated(small, small.start(W, engine.take(H, rows)), n_iterations, clock)
    if mend:
        state = _moved_into_windows(small, state, clock)
    # What is not known yet is as large as what is, on the average: where activations are dense a
    # start at zero would give nearly all to the motif that is swept first. Penalties on what motifs
    # share have not been felt yet: they find their way from zero.
    level = None if engine.model.penalties.couple else less.means(state.now.H)
    return state.now.W, level


def _iterated(small: Descent, state: LoopState, n_iterations: int, clock: Clock) -> LoopState:
    """The state after so many iterations, or fewer if they no longer pay."""
    objectives = [state.now.objective]
    while (
        len(objectives) <= n_iterations
        and not state.over
        and not clock.expired
        and objectives[-1] < _PROGRESS * min(objectives[:-5], default=np.inf)
    ):
        state = small.iterate(state, clock)
        objectives.append(state.now.objective)
    return state


def _moved_into_windows(small: Descent, state: LoopState, clock: Clock) -> LoopState:
    """The state with motifs moved that their window cuts off, as long as J is lower for it."""
    engine = small.engine
    for _ in range(_MENDS):
        shifts = into_window(engine.motifs(state.now.W), engine.model.learnt)
        if not shifts:
            break
        start = small.start(*engine.shift(state.now.W, state.now.H, shifts))
        new = _iterated(small, start, _TO_MEND, clock)
        if not new.now.objective < state.now.objective:
            break
        state = new
    return state


def into_window(motifs: Array, learnt: np.ndarray) -> dict[int, int]:
    """By how many lags motifs (N, L, K) are to move that seem to be cut off at one end.

    The window has silent lags at the other end, room for what is cut off.
    """
    power = np.einsum("nlk,nlk->lk", motifs, motifs, dtype=np.float64)
    heard = power > _SILENT * power.mean(axis=0)
    strong = power > _CUT_OFF * power.mean(axis=0)
    found = {}
    for k in learnt:
        before, after = np.argmax(heard[:, k]), np.argmax(heard[::-1, k])
        if max(before, after) > _FEW * len(power) or 2 * strong[:, k].sum() < len(power):
            continue
        if before and strong[-1, k]:
            found[int(k)] = -int(before)
        elif after and strong[0, k]:
            found[int(k)] = int(after)
    return found


def with_first_activations(
    descent: Descent, state: LoopState, W: Motifs, level: Array | None = None
) -> LoopState:
    """The state at these motifs, with activations from a few sweeps that began at a level (K,)."""
    return descent.moved(state, descent.at(W, first_activations(descent.engine, W, level)))


def first_activations(engine: Engine, W: Motifs, level: Array | None = None) -> Activations:
    """Activations of these motifs from a few sweeps that began at a level (K,), or at zero."""
    problem = engine.activation_problem(W)
    H = engine.zeros() if level is None else engine.level(level)
    for _ in range(4 if engine.hides else 1):
        H = engine.sweep(H, problem, HALS("tiles"), _FIRST_ACTIVATIONS)
    return H


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
