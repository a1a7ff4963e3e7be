"""One iteration and what belongs to it: the state at given factors, certificate, last solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from motifold.engines.base import Activations, Engine, Motifs, Step, Sums, noise
from motifold.fit.clock import Clock
from motifold.fit.solve import solve_H
from motifold.fit.state import Goal, Iterate, LoopState, Pace, Patience
from motifold.fit.stop import Ending, StopReason
from motifold.solvers import Inner, Solver
from motifold.solvers.base import accelerated, leaves_zero

# The free loss is trusted while it is this many times its own noise.
_TRUST = 1e4
# X̂ is unlike the data, in another unit perhaps, where its power is so many times the data's.
_UNLIKE = 4
# Extrapolation (Ang & Gillis 2019): growth, growth of the limit, cut after a rise.
_GROW, _GROW_LIMIT, _CUT = 1.05, 1.01, 1.5
# The last solve may raise J by this much, relatively: the same minimum reached from elsewhere. It
# may take this share of the fit's time beyond it.
_ROUNDING, _GRACE = 1e-6, 0.1
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
    reshape : whether motifs that are split or cut off are mended (``fit/reshape.py``)
    """

    inner: Inner = field(default_factory=lambda: Inner(max_sweeps=4))
    momentum: float = 0.5
    first_iterations: int = 16
    reshape: bool = True


@dataclass(frozen=True)
class Rules:
    """When the loop stops, and how it goes on."""

    max_iter: int = 1000
    tol: float = 1e-3
    acceleration: Acceleration | None = None
    center: bool = False


class Descent:
    """An engine, a solver, and how the factors go down: no history, no reason to stop but one."""

    def __init__(
        self, engine: Engine, solver: Solver, rules: Rules, *, judged: bool = True
    ) -> None:
        self.engine = engine
        self.rules = rules
        faster = rules.acceleration
        self.solver = solver if faster is None else accelerated(solver)
        self.inner = faster.inner if faster else Inner()
        # Extrapolation, revival and sparse starts are not for a solver that cannot leave zero.
        self.leaps = faster is not None and leaves_zero(solver)
        self.reshapes = self.leaps and faster is not None and faster.reshape
        self._momentum = faster.momentum if faster and self.leaps else 0.0
        facts = engine.facts
        rounding = 10 * float(np.finfo(facts.dtype).eps)
        # The least fall of J that counts as progress, relatively.
        self.progress = max(min(rules.tol, 1.0) ** 2, rounding)
        # ‖X − X̂‖² of a fit that is perfect but for rounding.
        self.perfect = rounding**2 * facts.squared_norm
        # Error of the free loss, in which missing entries enter and leave again, in units of the
        # terms that it is made of: about so large. 0 if nobody judges.
        self._noise = noise(facts.dtype) if judged else 0.0
        self._power = facts.squared_norm / max(facts.observed_share, 1e-3)
        self._rounding = rounding

    def start(self, W: Motifs, H: Activations, seconds: float = 0.0) -> LoopState:
        """The state before the first iteration."""
        facts = self.engine.facts
        now = self.at(W, H)
        return LoopState(
            now,
            (W, H),
            facts.scale,
            facts.squared_norm,
            Pace(self._momentum),
            Goal(self.rules.tol, transform_tolerance(self.rules.tol)),
            patience=Patience(now.objective),
            seconds=seconds,
            background=self.engine.model.background,
            gather=self.engine.gather,
        )

    def at(self, W: Motifs, H: Activations) -> Iterate:
        """What is known at these factors before any step."""
        found = self.engine.assess(W, H)
        iterate = self._iterate(W, H, found.sums, found.penalty, found.sums.kkt)
        return self._sharp(iterate) if self._is_good(iterate) else iterate

    def _iterate(
        self, W: Motifs, H: Activations, sums: Sums, penalty: float, kkt_H: float
    ) -> Iterate:
        """Factors with what their sums tell."""
        power = sums.magnitude if sums.magnitude > _UNLIKE * self._power else self._power
        loss = sums.squared_residual(self.engine.facts)
        return Iterate(W, H, loss, penalty, exact=False, kkt_H=kkt_H, noise=self._noise * power)

    def moved(self, state: LoopState, now: Iterate) -> LoopState:
        """The state at another iterate, from where the iteration goes on afresh."""
        return replace(state, now=now, before=(now.W, now.H))

    def iterate(self, state: LoopState, clock: Clock) -> LoopState:
        """One iteration: W, then H. With extrapolation, taken back and repeated if J rose."""
        if self._momentum and state.iteration and not state.goal.certify:
            (W, H), beta = state.before, state.pace.momentum
            now = state.now
            ahead = self.engine.ahead(now.W, W, beta), self.engine.ahead(now.H, H, beta)
            limit = min(1.0, state.pace.limit * _GROW_LIMIT)
            grown = Pace(min(limit, beta * _GROW), limit)
            self.engine.foresee(grown.momentum)
            step = self._step(state, *ahead, clock)
            old, new = self.judged(now, self._iterate_of(step))
            if new.objective <= old.objective:
                return self._after(replace(state, now=old, pace=grown), new)
            state = replace(state, now=old, pace=Pace(beta / _CUT, beta))
        while True:
            now = state.now
            certifiable = state.iteration > 0 and now.kkt_H <= state.goal.target
            enough = state.goal.target if certifiable else None
            step = self._step(state, now.W, now.H, clock, enough)
            state = replace(state, now=replace(now, kkt_W=step.kkt_W))
            if step.W is not None:
                old, new = self.judged(state.now, self._iterate_of(step))
                state = replace(state, now=old)
                if self.rises(old, new):
                    new = self._half_step(old, clock)
                return self._after(state, new)
            state = self._ended(state, clock)
            if state.stop_reason is not None:
                return state

    def _step(
        self,
        state: LoopState,
        W: Motifs,
        H: Activations,
        clock: Clock,
        enough: float | None = None,
    ) -> Step:
        follow, inner = _FOLLOW * state.goal.target, self._inner(clock)
        # An entry that next to nothing determines may leave the range of its precision. J is not
        # finite then, and the step is taken back.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.engine.step(W, H, self.solver, inner, follow=follow, enough=enough)

    def _inner(self, clock: Clock) -> Inner:
        """The sweeps of each factor, with an eye on the clock."""
        if np.isinf(clock.limit):
            return self.inner
        return replace(self.inner, expired=lambda: clock.expired)

    def _iterate_of(self, step: Step) -> Iterate:
        assert step.sums is not None
        kkt_H = step.sums.kkt if step.followed else np.nan
        new = self._iterate(step.W, step.H, step.sums, step.penalty, kkt_H)
        return replace(new, estimate=max(step.kkt_W, step.sums.kkt))

    def _half_step(self, now: Iterate, clock: Clock) -> Iterate:
        """In place of a step after which J is higher, H alone; if that is no better, none at all.

        Every step goes down but for rounding. Where much cancels (X̂ at missing entries far above
        the observed ones, motifs that are nearly dependent) rounding may be all there is to see.
        """
        problem = self.engine.activation_problem(now.W, now.H)
        H = self.engine.sweep(now.H, problem, self.solver, self._inner(clock))
        old, new = self.judged(now, self.at(now.W, H))
        return old if self.rises(old, new) else new

    def _after(self, state: LoopState, new: Iterate) -> LoopState:
        """The state after a step that was taken."""
        # The residual at the extrapolated point is near that of the iterate: when it is small
        # the next iteration starts from the iterate itself and so certifies it.
        certify = bool(new.estimate <= 2 * state.goal.target)
        return replace(
            state,
            now=new,
            before=(state.now.W, state.now.H),
            goal=replace(state.goal, certify=certify, ending=Ending.OPEN),
            iteration=state.iteration + 1,
        )

    # --- J, judged --------------------------------------------------------------------------

    def falls(self, old: Iterate, new: Iterate) -> bool:
        """Whether J is not above what it was."""
        old, new = self.judged(old, new)
        return new.objective <= old.objective

    def rises(self, old: Iterate, new: Iterate) -> bool:
        """Whether J, ``judged``, is above what it was by more than evaluating it may round.

        Entries of X̂, sums of products that are not negative, are off by u·X̂: the residual's
        square by 2u‖X − X̂‖‖X̂‖ + u²‖X̂‖², with ‖X̂‖ ≤ ‖X − X̂‖ + ‖X‖, and by u of itself.
        """
        u, left = self._rounding, np.sqrt(max(old.squared_residual, new.squared_residual))
        fitted = left + np.sqrt(self.engine.facts.squared_norm)
        slack = 0.5 * u * (left**2 + 2 * left * fitted + u * fitted**2) + u * old.penalty
        return bool(self._noise and not new.objective <= old.objective + slack)  # NaN rises, too

    def judged(self, old: Iterate, new: Iterate) -> tuple[Iterate, Iterate]:
        """Both with the residual's own loss where cancellation would spoil the comparison."""
        near = abs(new.objective - old.objective) < 4 * max(old.noise, new.noise)
        if near or self._is_good(new):
            return self._sharp(old), self._sharp(new)
        return old, new

    def _is_good(self, iterate: Iterate) -> bool:
        """Whether the free loss is too near its own noise."""
        return iterate.squared_residual < _TRUST * iterate.noise

    def _sharp(self, iterate: Iterate) -> Iterate:
        """The iterate with its loss from the residual itself."""
        if iterate.exact:
            return iterate
        loss = self.engine.residual(iterate.W, iterate.H)
        return replace(iterate, squared_residual=loss, exact=True)

    # --- the end ----------------------------------------------------------------------------

    def _ended(self, state: LoopState, clock: Clock) -> LoopState:
        """The iterate is optimal to ``target``: stop, if it stays so with H solved for good."""
        converged = replace(state, stop_reason=StopReason.CONVERGED)
        if self.rules.acceleration is None:
            return converged
        finished = self.solved(state, clock)
        if finished.now.certificate <= self.rules.tol:
            return replace(finished, stop_reason=StopReason.CONVERGED)
        if self.engine.hides and state.goal.target < self.rules.tol:
            # Activations whose motif is mostly hidden are hardly determined, and W is never optimal
            # for those of the last solve. It is for the iterate's.
            return replace(converged, goal=replace(state.goal, ending=Ending.KEPT))
        # W is not optimal for the new H: go on from there, and ask for more the next time.
        goal = replace(finished.goal, target=state.goal.target / 3, certify=False)
        return replace(finished, goal=goal)

    def solved(self, state: LoopState, clock: Clock) -> LoopState:
        """The state with H from the convex problem, solved from zero as ``transform`` does.

        The tolerance is tightened until the objective is not above the iterate's (rounding
        aside). If that cannot be reached in time, the iterate is kept.
        """
        engine = self.engine
        clock = clock.with_grace(_GRACE)
        solution = solve_H(engine, state.now.W, state.goal.transform_tol, clock)
        while True:
            H = engine.settled(solution.H, solution.problem)
            now = self._sharp(self.at(state.now.W, H))
            old = self._sharp(state.now)
            goal = replace(
                state.goal, transform_tol=solution.tol, ending=Ending.SOLVED, certify=True
            )
            new = replace(self.moved(state, now), goal=goal, pace=Pace(self._momentum))
            if now.objective <= (1 + _ROUNDING) * old.objective + self.perfect:
                return self.certified(new)
            # Where it is not convex there may be several stationary points: this is another one.
            elsewhere = not engine.model.penalties.convex
            if not solution.solved or solution.tol < _TIGHTEST or elsewhere:
                kept = replace(state.goal, ending=Ending.KEPT)
                return replace(state, now=old, goal=kept)
            solution = solve_H(engine, now.W, solution.tol / 10, clock, start=solution)

    def certified(self, state: LoopState) -> LoopState:
        """The state with both of its residuals known."""
        now = state.now
        kkt_W = self.engine.kkt_of_motifs(now.W, now.H)
        kkt_H = now.kkt_H
        if np.isnan(kkt_H):
            kkt_H = self.engine.assess(now.W, now.H).sums.kkt
        return replace(state, now=replace(now, kkt_W=kkt_W, kkt_H=kkt_H))


def transform_tolerance(tol: float) -> float:
    """Tolerance of the convex problem in H: tighter than the fit's (0: its default)."""
    return max(1e-2 * (tol or Rules.tol), 1e-10)
