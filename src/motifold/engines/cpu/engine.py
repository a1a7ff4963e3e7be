"""The CPU engine: what the loop asks for, by passes over the data, kernels and threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from motifold.engines.base import Assessment, Step, Sums, noise
from motifold.engines.cpu.handles import RUN, SECONDS, Handles
from motifold.engines.cpu.hidden import HiddenFit, filled_P, hidden_fit, hidden_power
from motifold.engines.cpu.reconstruction import squared_residual
from motifold.engines.cpu.statistics import (
    Fill,
    HStatistics,
    WStatistics,
    data_products,
    w_statistics,
)
from motifold.engines.cpu.stretches import stretches
from motifold.engines.cpu.toeplitz import Padding, smoothed
from motifold.kernels.residuals import sums_H
from motifold.model import Array, Penalties
from motifold.model.certificate import kkt_ratio
from motifold.solvers import Inner, Solver
from motifold.solvers.learnt import (
    kkt_of_background,
    kkt_residual_W,
    update_background,
    update_motifs,
)

# A difference is trusted while it is so many times its noise.
_TRUST = 1e4


@dataclass(frozen=True, eq=False)
class CPUProblem:
    """The problem in the activations: its statistics, and the order of its components.

    ``forbidden`` (T, K), in that order: where there is to be no activation; None: nowhere.
    """

    statistics: HStatistics
    order: np.ndarray | None = None
    forbidden: np.ndarray | None = None

    @cached_property
    def confined(self) -> HStatistics:
        """The statistics with a slope where there is to be no activation: none ever grows there.

        A∗H is not negative, but for rounding. With nothing of the data to meet and a slope as large
        as whatever there is, an entry that is zero stays zero, whoever updates it.
        """
        if self.forbidden is None:
            return self.statistics
        C, forbidden = self.statistics.C, self.forbidden
        data = C if self.statistics.C_data is None else self.statistics.C_data
        data = np.where(forbidden, C.dtype.type(0), data)
        steep = data.max(initial=0) or C.dtype.type(1)
        old = C.dtype.type(0) if self.statistics.slope is None else self.statistics.slope
        slope = np.where(forbidden, old + steep, old)
        return replace(self.statistics, C=data - slope, C_data=data, slope=slope)


class CPUEngine(Handles):
    """A problem on this machine's cores.

    What the passes over the data give is kept for the last motifs and the last activations, so
    that nothing is computed twice for the same factors.
    """

    # --- one iteration ----------------------------------------------------------------------

    def step(
        self,
        W: Array,
        H: Array,
        solver: Solver,
        inner: Inner,
        *,
        follow: float,
        enough: float | None = None,
    ) -> Step:
        """One iteration; the statistics of the new motifs are kept for whoever asks next."""
        model = self.model
        of_W, all_of_W = self.motif_problem(W, H), self._all_columns(W, H)
        kkt_W = self.kkt_of_motifs(W, H)
        if enough is not None and kkt_W <= enough:
            return Step(kkt_W)
        W = update_motifs(solver, model, W, of_W, inner)
        if model.background:
            update_background(W, *all_of_W, model.signed)
        problem = self.activation_problem(W, H)
        H = self._swept(H, problem, solver, inner)
        sums = self._sums(H, problem)
        followed = not self.hides or sums.kkt <= follow
        if self.hides and followed:
            problem = self._filled_problem(problem, H)
            sums = self._sums(H, problem)
        return Step(kkt_W, W, H, sums, self._penalty(W, sums), followed)

    # --- at given factors -------------------------------------------------------------------

    def assess(self, W: Array, H: Array) -> Assessment:
        """Without a pass over the data where W is known."""
        problem = self.activation_problem(W, H)
        sums = self._sums(H, problem)
        return Assessment(sums, self._penalty(W, sums))

    def residual(self, W: Array, H: Array) -> float:
        """One pass over the data."""
        return squared_residual(self.problem, W, H, self.workers)

    def kkt_of_motifs(self, W: Array, H: Array) -> float:
        """From P and B, which the next iteration will use."""
        motifs = kkt_residual_W(self.model, W, self.motif_problem(W, H))
        if not self.model.background:
            return motifs
        return max(motifs, kkt_of_background(W, *self._all_columns(W, H), self.model.signed))

    def power_shares(self, W: Array, H: Array) -> Array:
        """Σ(2X·X̂_k − X̂_k²)/ΣX² over observed entries, floored at zero, from the statistics."""
        problem, statistics = self.problem, self._statistics(W)
        shares = np.zeros(problem.K)
        if problem.squared_norm == 0:
            return shares
        for k in range(problem.K):
            motif, alone = W[:, :, k : k + 1], np.ascontiguousarray(H[:, k : k + 1])
            products = 2 * statistics.C[:, k : k + 1] - statistics.component(k).correlate(alone)
            shares[k] = np.einsum("tk,tk->", products, alone, dtype=np.float64)
            if self.hides:
                fit = hidden_fit(problem, np.ascontiguousarray(motif), alone, self.workers)
                shares[k] += hidden_power(fit, self.workers)
        return np.maximum(shares / problem.squared_norm, 0.0)

    # --- the problem in the activations -----------------------------------------------------

    def activation_problem(self, W: Array, H: Array | None = None) -> CPUProblem:
        """C, A and E of the data with what the penalties add."""
        forbidden = self.problem.forbidden
        problem = self._problems.get(
            (W,), lambda: CPUProblem(self._with_penalties(W), forbidden=forbidden)
        )
        return problem if H is None else self._filled_problem(problem, H)

    def exact_problem(self, W: Array) -> CPUProblem:
        """In float64, whatever the data is: single precision stops short of tight tolerances.

        Components are swept by falling norm: a fit and the model it leaves, which has them in
        another order, then take the same way.
        """
        statistics = self.activation_problem(W).statistics
        for memo in (self._of_motifs, self._problems, self._filled, self._gradients):
            memo.keep_last()  # it takes memory: none for what came before
        L, n = self.problem.L, self.model.n_motifs
        powers = np.einsum("kk->k", statistics.A[:, L - 1])[:n]
        order = np.r_[np.argsort(-powers, kind="stable"), n : self.model.K]
        forbidden = self.problem.forbidden
        forbidden = None if forbidden is None else np.ascontiguousarray(forbidden[:, order])
        return CPUProblem(statistics.permuted(order).astype(np.float64), order, forbidden)

    def sweep(
        self,
        H: Array,
        problem: CPUProblem,
        solver: Solver,
        inner: Inner,
        *,
        fill: Array | None = None,
        reuse: bool = False,
    ) -> Array:
        """A new array, unless it may be the old one."""
        problem = self._filled_problem(problem, H if fill is None else fill)
        return self._swept(H, problem, solver, inner, reuse)

    def kkt(self, H: Array, problem: CPUProblem) -> float:
        """From the gradient, which is a product."""
        return self._sums(H, self._filled_problem(problem, H), brief=True).kkt

    def standing(self, H: Array, problem: CPUProblem) -> tuple[float, float]:
        """From the gradient, too."""
        sums = self._sums(H, self._filled_problem(problem, H), brief=self.hides)
        loss = sums.squared_residual(self.facts)
        return 0.5 * loss + self.model.penalties.value_H(sums), sums.kkt

    def turned(self, ahead: Array, now: Array, before: Array) -> bool:
        """By O'Donoghue & Candès' rule, some rows at a time: T × K takes memory."""
        runs = (slice(a, a + RUN) for a in range(0, len(now), RUN))
        return bool(sum(np.vdot(ahead[r] - now[r], now[r] - before[r]) for r in runs) > 0)

    def settled(self, H: Array, problem: CPUProblem) -> Array:
        """A new array."""
        if problem.order is None:
            return H
        settled = np.empty(H.shape, dtype=self.problem.dtype)
        settled[:, problem.order] = H
        return settled

    # --- moves ------------------------------------------------------------------------------

    def neighbours(self, W: Array, H: Array) -> Array:
        """From the Gram of the shifted copies of H; those that never change have none."""
        K, T = self.model.K, self.facts.T
        gram = self.motifs(self._all_columns(W, H)[1]).astype(np.float64)
        chance = self.means(H) ** 2
        power, next_to = (np.diagonal(gram, i * K)[:K] / T - chance for i in (0, 1))
        known = power > np.finfo(self.facts.dtype).eps * (power + chance)
        return np.divide(next_to, power, out=np.zeros(K), where=known)

    def part(self) -> tuple[CPUEngine, list[tuple[int, int]]] | None:
        """Stretches of the recording, and where they are."""
        found = stretches(self.problem)
        if found is None:
            return None
        problem, rows = found
        return CPUEngine(problem, self.workers), rows

    def with_penalties(self, penalties: Penalties) -> CPUEngine:
        """Blocks, lists of missing entries and transforms are shared."""
        model = self.model.with_penalties(penalties)
        return CPUEngine(self.problem.with_model(model), self.workers)

    # --- the parts --------------------------------------------------------------------------

    def _with_penalties(self, W: Array) -> HStatistics:
        """The same with the penalties that couple components."""
        statistics, penalties = self._statistics(W), self.model.penalties
        C = statistics.C
        changes: dict[str, Any] = {}
        between = penalties.between_activations()
        if between is not None:
            between = between[:, None].astype(C.dtype)
            changes = {"A": statistics.A + between, "E": statistics.E + between}
        matches = penalties.between_matches()
        if matches is not None:
            slope = smoothed(C, statistics.padding) @ matches.astype(C.dtype)
            changes |= {"C": C - slope, "C_data": C, "slope": slope}
        if self.hides:
            changes["fill"] = Fill(self.problem, W, C)
        return replace(statistics, **changes) if changes else statistics

    def _filled_problem(self, problem: CPUProblem, H: Array) -> CPUProblem:
        """The problem with its missing entries those of W∗H."""
        if not self.hides:
            return problem

        def filled() -> CPUProblem:
            return replace(problem, statistics=problem.statistics.refilled(H))

        return self._filled.get((problem, H), filled)

    def _swept(
        self, H: Array, problem: CPUProblem, solver: Solver, inner: Inner, reuse: bool = False
    ) -> Array:
        """New activations; their gradient is kept where the solver leaves it."""
        H = H if reuse else H.copy()
        self._gradients.clear()
        n = self.model.n_motifs
        if n < self.model.K:
            motifs = np.ascontiguousarray(H[:, :n])
            alone, penalties = self._of_motifs_alone(problem), self.model.penalties
            solver.update_H(motifs, alone, penalties.for_components(n), inner)
            H[:, :n] = motifs
            if self.hides:
                H[~self.problem.learnable[1], :n] = 0
            return H
        gradient = solver.update_H(H, problem.confined, self.model.penalties, inner)
        if self.hides:
            # The observed loss is flat there: rounding alone moves them.
            H[~self.problem.learnable[1]] = 0
        elif gradient is not None:
            self._gradients.put((problem, H), gradient)
        return H

    def _of_motifs_alone(self, problem: CPUProblem) -> HStatistics:
        """The statistics without the background: what it explains is taken from C."""
        statistics = problem.confined

        def explained() -> Array:
            constant = np.zeros_like(statistics.C)
            constant[:, -1] = 1
            return statistics.correlate(constant)

        # The Gram is that of the motifs, whatever has been entered for missing entries.
        return statistics.without_last(self._of_background.get((statistics.A,), explained))

    def _sums(self, H: Array, problem: CPUProblem, *, brief: bool = False) -> Sums:
        """All that is to be known of H; ``brief``: what the KKT residual needs."""
        statistics, penalties = problem.statistics, self.model.penalties
        l1, l2 = penalties.l1_H, penalties.l2_H
        gradient = self._gradients.get((problem, H), lambda: problem.confined.gradient(H))
        C = statistics.C if statistics.C_data is None else statistics.C_data
        K, m = self.problem.K, -(-len(H) // RUN)
        parts, flags = np.empty((m, 4 + 2 * K)), np.zeros(m + 2, dtype=np.int64)
        problem_of_H = statistics.A, statistics.E, statistics.bounds, l1, l2, self.model.n_motifs
        args = H, gradient, C, *problem_of_H, RUN, parts, flags
        self.workers.together(lambda n: sums_H(*args, n), 4 * SECONDS * H.size)
        fitted, slope, above, below, *each = parts.sum(axis=0)
        known = float(fitted), float(slope), float(above), float(below)
        sums = Sums(*known, np.array(each[:K]), np.array(each[K:]))
        if not brief or self.hides:
            sums = replace(sums, **self._added(H, statistics, brief))
        if self.hides:
            sums = replace(sums, off_scale=self._off_scale(H, statistics, sums))
        return sums

    def _off_scale(self, H: Array, statistics: HStatistics, sums: Sums) -> float:
        """See ``Sums``; ΣX̂² from the residual where next to nothing of it is observed."""
        fill, penalties = statistics.fill, self.model.penalties
        assert fill is not None
        everywhere = sums.fitted + sums.slope - sums.match - sums.near
        slope, observed = sums.slope, everywhere - sums.fill
        if observed < _TRUST * noise(H.dtype) * everywhere:
            if H.dtype != self.problem.dtype:
                return np.inf  # even double precision does not tell
            overlap = self._inner(fill.C, H)
            observed = self.residual(fill.W, H) - self.facts.squared_norm + 2 * overlap
            slope = observed - overlap + sums.match + sums.near
        slope += float(penalties.l1_H @ sums.mass + penalties.l2_H @ sums.power)
        return kkt_ratio(slope**2, max(0.0, observed) ** 2)

    def _added(self, H: Array, statistics: HStatistics, brief: bool) -> dict[str, Any]:
        """Of the sums, what couplings and missing entries add; ``brief``: these are those of H."""
        optional: dict[str, Any] = {}
        between = self.model.penalties.between_activations()
        if between is not None:
            optional["near"] = self._inner(
                smoothed(H, statistics.padding) @ between.astype(H.dtype), H
            )
        if statistics.slope is not None:
            optional["match"] = self._inner(statistics.slope, H)
        if statistics.fill is not None and brief:
            optional["fill"] = statistics.fill_power
        elif statistics.fill is not None:
            moved, fit = statistics.fill.moved(H, self.workers)
            self._fits.put((statistics.fill.W, H), fit)
            optional |= {"fill": statistics.fill_power, "moved": moved}
        return optional

    def _penalty(self, W: Array, sums: Sums) -> float:
        penalties = self.model.penalties
        return penalties.value_W(W) + penalties.value_H(sums)

    def motif_problem(self, W: Array, H: Array) -> WStatistics:
        """What the motifs that are learnt depend on; missing entries are those of X̂ at (W, H)."""
        return self._motif_problems.get((W, H), lambda: self._new_motif_problem(W, H))

    def _new_motif_problem(self, W: Array, H: Array) -> WStatistics:
        model, workers = self.model, self.workers
        P, B = self._all_columns(W, H)
        slope = self._slope_of_matches(H)
        if model.held is not None:
            fixed = np.tile(model.held, model.L)
            explained = W.reshape(P.shape)[:, fixed] @ B[np.ix_(fixed, ~fixed)]
            slope = explained if slope is None else slope[:, ~fixed] + explained
            P, B = P[:, ~fixed], np.ascontiguousarray(B[np.ix_(~fixed, ~fixed)])
        if slope is None:
            return WStatistics(P, B, workers)
        return WStatistics(P - slope, B, workers, slope, P_data=P)

    def _slope_of_matches(self, H: Array) -> Array | None:
        """Of the penalty on matches with what others explain, (N, L·K); None without one."""
        nearby = self._near_activations(H)
        return None if nearby is None else data_products(self.problem, nearby, self.workers)

    def _near_activations(self, H: Array) -> Array | None:
        """What activations of others are near, (T, K), weighed by that penalty."""
        problem, matches = self.problem, self.model.penalties.between_matches()
        if matches is None:
            return None
        nearby = smoothed(H, Padding(problem.bounds, problem.L)) @ matches.astype(H.dtype)
        nearby[~problem.allowed] = 0
        return nearby

    def _all_columns(self, W: Array, H: Array) -> tuple[Array, Array]:
        """P and B of all components, with what is quadratic in the motifs."""
        return self._columns.get((W, H), lambda: self._new_columns(W, H))

    def _new_columns(self, W: Array, H: Array) -> tuple[Array, Array]:
        problem, model, workers = self.problem, self.model, self.workers
        statistics = self._of_activations.get((H,), lambda: w_statistics(problem, H, workers))
        P, B = statistics.P, statistics.B
        if self.hides:
            P = P + filled_P(self._fit(W, H), workers)
        between = model.penalties.between_motifs(model.L)
        return P, B if between is None else B + between.astype(B.dtype)

    def _fit(self, W: Array, H: Array) -> HiddenFit:
        """X̂ at the missing entries; nothing is computed where the sums of H have just been."""
        return self._fits.get((W, H), lambda: hidden_fit(self.problem, W, H, self.workers))
