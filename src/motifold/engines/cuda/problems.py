"""The problems in the motifs and in the activations on a device: statistics, Grams, their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from motifold.engines.base import Sums
from motifold.engines.cpu.statistics import WStatistics
from motifold.engines.cuda.arrays import DeviceArrays
from motifold.engines.cuda.solving import update_H
from motifold.engines.cuda.statistics import DeviceStatistics, Fill
from motifold.model import Array
from motifold.solvers import Inner, Solver


@dataclass(frozen=True, eq=False)
class DeviceProblem:
    """The problem in the activations, as ``engines.cpu.engine.CPUProblem``, on a device."""

    statistics: DeviceStatistics
    order: np.ndarray | None = None
    forbidden: Any = None

    @cached_property
    def confined(self) -> DeviceStatistics:
        """The statistics with a slope where there is to be no activation: none ever grows there."""
        if self.forbidden is None:
            return self.statistics
        xp, C = self.statistics.data.device.xp, self.statistics.C
        data = C if self.statistics.C_data is None else self.statistics.C_data
        data = data * ~self.forbidden
        steep = xp.maximum(data.max(), C.dtype.type(1e-30))
        slope = self.forbidden * steep
        if self.statistics.slope is not None:
            slope = slope + self.statistics.slope
        return replace(self.statistics, C=data - slope, C_data=data, slope=slope)


class DeviceProblems(DeviceArrays):
    """What is to be solved at given factors; what was computed for them is kept."""

    _rough = False  # whether P is by TF32 now

    def _forget_products(self) -> None:
        for memo in (self._of_activations, self._columns, self._motif_problems):
            memo.clear()

    def _forget(self) -> None:
        """All that was made of factors whose numbers may be others by now."""
        self._forget_products()
        for memo in (self._of_motifs, self._problems, self._filled, self._on_host):
            memo.clear()

    # --- the problem in the activations -----------------------------------------------------

    def activation_problem(self, W: Any, H: Any = None) -> Any:
        """C, A and E of the data with what the penalties add."""
        problem: Any = self._problems.get((W,), lambda: self._new_problem(W))
        return problem if H is None else self._filled_problem(problem, H)

    def _new_problem(self, W: Any) -> DeviceProblem:
        return DeviceProblem(self._with_penalties(W), forbidden=self.data.forbidden)

    def exact_problem(self, W: Any) -> Any:
        """In float64 with components by falling norm, as on the CPU."""
        statistics = self.activation_problem(W).statistics
        for memo in (self._of_motifs, self._problems, self._filled):
            memo.keep_last()  # it takes memory: none for what came before
        L, n = self.problem.L, self.model.n_motifs
        powers = np.einsum("kk->k", self.device.host(statistics.A[:, L - 1]))[:n]
        order = np.r_[np.argsort(-powers, kind="stable"), n : self.model.K]
        forbidden = self.data.forbidden
        if forbidden is not None:
            forbidden = self.xp.ascontiguousarray(forbidden[:, self._here(order)])
        return DeviceProblem(statistics.exactly(order), order, forbidden)

    def settled(self, H: Any, problem: Any) -> Any:
        """A new array, in the order and precision of the model's."""
        if problem.order is None:
            return H
        back = self._here(np.argsort(problem.order))
        return self.xp.ascontiguousarray(H[:, back].astype(self.problem.dtype))

    # --- the parts --------------------------------------------------------------------------

    def _best_scale(self, statistics: Any, W: Any, H: Any) -> float:
        """The α for which α·X̂ is nearest to X."""
        overlap = self._inner(statistics.C, H)
        power = self._inner(statistics.correlate(H), H)
        if self.hides:
            power -= self.passes.hidden_power(W, H)
        return overlap / power if power > 0 else 1.0

    def _statistics(self, W: Any) -> Any:
        """C, A and E of the data alone."""
        return self._of_motifs.get((W,), lambda: self._new_statistics(W))

    def _new_statistics(self, W: Any) -> DeviceStatistics:
        C = self.passes.correlation(W)
        n = self.model.n_motifs
        if self.problem.boundary == "valid":
            C[..., :n] *= self.data.allowed
        return DeviceStatistics(C, *self._grams(W), self.data)

    def _grams(self, W: Any) -> tuple[Any, Any]:
        """A (K, 2L−1, K) and E (L, K, L, K) of placed motifs, as ``model.motifs.motif_grams``."""
        *several, N, L, K = W.shape
        reverse = self.xp.ascontiguousarray(W[..., ::-1, :]).reshape(*several, N, L * K)
        E = self.device.product(reverse.swapaxes(-2, -1), reverse).reshape(*several, L, K, L, K)
        self.kernels.diagonal_sums(E)
        A = self.xp.empty((*several, K, 2 * L - 1, K), dtype=W.dtype)
        self.kernels.taps_of(E, A)
        return A, E

    def _with_penalties(self, W: Any) -> Any:
        """The same with the penalties that couple components."""
        statistics, penalties = self._statistics(W), self.model.penalties
        C = statistics.C
        changes: dict[str, Any] = {}
        between = penalties.between_activations()
        if between is not None:
            added = self._here(between[:, None].astype(C.dtype))
            changes = {"A": statistics.A + added, "E": statistics.E + added}
        matches = penalties.between_matches()
        if matches is not None:
            slope = statistics.smoothed(C) @ self._here(matches.astype(C.dtype))
            changes |= {"C": C - slope, "C_data": C, "slope": slope}
        if self.hides:
            changes["fill"] = Fill(self.passes, W, C)
        return replace(statistics, **changes) if changes else statistics

    def _swept(
        self, H: Any, problem: Any, solver: Solver, inner: Inner, reuse: bool = False
    ) -> Any:
        """New activations."""
        H = H if reuse else H.copy()
        n, penalties = self.model.n_motifs, self.model.penalties
        if n < self.model.K:
            motifs = self.xp.ascontiguousarray(H[:, :n])
            alone = self._of_motifs_alone(problem)
            update_H(self.device, solver, motifs, alone, penalties.for_components(n), inner)
            H[:, :n] = motifs
        else:
            update_H(self.device, solver, H, problem.confined, penalties, inner)
        if self.hides:
            # The observed loss is flat there: rounding alone moves them.
            H[:, :n] *= self.data.learnable.astype(H.dtype)
        return H

    def _of_motifs_alone(self, problem: Any) -> Any:
        """The statistics without the background: what it explains is taken from C."""
        statistics = problem.confined

        def explained() -> Any:
            constant = self.xp.zeros(statistics.C.shape, dtype=statistics.C.dtype)
            constant[:, -1] = 1
            return statistics.correlate(constant)

        return statistics.without_last(self._of_background.get((statistics.A,), explained))

    def _sums(self, H: Any, problem: Any, *, brief: bool = False) -> Sums:
        """All that is to be known of H; ``brief``: what the KKT residual needs."""
        out = self.xp.empty(4 + 2 * self.problem.K)
        self._sum_up(H, problem, out)
        return self._sums_of(self.device.host(out), H, problem, brief=brief)

    def _sum_up(self, H: Any, problem: Any, out: Any) -> None:
        """The numbers that ``Sums`` are made of (changes out, (4 + 2K,))."""
        statistics, penalties = problem.statistics, self.model.penalties
        gradient = problem.confined.gradient(H)
        C = statistics.C if statistics.C_data is None else statistics.C_data
        grams = statistics.A, statistics.E, self.data.left
        weights = self._here(penalties.l1_H), self._here(penalties.l2_H)
        free = self.model.n_motifs, self.problem.boundary == "valid"
        statistics.kernels.sums_H(H, gradient, C, *grams, *weights, *free, out)

    def _sums_of(self, numbers: Array, H: Any, problem: Any, *, brief: bool = False) -> Sums:
        """``Sums`` from the numbers; what is optional is added up now, if there is a problem."""
        K = self.problem.K
        fitted, slope, above, below = (float(number) for number in numbers[:4])
        each = numbers[4 : 4 + K].copy(), numbers[4 + K :].copy()
        sums = Sums(fitted, slope, above, below, *each)
        if problem is None or (brief and not self.hides):
            return sums
        statistics = problem.statistics
        sums = replace(sums, **self._added(H, statistics, brief))
        if self.hides:
            sums = replace(sums, off_scale=self._off_scale(H, statistics, sums))
        return sums

    def _added(self, H: Any, statistics: Any, brief: bool) -> dict[str, Any]:
        """Of the sums, what couplings and missing entries add; ``brief``: these are those of H."""
        optional: dict[str, Any] = {}
        between = self.model.penalties.between_activations()
        if between is not None:
            nearby = statistics.smoothed(H) @ self._here(between.astype(H.dtype))
            optional["near"] = self._inner(nearby, H)
        if statistics.slope is not None:
            optional["match"] = self._inner(statistics.slope, H)
        if statistics.fill is not None:
            optional["fill"] = statistics.fill_power
            if not brief:
                optional["moved"] = statistics.fill.moved(H)
        return optional

    def _penalty(self, W: Any, sums: Sums) -> float:
        penalties = self.model.penalties
        of_W = penalties.value_W(self.motifs(W)) if penalties.terms else 0.0
        return of_W + penalties.value_H(sums)

    def _new_motif_problem(self, W: Any, H: Any) -> WStatistics:
        """What the motifs that are learnt depend on."""
        model, xp = self.model, self.xp
        P, B = self._all_columns(W, H)
        slope = None
        matches = model.penalties.between_matches()
        if matches is not None:
            near = xp.empty(H.shape, dtype=H.dtype)
            self.kernels.smoothed(H, self.data.age, self.data.left, near)
            near = near @ self._here(matches.astype(H.dtype))
            slope, _ = self.passes.lag_products(near * self.data.allowed, gram=False)
        if model.held is not None:
            fixed = np.tile(model.held, model.L)
            held, rest = self._here(np.flatnonzero(fixed)), self._here(np.flatnonzero(~fixed))
            explained = W.reshape(P.shape)[:, held] @ B[held][:, rest]
            slope = explained if slope is None else slope[:, rest] + explained
            P = xp.ascontiguousarray(P[:, rest])
            B = xp.ascontiguousarray(B[rest][:, rest])
        if slope is None:
            return WStatistics(P, B, self.workers)
        return WStatistics(P - slope, B, self.workers, slope, P_data=P)

    def _new_columns(self, W: Any, H: Any) -> tuple[Any, Any]:
        model = self.model
        rough = self._rough
        P, B = self._of_activations.get((H,), lambda: self.passes.lag_products(H, rough=rough))
        if self.hides:
            P = P + self.passes.hidden_products(W, H)
        between = model.penalties.between_motifs(model.L)
        return P, B if between is None else B + self._here(between.astype(W.dtype))
