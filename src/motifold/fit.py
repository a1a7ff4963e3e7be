"""The one loop: it owns clock, history and reasons to stop. And the search over starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from motifold.descent import Descent, Rules
from motifold.initialize import initial_factors
from motifold.moves import centred, revived, started_on_less, with_first_activations
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.solvers import Solver
from motifold.state import LoopState, SearchState

# "stalled": within this many iterations the objective fell by less than tol², relatively. (Near a
# minimum J is above it by the square of what the KKT residual is.)
_PATIENCE = 30
# A start is compared with the best one from this iteration on; its reason to stop is then its own.
_FIRST_LOOK, _OUTDONE = 16, "outdone"


class Loop:
    """One start of a fit, iterated to the end by ``run``; ``state`` is whole at any moment."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        rules: Rules,
        workers: Workers,
        callback: Callable[[LoopState], bool] | None = None,
    ) -> None:
        self.descent = Descent(problem, solver, rules, workers)
        self.callback = callback
        self.to_beat = np.inf  # J of the best start so far: one that will not reach it is given up
        self.state: LoopState | None = None

    def start(self, W: Array, H: Array, seconds: float = 0.0) -> LoopState:
        """The state before the first iteration."""
        state = self.descent.start(W, H, seconds)
        state.note()
        return state

    def run(self, state: LoopState) -> LoopState:
        """Iterate until there is a reason to stop; on Ctrl-C ``self.state`` has what there is."""
        began = time.perf_counter() - state.seconds
        self.state = state
        try:
            while not state.stop_reason:
                state = self._next(state)
                if not state.stop_reason:
                    state.seconds = time.perf_counter() - began
                    state.note()
                    state.stop_reason = self._reason_to_stop(state)
                self.state = state
            if state.stop_reason != _OUTDONE:
                state = self.state = self._finish(state)
            state.seconds = time.perf_counter() - began
            state.note()
        except KeyboardInterrupt:
            self.state.stop_reason = "interrupted"
            del self.state.record[self.state.iteration + 1 :]
            raise
        return state

    def _next(self, state: LoopState) -> LoopState:
        """The state after a move, if there is one to gain from, or else after an iteration."""
        descent = self.descent
        for move in (started_on_less, revived, centred):
            moved = move(descent, state)
            if moved is not None:
                return moved
        state = descent.iterate(state)
        # What has converged is centred once more, and then goes on.
        return (state.stop_reason and centred(descent, state)) or state

    def _reason_to_stop(self, state: LoopState) -> str:
        """The reasons that need no certificate."""
        rules = self.descent.rules
        objective = state.working_objective
        if objective < state.reference_objective * (1 - self.descent.progress):
            state.reference_objective, state.waited = objective, 0
        else:
            state.waited += 1
        if self.callback is not None and self.callback(state):
            return "callback"
        if self._is_outdone(state):
            return _OUTDONE
        if rules.tol > 0 and state.waited >= _PATIENCE:
            return "stalled"
        if state.iteration >= rules.max_iter:
            return "max_iter"
        if rules.max_time is not None and state.seconds >= rules.max_time:
            return "max_time"
        return ""

    def _is_outdone(self, state: LoopState) -> bool:
        """Whether J will hardly fall below what another start has reached.

        After m iterations (16, 32, 64, …): if J falls like J∞ + c/m, then J∞ is as far below J as J
        is below its value after m/2. Twice that is granted.
        """
        m = state.iteration
        if self.to_beat == np.inf or m < _FIRST_LOOK or m & (m - 1):
            return False
        now = state.objective
        gain = state.record[m // 2][3] - now
        return bool(now - 2 * gain > self.to_beat)

    def _finish(self, state: LoopState) -> LoopState:
        """End with the solve that ``transform`` does, and with a certificate."""
        descent = self.descent
        rules = descent.rules
        if rules.acceleration is not None and not (state.finished_H or state.gave_up_H):
            state = descent.solved(state)
        if np.isnan(state.certificate):
            state = descent.certified(state)
        if state.stop_reason != "interrupted" and state.certificate <= rules.tol:
            state = replace(state, stop_reason="converged")
        return state


def search(
    loop: Loop,
    record: SearchState,
    W: Array | None = None,
    H: Array | None = None,
    began: float | None = None,
) -> LoopState:
    """Run every start that ``record`` has left and return the best; ``record`` is kept up to date.

    ``W``, ``H`` are given factors, the same for every start. ``max_time`` covers all starts: each
    gets an equal part of what is left. ``began``: ``time.perf_counter()`` when the clock started.
    """
    began = time.perf_counter() if began is None else began
    descent = loop.descent
    rules = descent.rules
    n_init = len(record.seeds)
    elapsed = record.current.seconds if record.current else 0.0
    for index in range(record.index, n_init):
        record.index = index
        if rules.acceleration is not None and record.best is not None:
            loop.to_beat = record.best.objective
        now = elapsed + time.perf_counter() - began
        if rules.max_time is not None:
            share = max(0.0, rules.max_time - now) / (n_init - index)
            descent.rules = replace(rules, max_time=now + share)
        state = record.current
        if state is None or state.stop_reason:
            rng = np.random.default_rng(record.seeds[index])
            factors = initial_factors(descent.problem, rng, descent.workers, W, H)
            state = loop.start(*factors, now)
            if W is not None and H is None and descent.leaps:
                state = with_first_activations(descent, state, state.W)
                state.note()
        try:
            record.current = loop.run(state)
        except KeyboardInterrupt:
            record.current = loop.state
            raise
        record.best = record.leader
        if record.current.stop_reason == "callback":
            break
    assert record.best is not None
    return record.best
