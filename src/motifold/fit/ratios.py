"""Descent on a β-divergence: majorisation, and leaps beyond it that are taken back if J rises.

Block majorisation with extrapolation (Hien, Leplat & Gillis 2024), in a monotone form: the iterate
*is* the extrapolated point, whose objective and gradient one pass gives together. Four products an
iteration, and half as many more where a leap was too far.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from motifold.engines.base import Activations, ByRatios, Motifs
from motifold.fit.clock import Clock
from motifold.fit.moves import first_activations, motifs_of_less
from motifold.fit.solve import longer, shorter
from motifold.fit.state import Goal, Iterate, LoopState, Pace, Patience
from motifold.fit.step import Descent, Rules
from motifold.fit.stop import Ending, StopReason
from motifold.solvers import HALS, Solver

# Iterations of squared error instead of the first iterations (none the first time, where a start on
# a part of the recording stands for them), what each must gain for more to follow, the share of the
# time left that they may take, and the KKT residual of the motifs below which a start is near
# enough to be left alone.
_ON_SQUARES, _WORTH, _TIME_ON_SQUARES, _NEAR = (2, 4, 8), 0.01, 1 / 4, 0.05
# All iterations on a part together, in iterations on the whole: with more, motifs suit the part.
_ON_A_PART = 1
# The first leap beyond a step, in units of the step itself.
_FIRST_LEAP = 1.0


class RatioDescent(Descent):
    """An engine for a loss by ratios, a solver, and how the factors go down."""

    engine: ByRatios

    def __init__(
        self, engine: ByRatios, solver: Solver, rules: Rules, *, judged: bool = True
    ) -> None:
        super().__init__(engine, solver, rules, judged=judged)
        # Of the moves made for squared error, only the start is used.
        self.leaps = self.reshapes = False
        self._faster = rules.acceleration is not None

    def start(self, W: Motifs, H: Activations, seconds: float = 0.0) -> LoopState:
        """The state before the first iteration."""
        now = self.at(W, H)
        return LoopState(
            now,
            (W, H),
            self.engine.facts.scale,
            self.engine.reference_deviance,
            Pace(_FIRST_LEAP if self._faster else 0.0),
            Goal(self.rules.tol, ratio_tolerance(self.rules.tol), ending=Ending.KEPT),
            patience=Patience(now.objective),
            seconds=seconds,
            beta=self.engine.model.loss.beta,
            background=self.engine.model.background,
            gather=self.engine.gather,
        )

    def at(self, W: Motifs, H: Activations) -> Iterate:
        """What is known at these factors before any step."""
        found = self.engine.assess_ratios(W, H)
        return Iterate(W, H, found.deviance, found.penalty, kkt_W=found.kkt_W)

    def iterate(self, state: LoopState, clock: Clock) -> LoopState:
        """One iteration: W, H, and a leap; taken back if J rose."""
        if self._faster and _squares_pay(state):
            found = self._on_squares(state, clock)
            if found is not None:
                return found
        now, goal = state.now, state.goal
        if goal.certify:
            state = self.certified(state)
            if state.now.certificate <= self.rules.tol:
                return replace(state, stop_reason=StopReason.CONVERGED)
        new = self.engine.advance(now.W, now.H, self.solver)
        pace = state.pace
        if self._faster:
            leapt = self.at(*self.engine.leap(now.W, now.H, new, pace.momentum))
            if leapt.objective <= now.objective:
                grown = replace(pace, momentum=longer(pace.momentum))
                return self._reached(replace(state, pace=grown), leapt, new.kkt_H)
            state = replace(state, pace=replace(pace, momentum=shorter(pace.momentum)))
        reached = self.at(new.W, new.H)
        if not reached.objective <= now.objective:  # by rounding: there is nothing more to gain
            reached = now
        return self._reached(state, reached, new.kkt_H)

    def _reached(self, state: LoopState, new: Iterate, kkt_H: float) -> LoopState:
        """The state at a new iterate."""
        estimate = float(np.maximum(new.kkt_W, kkt_H))
        certify = estimate <= 2 * self.rules.tol
        return replace(
            state,
            now=replace(new, estimate=estimate),
            before=(state.now.W, state.now.H),
            goal=replace(state.goal, certify=certify),
            iteration=state.iteration + 1,
        )

    def _on_squares(self, state: LoopState, clock: Clock) -> LoopState | None:
        """The state after some iterations of weighed squared error, or None if J is not lower.

        They cost half as much and go much further: most of the way for counts, and a good part of
        it for spectra. A start that is not far from optimal is left alone.
        """
        if not state.iteration and state.now.kkt_W <= _NEAR:
            return None
        engine, weights = self.engine.squares()
        rules = replace(self.rules, tol=0.0, center=False)
        small = Descent(engine, HALS(), rules, judged=False)
        clock = clock.part(_TIME_ON_SQUARES)
        now = state.now
        W = engine.put_motifs(self.engine.motifs(now.W) * weights[:, None, None])
        found = None
        if not state.iteration:
            found = motifs_of_less(small, W, now.H, clock, worth=_ON_A_PART, mend=True)
        if found is not None:
            W, H = found[0], first_activations(engine, *found)
        else:
            W, H = self._burst(small, W, now.H, _ON_SQUARES[state.iteration], clock)
        new = self.at(*self.engine.from_squares(W, H, weights, now.W))
        return self._reached(state, new, np.inf) if new.objective < now.objective else None

    @staticmethod
    def _burst(
        small: Descent, W: Motifs, H: Activations, n_iterations: int, clock: Clock
    ) -> tuple[Motifs, Activations]:
        """The factors after so many iterations, or fewer if the time is up."""
        course = small.start(W, H)
        for _ in range(n_iterations):
            if course.over or clock.expired:
                break
            course = small.iterate(course, clock)
        return course.now.W, course.now.H

    def judged(self, old: Iterate, new: Iterate) -> tuple[Iterate, Iterate]:
        """As they are: the divergence does not cancel."""
        return old, new

    def solved(self, state: LoopState, clock: Clock) -> LoopState:
        """The state itself: its activations are the iterate's."""
        return replace(state, goal=replace(state.goal, ending=Ending.KEPT))

    def certified(self, state: LoopState) -> LoopState:
        """The state with both of its residuals known."""
        now = state.now
        kkt_H = self.engine.kkt_of_activations(now.W, now.H)
        return replace(state, now=replace(now, kkt_H=kkt_H))


def _squares_pay(state: LoopState) -> bool:
    """Whether the next iteration is one of squared error: the last of them went down far enough."""
    if state.iteration < 2:
        return True
    if state.iteration >= len(_ON_SQUARES):
        return False
    before, now = state.history.objective[-2:]
    if not 0 < before < np.inf:  # J of data near the ends of all numbers is beyond, in their units
        before, now = state.history.loss[-2:]
    return bool(before - now >= _WORTH * _ON_SQUARES[state.iteration - 1] * now)


def ratio_tolerance(tol: float) -> float:
    """Tolerance of the problem in H: tighter than the fit's (0: its default).

    Not tighter than what steps of majorisation reach in a reasonable number.
    """
    return max(0.1 * (tol or Rules.tol), 5e-5)
