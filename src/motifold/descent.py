"""One iteration and what belongs to it: the state at given factors, certificate, last solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from motifold.certificate import kkt_residual_H
from motifold.deconvolve import solve_H
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.solvers import Inner, Solver
from motifold.state import LoopState
from motifold.statistics import (
    HStatistics,
    free_loss_noise,
    free_squared_residual,
    squared_residual,
)
from motifold.subproblem import (
    h_subproblem,
    kkt_of_motifs,
    penalty,
    update_activations,
    update_motifs,
    w_subproblem,
)

# The free loss is trusted while it is this many times its own noise.
_TRUST = 1e4
# Extrapolation (Ang & Gillis 2019): growth, growth of the limit, cut after a rise.
_GROW, _GROW_LIMIT, _CUT = 1.05, 1.01, 1.5
# The last solve may raise J by this much, relatively: the same minimum reached from elsewhere.
_ROUNDING = 1e-6
_TIGHTEST = 1e-12
# Missing entries follow H at once where the KKT residual of H is below so many times its target;
# above, they follow in the next iteration.
_FOLLOW = 4


@dataclass(frozen=True)
class Acceleration:
    """What ``acceleration="auto"`` adds to the published algorithms.

    Attributes
    ----------
    inner : sweeps of each factor per data pass
    momentum : of the extrapolation between iterations, at first
    first_iterations : on a part of the recording, or without penalties that couple motifs, before
        the first one on the whole problem
    """

    inner: Inner = field(default_factory=lambda: Inner(max_sweeps=4))
    momentum: float = 0.5
    first_iterations: int = 16


@dataclass(frozen=True)
class Rules:
    """When the loop stops, and how it goes on."""

    max_iter: int = 1000
    max_time: float | None = None
    tol: float = 1e-3
    acceleration: Acceleration | None = None
    center: bool = False


class Descent:
    """A problem, a solver, and how the factors go down: no clock, no history, no reason to stop."""

    def __init__(self, problem: Problem, solver: Solver, rules: Rules, workers: Workers) -> None:
        self.problem = problem
        self.solver = solver
        self.rules = rules
        self.workers = workers
        accelerated = rules.acceleration
        self.inner = accelerated.inner if accelerated else Inner()
        # Extrapolation, revival and sparse starts are not for a solver that cannot leave zero.
        self.leaps = accelerated is not None and getattr(solver, "leaves_zero", True)
        self._momentum = accelerated.momentum if accelerated and self.leaps else 0.0
        # The least fall of J that counts as progress, relatively.
        self.progress = max(rules.tol**2, 10 * float(np.finfo(problem.dtype).eps))
        # ‖X − X̂‖² of a fit that is perfect but for rounding.
        self.perfect = (10 * float(np.finfo(problem.dtype).eps)) ** 2 * problem.squared_norm
        # Missing entries enter the free loss and leave it again.
        power = problem.squared_norm / max(problem.observed_share, 1e-3)
        self.noise = free_loss_noise(problem.dtype) * power

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
        return state

    def iterate(self, state: LoopState) -> LoopState:
        """One iteration: W, then H. With extrapolation, taken back and repeated if J rose."""
        if self._momentum and state.iteration and not state.certify:
            step = _extrapolated(state, state.momentum)
            new = self._step(state, *step)
            if self.falls(state, new):
                limit = min(1.0, state.momentum_limit * _GROW_LIMIT)
                grown = min(limit, state.momentum * _GROW)
                return replace(new, momentum=grown, momentum_limit=limit)
            state = replace(state, momentum=state.momentum / _CUT, momentum_limit=state.momentum)
        return self._step(state, state.W, state.H)

    def _step(self, state: LoopState, W: Array, H: Array) -> LoopState:
        """Update both factors from (W, H); or, if that is the iterate and it is optimal, stop."""
        problem, workers = self.problem, self.workers
        from_iterate = W is state.W and H is state.H
        statistics = w_subproblem(problem, W, H, workers)
        kkt_W = kkt_of_motifs(problem, W, statistics)
        if from_iterate:
            state.kkt_W = kkt_W
            if state.iteration and state.certificate <= state.target:
                ended = self._converged(state)
                return ended if ended.stop_reason else self._step(ended, ended.W, ended.H)
        W, H = W.copy(), H.copy()
        update_motifs(self.solver, problem, W, statistics, self.inner)

        h_stats = h_subproblem(problem, W, H, workers)
        update_activations(self.solver, problem, H, h_stats, self.inner)
        gradient = h_stats.gradient(H)
        kkt_H = kkt_residual_H(problem.penalties, H, h_stats, gradient)
        followed = not problem.hidden or kkt_H <= _FOLLOW * state.target
        if problem.hidden and followed:
            h_stats = h_stats.refilled(H)
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
            kkt_H=kkt_H if followed else np.nan,
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

    def falls(self, old: LoopState, new: LoopState) -> bool:
        """Whether J is not above what it was."""
        self._sharpen(old, new)
        return new.working_objective <= old.working_objective

    def _sharpen(self, old: LoopState, new: LoopState) -> None:
        """Replace the free loss by the residual's own where cancellation would spoil it."""
        change = abs(new.working_objective - old.working_objective)
        if new.squared_residual < _TRUST * self.noise or change < 4 * self.noise:
            for state in (old, new):
                if not state.residual_is_exact:
                    state.squared_residual = squared_residual(
                        self.problem, state.W, state.H, self.workers
                    )
                    state.residual_is_exact = True

    def moved(
        self, state: LoopState, W: Array, H: Array, statistics: HStatistics, **changes: Any
    ) -> LoopState:
        """The state at other factors, from where the iteration goes on afresh."""
        problem, workers = self.problem, self.workers
        unknown = {"kkt_W": np.nan, "kkt_H": np.nan}
        return replace(
            state,
            W=W,
            H=H,
            W_previous=W,
            H_previous=H,
            squared_residual=squared_residual(problem, W, H, workers),
            residual_is_exact=True,
            penalty=penalty(problem, W, H, statistics),
            **(unknown | changes),
        )

    def _converged(self, state: LoopState) -> LoopState:
        """The iterate is optimal to ``target``: stop, if it stays so with H solved for good."""
        if self.rules.acceleration is None:
            return replace(state, stop_reason="converged")
        finished = self.solved(state)
        if finished.certificate <= self.rules.tol:
            return replace(finished, stop_reason="converged")
        if self.problem.hidden and state.target < self.rules.tol:
            # Activations whose motif is mostly hidden are hardly determined, and W is never optimal
            # for those of the last solve. It is for the iterate's.
            return replace(state, stop_reason="converged", gave_up_H=True)
        # W is not optimal for the new H: go on from there, and ask for more the next time.
        return replace(finished, target=state.target / 3, certify=False)

    def solved(self, state: LoopState) -> LoopState:
        """The state with H from the convex problem, solved from zero as ``transform`` does.

        The tolerance is tightened until the objective is not above the iterate's (rounding
        aside). If that cannot be reached in time, the iterate is kept.
        """
        problem, W = self.problem, state.W
        deadline = None
        if self.rules.max_time is not None:
            deadline = max(0.0, self.rules.max_time - state.seconds) + 0.1 * self.rules.max_time
        statistics = h_subproblem(problem, W, state.H, self.workers)
        solution = solve_H(problem, statistics, state.transform_tol, max_time=deadline)
        while True:
            H = solution.H.astype(problem.dtype, copy=False)
            new = self.moved(
                state,
                W,
                H,
                statistics,
                transform_tol=solution.tol,
                finished_H=True,
                certify=True,
                momentum=self._momentum,
                momentum_limit=1.0,
            )
            self._sharpen(state, state)
            allowance = _ROUNDING * state.working_objective + self.perfect
            if new.working_objective <= state.working_objective + allowance:
                return self.certified(new)
            # With ortho_H there may be several stationary points: this is another one.
            elsewhere = problem.penalties.ortho_H > 0
            if not solution.solved or solution.tol < _TIGHTEST or elsewhere:
                return replace(state, gave_up_H=True)
            solution = solve_H(
                problem, statistics, solution.tol / 10, start=solution, max_time=deadline
            )

    def certified(self, state: LoopState) -> LoopState:
        """The state with both of its residuals known."""
        problem, workers, W, H = self.problem, self.workers, state.W, state.H
        return replace(
            state,
            kkt_W=kkt_of_motifs(problem, W, w_subproblem(problem, W, H, workers)),
            kkt_H=kkt_residual_H(problem.penalties, H, h_subproblem(problem, W, H, workers)),
        )


def transform_tolerance(tol: float) -> float:
    """Tolerance of the convex problem in H: tighter than the fit's (0: its default)."""
    return max(1e-2 * (tol or Rules.tol), 1e-10)


def _extrapolated(state: LoopState, momentum: float) -> tuple[Array, Array]:
    """The point ahead of the iterate, in the direction of its last move, cut off at zero."""
    beta = state.H.dtype.type(momentum)
    W = state.W + beta * (state.W - state.W_previous)
    H = state.H + beta * (state.H - state.H_previous)
    return np.maximum(W, 0, out=W), np.maximum(H, 0, out=H)
