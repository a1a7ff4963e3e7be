"""Moves out of poor minima: activations split over bins, motifs that their window cuts off.

A motif that is narrower than the truth, or ripples, with every activation split over neighbouring
bins explains nearly as much; iterations, which change a little of everything, do not put it
together again. Nor do they move a motif of which a part lies beyond its window. Here motifs are
changed at once, activations follow, and after a few iterations J has to be lower than it would have
been without: or nothing has happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from motifold.fit.clock import Clock
from motifold.fit.state import LoopState
from motifold.fit.step import Descent
from motifold.fit.stop import StopReason
from motifold.model import Array
from motifold.model.motifs import moved_along, to_the_middle
from motifold.solvers import HALS, Inner

# Tried after 8, 16, 32, … iterations (what is split, from 32 on: before, all motifs are narrow) and
# when the fit has converged; and not again before J has fallen by this share.
_FIRST, _FIRST_GATHERING, _NEWS = 8, 32, 0.01
# All motifs are changed together; from this iteration on, if that fails, one by one.
_ONE_BY_ONE = 64
# Activations whose correlation with themselves a bin later is above are taken to be split; over so
# many bins at most. (Right ones of the paper's problem have 0, those split in two have ½.)
_SPLIT, _MOST_TAPS = 0.25, 8
# A motif is cut off if it is off the middle by so many lags, and the lag at that end of its window
# has this share of the power of an average one.
_OFF, _AT_THE_END = 2, 0.1
# Iterations in which J has to be lower, by this share at least; sweeps of H before them; and
# iterations from whose falls the next ones are expected.
_ADAPT, _WORTH, _SWEEPS, _RECENT = 12, 1e-3, Inner(max_sweeps=12), 8


@dataclass(frozen=True)
class Box:
    """A motif is to become the mean of copies of itself, moved by ``first``, first + 1, … lags."""

    taps: int
    first: int

    @property
    def middle(self) -> int:
        """By how many lags the motif moves, about."""
        return self.first + self.taps // 2 if self.first < 0 else self.first + (self.taps - 1) // 2

    def of(self, motif: Array) -> Array:
        """Of a motif (N, L)."""
        lags = range(self.first, self.first + self.taps)
        copies = np.stack([moved_along(motif, by, axis=1) for by in lags])
        mean: Array = copies.mean(axis=0, dtype=motif.dtype)
        return mean


Change = dict[int, Box]


def reshaped(descent: Descent, state: LoopState, clock: Clock) -> LoopState | None:
    """The state with motifs moved into their windows, or put together where they were split.

    None, or the state itself with a note of the failure, if J would not be lower for it.
    """
    m, now = state.iteration, state.now
    converged = state.stop_reason is StopReason.CONVERGED
    if not descent.reshapes or m < _FIRST or (m & (m - 1) and not converged):
        return None
    if now.objective > (1 - _NEWS) * state.tries.stuck:
        return None
    tried = False
    for change in _changes(descent, state):
        new = _after(descent, state, change, clock)
        if new is not None:
            return replace(new, iteration=m + 1)
        tried = True
    return replace(state, tries=replace(state.tries, stuck=now.objective)) if tried else None


def _changes(descent: Descent, state: LoopState) -> Iterator[Change]:
    """What may be worth trying, by the look of the factors alone."""
    engine, now = descent.engine, state.now
    W, learnt = engine.motifs(now.W), engine.model.learnt
    cut = cut_off(W, learnt)
    if cut:
        yield cut
    if state.iteration >= _FIRST_GATHERING and engine.model.L > 1:
        neighbours = engine.neighbours(now.W, now.H)
        apart = split(W, neighbours, learnt)
        if apart:
            yield apart
        if state.iteration >= _ONE_BY_ONE:
            order = sorted(apart, key=lambda k: -neighbours[k])
            yield from ({k: apart[k]} for k in order if len(apart) > 1)
            # Perhaps it is only a lag away from where it could be put together.
            yield from ({k: Box(1, -1 if apart[k].first < 0 else 1)} for k in order)


def cut_off(motifs: Array, learnt: np.ndarray) -> Change:
    """Of the motifs (N, L, K) those that seem to go on beyond their window, to be moved back."""
    power = np.einsum("nlk,nlk->lk", motifs, motifs, dtype=np.float64)
    level = _AT_THE_END * power.mean(axis=0)
    found = {}
    for k, by in zip(learnt, to_the_middle(motifs)[learnt], strict=True):
        end = 0 if by > 0 else -1
        if abs(by) >= _OFF and power[end, k] > level[k]:
            found[int(k)] = Box(1, int(by))
    return found


def split(motifs: Array, neighbours: Array, learnt: np.ndarray) -> Change:
    """Of the motifs (N, L, K) those whose activations are split, to be put together.

    What n equal parts are split from has a correlation of 1 − 1/n with itself a bin later.
    """
    power = np.einsum("nlk,nlk->lk", motifs, motifs, dtype=np.float64)
    most = max(2, min(_MOST_TAPS, motifs.shape[1] // 2))
    found = {}
    for k in learnt:
        if neighbours[k] > _SPLIT:
            taps = int(np.clip(np.rint(1 / max(1 - neighbours[k], 1e-3)), 2, most))
            found[int(k)] = Box(taps, _where_least_is_lost(power[:, k], taps))
    return found


def _where_least_is_lost(power: Array, taps: int) -> int:
    """The first lag of a box from which it moves the least power (L,) out of the window."""
    before = np.concatenate([[0.0], np.cumsum(power)])  # of the first n lags
    after = before[-1] - before[::-1]  # of the last n lags

    def lost(first: int) -> float:
        moves = range(first, first + taps)
        return float(sum(after[by] if by > 0 else before[-by] for by in moves))

    return min(range(1 - taps, 1), key=lost)


def _after(descent: Descent, state: LoopState, change: Change, clock: Clock) -> LoopState | None:
    """The state a few iterations after a change, once J is lower than it would be without.

    None if it is not, or will not be: a fall of J is hardly ever followed by larger ones.
    """
    if clock.expired:
        return None
    fall = _expected_fall(state)
    new = _changed(descent, state, change)
    worth = (1 - _WORTH) * state.now.objective
    for i in range(1, _ADAPT + 1):
        before = new.now.objective
        new = descent.iterate(new, clock)
        objective = new.now.objective
        if objective <= worth - i * fall and descent.falls(state.now, new.now):
            return new
        hoped_for = objective - (_ADAPT - i) * max(0.0, before - objective)
        if new.over or clock.expired or hoped_for > worth - _ADAPT * fall:
            return None
    return None


def _changed(descent: Descent, state: LoopState, change: Change) -> LoopState:
    """The state with motifs changed, and activations from a few sweeps."""
    engine, now = descent.engine, state.now
    # Activations go where their motifs go.
    W, H = engine.shift(now.W, now.H, {k: box.middle for k, box in change.items()})
    motifs, old = engine.motifs(W).copy(), engine.motifs(now.W)
    for k, box in change.items():
        motifs[:, :, k] = box.of(old[:, :, k])
    W = engine.put_motifs(motifs)
    H = engine.sweep(H, engine.activation_problem(W, H), HALS("tiles"), _SWEEPS)
    new = replace(descent.at(W, H), kkt_H=np.nan)  # to go on from, not to be certified
    goal = replace(state.goal, certify=False)
    return replace(descent.moved(state, new), stop_reason=None, goal=goal)


def _expected_fall(state: LoopState) -> float:
    """By how much J would fall in an iteration: less than lately, in the same proportion.

    Nothing if the fit has converged.
    """
    if state.over:
        return 0.0
    m = state.iteration
    n = min(_RECENT, m // 2)
    recent = [state.course_before(i + 1) for i in (m - 2 * n, m - n, m)]
    values = [course.entry[3] for course in recent if course is not None]
    if len(values) < 3 or not values[0] > values[1] > values[2]:
        return 0.0
    earlier, later = values[0] - values[1], values[1] - values[2]
    in_the_data, here = state.objective, state.now.objective
    scale = here / in_the_data if in_the_data > 0 else 0.0
    return scale * later * min(1.0, later / earlier) / n
