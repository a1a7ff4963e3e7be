"""The one loop: it owns the clock, the history, the extrapolation and the reasons to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.deconvolve import solve_H
from motifold.initialize import initial_factors
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.solvers import HALS, Inner, Solver
from motifold.state import LoopState, SearchState
from motifold.statistics import free_loss_noise, free_squared_residual, squared_residual
from motifold.subproblem import (
    h_subproblem,
    kkt_of_motifs,
    penalty,
    update_activations,
    update_motifs,
    w_subproblem,
)
from motifold.subset import subset

# The free loss is trusted while it is this many times its own noise.
_TRUST = 1e4
# Extrapolation (Ang & Gillis 2019): growth, growth of the limit, cut after a rise.
_GROW, _GROW_LIMIT, _CUT = 1.05, 1.01, 1.5
# The last solve may raise J by this much, relatively: the same minimum reached from elsewhere.
_ROUNDING = 1e-6
_TIGHTEST = 1e-12
# "stalled": within this many iterations the objective fell by less than tol², relatively. (Near a
# minimum J is above it by the square of what the KKT residual is.)
_PATIENCE = 30
# On a part of the recording: a start whose KKT residual is below is not far from optimal; sweeps of
# H when all of the recording is seen; the fall of J in five iterations that is worth the while; and
# all iterations together, in iterations on the whole.
_FAR, _FIRST_ACTIVATIONS, _PROGRESS, _WORTH = 0.3, Inner(max_sweeps=12), 0.99, 2


@dataclass(frozen=True)
class Acceleration:
    """What ``acceleration="auto"`` adds to the published algorithms.

    Attributes
    ----------
    inner : sweeps of each factor per data pass
    momentum : of the extrapolation between iterations, at first
    subset_iterations : iterations on a part of the recording, before the first one on all of it
    """

    inner: Inner = field(default_factory=lambda: Inner(max_sweeps=4))
    momentum: float = 0.5
    subset_iterations: int = 30


@dataclass(frozen=True)
class Rules:
    """When the loop stops, and how it goes on."""

    max_iter: int = 1000
    max_time: float | None = None
    tol: float = 1e-3
    acceleration: Acceleration | None = None


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
        self.problem = problem
        self.solver = solver
        self.rules = rules
        self.workers = workers
        self.callback = callback
        self.state: LoopState | None = None
        accelerated = rules.acceleration
        self.inner = accelerated.inner if accelerated else Inner()
        leaves_zero = getattr(solver, "leaves_zero", True)
        self._momentum = accelerated.momentum if accelerated and leaves_zero else 0.0
        self._on_a_part = accelerated.subset_iterations if accelerated and leaves_zero else 0
        self._stall = max(rules.tol**2, 10 * float(np.finfo(problem.dtype).eps))
        # ‖X − X̂‖² of a fit that is perfect but for rounding.
        self._perfect = (10 * float(np.finfo(problem.dtype).eps)) ** 2 * problem.squared_norm
        # Missing entries enter the free loss and leave it again.
        power = problem.squared_norm / max(problem.observed_share, 1e-3)
        self._noise = free_loss_noise(problem.dtype) * power

    def start(self, W: Array, H: Array, seconds: float = 0.0) -> LoopState:
        """The state before the first iteration."""
        problem = self.problem
        statistics = h_subproblem(problem, W, H, self.workers)
        state = LoopState(
            W,
            H,
            W_previous=W,
            H_previous=H,
            scale=problem.scale,
            squared_norm=problem.squared_norm,
            squared_residual=squared_residual(problem, W, H, self.workers),
            penalty=penalty(problem, W, H, statistics),
            kkt_H=kkt_residual_H(problem.penalties, H, statistics),
            momentum=self._momentum,
            target=self.rules.tol,
            transform_tol=transform_tolerance(self.rules.tol),
            seconds=seconds,
        )
        state.reference_objective = state.working_objective
        state.note()
        return state

    def run(self, state: LoopState) -> LoopState:
        """Iterate until there is a reason to stop; on Ctrl-C ``self.state`` has what there is."""
        began = time.perf_counter() - state.seconds
        self.state = state
        try:
            while not state.stop_reason:
                ahead = None if state.iteration else self._started_on_a_part(state)
                state = ahead or self._iterate(state)
                if not state.stop_reason:
                    state.seconds = time.perf_counter() - began
                    state.note()
                    state.stop_reason = self._reason_to_stop(state)
                self.state = state
            state = self.state = self._finish(state)
            state.seconds = time.perf_counter() - began
            state.note()
        except KeyboardInterrupt:
            self.state.stop_reason = "interrupted"
            del self.state.record[self.state.iteration + 1 :]
            raise
        return state

    def _started_on_a_part(self, state: LoopState) -> LoopState | None:
        """The state after some iterations on a part of the recording, if that lowers J.

        Motifs take shape long before every bin has been seen. A start that is no longer far from
        optimal is left alone.
        """
        part = subset(self.problem) if self._on_a_part and state.kkt_H > _FAR else None
        if part is None:
            return None
        W = self._motifs_of(*part, state)
        problem, workers = self.problem, self.workers
        H = np.zeros_like(state.H)
        statistics = h_subproblem(problem, W, H, workers)
        for _ in range(4 if problem.hidden else 1):
            statistics = update_activations(HALS(), problem, H, statistics, _FIRST_ACTIVATIONS)
        new = replace(
            state,
            W=W,
            H=H,
            W_previous=W,
            H_previous=H,
            squared_residual=squared_residual(problem, W, H, workers),
            penalty=penalty(problem, W, H, statistics),
            kkt_H=kkt_residual_H(problem.penalties, H, statistics),
            iteration=1,
        )
        return new if self._falls(state, new) else None

    def _motifs_of(self, part: Problem, rows: np.ndarray, state: LoopState) -> Array:
        """The motifs after some iterations on a part of the recording, which has these rows."""
        loop = Loop(part, self.solver, replace(self.rules, tol=0), self.workers)
        loop._noise = 0.0  # nobody judges this loss
        time_left = np.inf
        if self.rules.max_time is not None:
            time_left = (self.rules.max_time - state.seconds) / 4
        n_iterations = min(self._on_a_part, _WORTH * self.problem.T // part.T)
        began = time.perf_counter()
        small = loop.start(state.W, np.ascontiguousarray(state.H[rows]))
        objectives = [small.working_objective]
        while (
            small.iteration < n_iterations
            and not small.stop_reason
            and time.perf_counter() - began < time_left
            and objectives[-1] < _PROGRESS * min(objectives[:-5], default=np.inf)
        ):
            small = loop._iterate(small)
            objectives.append(small.working_objective)
        return small.W

    def _iterate(self, state: LoopState) -> LoopState:
        """One iteration: W, then H. With extrapolation, taken back and repeated if J rose."""
        if self._momentum and state.iteration and not state.certify:
            step = _extrapolated(state, state.momentum)
            new = self._step(state, *step)
            if self._falls(state, new):
                limit = min(1.0, state.momentum_limit * _GROW_LIMIT)
                grown = min(limit, state.momentum * _GROW)
                return replace(new, momentum=grown, momentum_limit=limit)
            state = replace(state, momentum=state.momentum / _CUT, momentum_limit=state.momentum)
        return self._step(state, state.W, state.H)

    def _step(self, state: LoopState, W: Array, H: Array) -> LoopState:
        """Update both factors from (W, H); or, if that is the iterate and it is optimal, stop."""
        problem, workers = self.problem, self.workers
        from_iterate = W is state.W and H is state.H
        W, H = W.copy(), H.copy()

        statistics = w_subproblem(problem, W, H, workers)
        kkt_W = kkt_of_motifs(problem, W, statistics)
        if from_iterate:
            state.kkt_W = kkt_W
            if state.iteration and state.certificate <= state.target:
                ended = self._certified(state)
                return ended if ended.stop_reason else self._step(ended, ended.W, ended.H)
        update_motifs(self.solver, problem, W, statistics, self.inner)

        h_stats = h_subproblem(problem, W, H, workers)
        h_stats = update_activations(self.solver, problem, H, h_stats, self.inner)
        gradient = h_stats.gradient(H)
        kkt_H = kkt_residual_H(problem.penalties, H, h_stats, gradient)
        new = replace(
            state,
            W=W,
            H=H,
            W_previous=state.W,
            H_previous=state.H,
            squared_residual=free_squared_residual(problem, H, h_stats, gradient),
            residual_is_exact=False,
            penalty=penalty(problem, W, H, h_stats),
            kkt_W=np.nan,
            kkt_H=kkt_H,
            kkt_estimate=max(kkt_W, kkt_H),
            # The residual at the extrapolated point is near that of the iterate: when it is small
            # the next iteration starts from the iterate itself and so certifies it.
            certify=bool(max(kkt_W, kkt_H) <= 2 * state.target),
            finished_H=False,
            gave_up_H=False,
            iteration=state.iteration + 1,
        )
        self._sharpen(state, new)
        return new

    def _sharpen(self, old: LoopState, new: LoopState) -> None:
        """Replace the free loss by the residual's own where cancellation would spoil it."""
        change = abs(new.working_objective - old.working_objective)
        if new.squared_residual < _TRUST * self._noise or change < 4 * self._noise:
            for state in (old, new):
                if not state.residual_is_exact:
                    state.squared_residual = squared_residual(
                        self.problem, state.W, state.H, self.workers
                    )
                    state.residual_is_exact = True

    def _falls(self, old: LoopState, new: LoopState) -> bool:
        return new.working_objective <= old.working_objective

    def _reason_to_stop(self, state: LoopState) -> str:
        """The reasons that need no certificate."""
        rules = self.rules
        objective = state.working_objective
        if objective < state.reference_objective * (1 - self._stall):
            state.reference_objective, state.waited = objective, 0
        else:
            state.waited += 1
        if self.callback is not None and self.callback(state):
            return "callback"
        if rules.tol > 0 and state.waited >= _PATIENCE:
            return "stalled"
        if state.iteration >= rules.max_iter:
            return "max_iter"
        if rules.max_time is not None and state.seconds >= rules.max_time:
            return "max_time"
        return ""

    def _certified(self, state: LoopState) -> LoopState:
        """The iterate is optimal to ``target``: stop, if it stays so with H solved for good."""
        if self.rules.acceleration is None:
            return replace(state, stop_reason="converged")
        finished = self._solved(state, deadline=self._deadline(state))
        if finished.certificate <= self.rules.tol:
            return replace(finished, stop_reason="converged")
        # W is not optimal for the new H: go on from there, and ask for more the next time.
        return replace(finished, target=state.target / 3, certify=False)

    def _finish(self, state: LoopState) -> LoopState:
        """End with the solve that ``transform`` does, and with a certificate."""
        if self.rules.acceleration is not None and not (state.finished_H or state.gave_up_H):
            state = self._solved(state, deadline=self._deadline(state))
        if np.isnan(state.certificate):
            state = self._certify(state)
        if state.stop_reason != "interrupted" and state.certificate <= self.rules.tol:
            state = replace(state, stop_reason="converged")
        return state

    def _deadline(self, state: LoopState) -> float | None:
        """How many seconds the last solve for H may take."""
        if self.rules.max_time is None:
            return None
        return max(0.0, self.rules.max_time - state.seconds) + 0.1 * self.rules.max_time

    def _solved(self, state: LoopState, deadline: float | None) -> LoopState:
        """The state with H from the convex problem, solved from zero as ``transform`` does.

        The tolerance is tightened until the objective is not above the iterate's (rounding
        aside). If that cannot be reached in time, the iterate is kept.
        """
        problem, W = self.problem, state.W
        statistics = h_subproblem(problem, W, state.H, self.workers)
        solution = solve_H(problem, statistics, state.transform_tol, max_time=deadline)
        while True:
            H = solution.H.astype(problem.dtype, copy=False)
            new = replace(
                state,
                H=H,
                H_previous=H,
                W_previous=W,
                squared_residual=squared_residual(problem, W, H, self.workers),
                residual_is_exact=True,
                penalty=penalty(problem, W, H, statistics),
                transform_tol=solution.tol,
                finished_H=True,
                certify=True,
                momentum=self._momentum,
                momentum_limit=1.0,
            )
            self._sharpen(state, state)
            allowance = _ROUNDING * state.working_objective + self._perfect
            if new.working_objective <= state.working_objective + allowance:
                return self._certify(new)
            # With ortho_H there may be several stationary points: this is another one.
            elsewhere = problem.penalties.ortho_H > 0
            if not solution.solved or solution.tol < _TIGHTEST or elsewhere:
                return replace(state, gave_up_H=True)
            solution = solve_H(
                problem, statistics, solution.tol / 10, start=solution, max_time=deadline
            )

    def _certify(self, state: LoopState) -> LoopState:
        """The state with both of its residuals known."""
        problem, workers, W, H = self.problem, self.workers, state.W, state.H
        return replace(
            state,
            kkt_W=kkt_of_motifs(problem, W, w_subproblem(problem, W, H, workers)),
            kkt_H=kkt_residual_H(problem.penalties, H, h_subproblem(problem, W, H, workers)),
        )


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
    rules = loop.rules
    n_init = len(record.seeds)
    elapsed = record.current.seconds if record.current else 0.0
    for index in range(record.index, n_init):
        record.index = index
        now = elapsed + time.perf_counter() - began
        if rules.max_time is not None:
            share = max(0.0, rules.max_time - now) / (n_init - index)
            loop.rules = replace(rules, max_time=now + share)
        state = record.current
        if state is None or state.stop_reason:
            rng = np.random.default_rng(record.seeds[index])
            state = loop.start(*initial_factors(loop.problem, rng, loop.workers, W, H), now)
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


def transform_tolerance(tol: float) -> float:
    """Tolerance of the convex problem in H: tighter than the fit's."""
    return max(1e-2 * tol, 1e-10)


def _extrapolated(state: LoopState, momentum: float) -> tuple[Array, Array]:
    """The point ahead of the iterate, in the direction of its last move, cut off at zero."""
    beta = state.H.dtype.type(momentum)
    W = state.W + beta * (state.W - state.W_previous)
    H = state.H + beta * (state.H - state.H_previous)
    return np.maximum(W, 0, out=W), np.maximum(H, 0, out=H)
