"""The one loop: history and reasons to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from motifold.engines.base import Activations, ByRatios, Engine, Motifs
from motifold.fit.clock import Clock
from motifold.fit.moves import centred, revived, started_on_less
from motifold.fit.ratios import RatioDescent
from motifold.fit.reshape import reshaped
from motifold.fit.state import LoopState, Patience
from motifold.fit.step import Descent, Rules
from motifold.fit.stop import Ending, StopReason
from motifold.solvers import Solver

# "stalled": within this many iterations the objective fell by less than tol², relatively. (Near a
# minimum J is above it by the square of what the KKT residual is.)
_PATIENCE = 30
# A start is compared with the best one from this iteration on; where motifs are reshaped, which may
# bring it far ahead at once, only when they have been.
_FIRST_LOOK, _FIRST_LOOK_RESHAPED = 16, 64


class Loop:
    """One start of a fit, iterated to the end by ``run``; ``state`` is whole at any moment.

    Parameters
    ----------
    engine : the problem
    solver : the algorithm
    rules : when to stop, how to go on
    callback : called with the state after each iteration; returning True stops
    """

    def __init__(
        self,
        engine: Engine,
        solver: Solver,
        rules: Rules,
        callback: Callable[[LoopState], bool] | None = None,
    ) -> None:
        self.descent = (
            RatioDescent(cast(ByRatios, engine), solver, rules)
            if engine.model.loss.by_ratios
            else Descent(engine, solver, rules)
        )
        self.solver = solver
        self.callback = callback
        self.to_beat = np.inf  # J of the best start so far: one that will not reach it is given up
        self.state: LoopState | None = None

    def start(self, W: Motifs, H: Activations, seconds: float = 0.0) -> LoopState:
        """The state before the first iteration."""
        return self.descent.start(W, H, seconds).noted()

    def run(self, state: LoopState, clock: Clock | None = None) -> LoopState:
        """Iterate until there is a reason to stop; on Ctrl-C ``self.state`` has what there is."""
        clock = Clock(elapsed=state.seconds) if clock is None else clock
        self.state = state
        while not state.over:
            state = self._next(state, clock)
            if not state.over:
                state = self._judged(state.noted(clock.seconds), clock)
            self.state = state
        if not state.given_up:
            state = self._finished(state, clock)
        state = self.state = state.noted(clock.seconds)
        return state

    def _next(self, state: LoopState, clock: Clock) -> LoopState:
        """The state after a move, if there is one to gain from, or else after an iteration."""
        descent = self.descent
        for move in (started_on_less, revived, centred, reshaped):
            moved = move(descent, state, clock)
            if moved is not None and moved.iteration > state.iteration:
                return moved
            state = moved or state  # it may have learnt that it need not be tried again
        state = descent.iterate(state, clock)
        # What has converged is centred or reshaped once more, and then goes on.
        for move in (centred, reshaped) if state.over else ():
            state = move(descent, state, clock) or state
            if not state.over:
                break
        return state

    def _judged(self, state: LoopState, clock: Clock) -> LoopState:
        """The state with its reason to stop, of those that need no certificate."""
        objective, patience = state.now.objective, state.patience
        if objective < patience.reference * (1 - self.descent.progress):
            patience = Patience(objective)
        else:
            patience = replace(patience, waited=patience.waited + 1)
        state = replace(state, patience=patience)
        asked = self.callback is not None and self.callback(state)
        reason = StopReason.CALLBACK if asked else self._limit(state, clock)
        given_up = reason is not StopReason.CALLBACK and self._is_outdone(state)
        return replace(state, stop_reason=None if given_up else reason, given_up=given_up)

    def _limit(self, state: LoopState, clock: Clock) -> StopReason | None:
        """The limit that has been reached, if any."""
        rules = self.descent.rules
        if rules.tol > 0 and state.patience.waited >= _PATIENCE:
            return StopReason.STALLED
        if state.iteration >= rules.max_iter:
            return StopReason.MAX_ITER
        return StopReason.MAX_TIME if state.seconds >= clock.limit else None

    def _is_outdone(self, state: LoopState, objective: float | None = None) -> bool:
        """Whether J will hardly fall below what another start has reached.

        After m iterations, a power of 2: if J falls like J∞ + c/m, then J∞ is as far below J as J
        is below its value after m/2. Twice that is granted. What is ahead is never given up.
        """
        m, J = state.iteration, state.objective if objective is None else objective
        first = _FIRST_LOOK_RESHAPED if self.descent.reshapes else _FIRST_LOOK
        if self.to_beat >= J or m < first or m & (m - 1):
            return False
        halfway = state.course_before(m // 2 + 1)
        assert halfway is not None
        return bool(J - 2 * (halfway.entry[3] - J) > self.to_beat)

    def would_have_been_outdone(self, state: LoopState) -> bool:
        """Whether a start that went to its end beside others would have been given up."""
        limits = StopReason.MAX_ITER, StopReason.MAX_TIME, StopReason.STALLED
        # Where a limit ended it, it was looked at before, as ever.
        course = state.course_before(state.iteration + (state.stop_reason in limits))
        while course is not None:
            m, _, _, J = course.entry
            if self._is_outdone(replace(state, iteration=int(m), course=course), J):
                return True
            course = course.previous
        return False

    def _finished(self, state: LoopState, clock: Clock) -> LoopState:
        """End with the solve that ``transform`` does, and with a certificate."""
        descent, tol = self.descent, self.descent.rules.tol
        if descent.rules.acceleration is not None and state.goal.ending is Ending.OPEN:
            state = descent.solved(state, clock)
        if np.isnan(state.now.certificate):
            state = descent.certified(state)
        if state.now.certificate <= tol:
            state = replace(state, stop_reason=StopReason.CONVERGED)
        return state
