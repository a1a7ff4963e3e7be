"""The convex problem in the activations alone, solved to a tolerance from a start at zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from motifold.engines.base import ActivationProblem, Activations, ByRatios, Engine, Motifs
from motifold.fit.clock import Clock
from motifold.model import Array
from motifold.model.motifs import with_background
from motifold.solvers import ANLS, HALS, MU, Inner, Solver

_MAX_SWEEPS, _MAX_SWEEPS_MASKED = 10_000, 3_000
# Sweeps between two looks at the certificate, and looks without progress before giving up.
_ROUND, _PATIENCE = Inner(max_sweeps=5, shrink=0.0), 40
_SWEEP = Inner(max_sweeps=1)
# Powers of two between the sizes of motifs, beyond which the residual is that of one of them.
_FAR_APART = 12
# By ratios: leaps beyond a step, the first, the growth, the cut after a rise, and the longest;
# steps at most, and steps without progress before giving up.
FIRST_LEAP, _GROW, _CUT, _LONGEST = 0.5, 1.1, 2.0, 2.0
_MAX_STEPS, _STEPS_WITHOUT_PROGRESS = 2_000, 100


@dataclass(frozen=True)
class Deconvolution:
    """The activations and how optimal they are.

    Attributes
    ----------
    H : a handle, in the order and precision of ``problem``
    problem : what was solved
    kkt_residual : of H
    sweeps : how many were made
    tol : what was asked for
    solved : whether ``kkt_residual`` ≤ ``tol``
    """

    H: Activations
    problem: ActivationProblem
    kkt_residual: float
    sweeps: int
    tol: float
    solved: bool


def solve_H(
    engine: Engine,
    W: Motifs,
    tol: float,
    clock: Clock,
    *,
    start: Deconvolution | None = None,
) -> Deconvolution:
    """Minimise J over H with W fixed, by sweeps over its entries (coordinate descent).

    With L = 1 the columns are independent, and one pass of exact solves is the solution. Missing
    entries follow H from round to round. Where the problem is not convex the result is a
    stationary point. The start is zero, or where an earlier solve ended: the way is the same, so
    that a tighter tolerance asked for later gives what it would have given at once.
    """
    problem = engine.exact_problem(W) if start is None else start.problem
    H = engine.zeros(problem) if start is None else start.H
    sweeps = 0 if start is None else start.sweeps
    solver = HALS("tiles") if engine.model.L > 1 else ANLS()
    most_sweeps = _MAX_SWEEPS_MASKED if engine.hides else _MAX_SWEEPS
    momentum = _Momentum(engine, problem, solver, H) if engine.hides else None
    best, waited = np.inf, 0
    while True:
        if momentum is None:
            H = engine.sweep(H, problem, solver, _ROUND, reuse=True)
            residual = engine.kkt(H, problem)
        else:
            H, residual = momentum.round(H)
        sweeps += _ROUND.max_sweeps
        waited = 0 if residual < 0.99 * best else waited + 1
        best = min(best, residual)
        if residual <= tol or waited >= _PATIENCE or clock.expired or sweeps >= most_sweeps:
            return Deconvolution(H, problem, residual, sweeps, tol, residual <= tol)


def solve_for_motifs(
    engine: Engine,
    components: Array,
    scales: Array,
    tol: float,
    background: Array | None = None,
) -> tuple[Motifs, Array, Deconvolution]:
    """The same for motifs (K, L, N) of norms ``scales`` in their fit: motifs, scales, and the end.

    In that scale penalties weigh what they weighed there. Where nothing weighs on activations and
    norms are far apart they are brought near 1, and the scales of what is returned are others: the
    residual is relative to all of H, of which a motif of rounding, with activations of 1e30, would
    be everything. ``background`` (N,), where the model has one.
    """
    motifs: Array = components.transpose(2, 1, 0).astype(np.float64) * scales
    apart = _apart(motifs) if not engine.model.penalties.on_activations else None
    if apart is not None:
        motifs, scales = np.ldexp(motifs, -apart), np.ldexp(scales, -apart)
    if background is not None:
        motifs = with_background(motifs, background * engine.model.scale)
    W = engine.put_motifs(motifs)
    if engine.model.loss.by_ratios:
        return W, scales, solve_by_ratios(cast(ByRatios, engine), W, tol, Clock())
    return W, scales, solve_H(engine, W, tol, Clock())


def _apart(motifs: Array) -> np.ndarray | None:
    """The exponents (K,) of the largest entries, where they are far apart; 0 for an empty motif."""
    largest = motifs.max(axis=(0, 1))
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    present = exponents[largest > 0]
    return exponents if present.size and np.ptp(present) > _FAR_APART else None


def longer(leap: float) -> float:
    """The leap after one that lowered J, in units of the step itself."""
    return min(_LONGEST, _GROW * leap)


def shorter(leap: float) -> float:
    """The leap after one that raised J and was taken back."""
    return leap / _CUT


def solve_by_ratios(engine: ByRatios, W: Motifs, tol: float, clock: Clock) -> Deconvolution:
    """Minimise J over H with W fixed, from activations that are even: no random number is used."""
    solver = MU()
    H = engine.even(W)
    problem = engine.exact_problem(W)
    new, objective, residual = engine.sweep_ratios(W, H, solver)
    pace, best, waited = FIRST_LEAP, objective, 0
    steps = 0
    while (
        residual > tol
        and steps < _MAX_STEPS
        and waited < _STEPS_WITHOUT_PROGRESS
        and not clock.expired
    ):
        steps += 1
        ahead = engine.beyond(W, H, new, pace)
        trial = engine.sweep_ratios(W, ahead, solver)
        if trial[1] <= objective:
            H, pace = ahead, longer(pace)
        else:
            H, pace = new, shorter(pace)
            trial = engine.sweep_ratios(W, H, solver)
        new, objective, residual = trial
        waited = waited + 1 if objective >= best * (1 - 1e-9) else 0
        best = min(best, objective)
    return Deconvolution(H, problem, residual, steps, tol, residual <= tol)


class _Momentum:
    """Nesterov's: missing entries follow H, which is slow unless H is extrapolated.

    Sweeps over entries are not the steps it is made for, and may go astray. A round of them after
    which J is higher is taken back and done without it.
    """

    def __init__(
        self, engine: Engine, problem: ActivationProblem, solver: Solver, H: Activations
    ) -> None:
        self.engine, self.problem, self.solver = engine, problem, solver
        self.last = H
        self.t = 1.0
        self.objective = np.inf

    def round(self, H: Activations) -> tuple[Activations, float]:
        """The activations after a round of sweeps, and their KKT residual; J is not higher."""
        new = H
        for _ in range(_ROUND.max_sweeps):
            ahead = self._ahead(new)
            new = self._swept(ahead)
            self._judge(ahead, new)
        objective, residual = self.engine.standing(new, self.problem)
        if objective > self.objective:
            new = H
            for _ in range(_ROUND.max_sweeps):
                new = self._swept(new)
            objective, residual = self.engine.standing(new, self.problem)
            self.last, self.t = new, 1.0
        self.objective = objective
        return new, residual

    def _swept(self, H: Activations) -> Activations:
        return self.engine.sweep(H, self.problem, self.solver, _SWEEP)

    def _ahead(self, H: Activations) -> Activations:
        """The point to sweep from."""
        before, self.last = self.last, H
        t = 0.5 * (1 + np.sqrt(1 + 4 * self.t**2))
        beta, self.t = (self.t - 1) / t, t
        return self.engine.ahead(H, before, beta)

    def _judge(self, ahead: Activations, H: Activations) -> None:
        """Begin anew where the sweep went against the momentum (O'Donoghue & Candès 2015)."""
        if self.engine.turned(ahead, H, self.last):
            self.t = 1.0
