"""The engine of a device for squared error: Grams and gradients by kernels and cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from motifold.engines.base import Step, Sums
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.statistics import WStatistics
from motifold.engines.cuda.arrays import DeviceArrays
from motifold.engines.cuda.recording import Recording
from motifold.engines.cuda.solving import update_H, update_W
from motifold.engines.cuda.statistics import DeviceStatistics, Fill
from motifold.model import Array
from motifold.model.certificate import kkt_ratio
from motifold.solvers import HALS, Inner, Solver

# KKT residual above which products that only move W may be by TF32, whose error in P is 2e-4 at
# most (on an H200 1e-5 of the largest entry).
_ROUGH = 0.005
# Of what a step tells, the numbers that are of the motifs: two sums, and two of the background.
_OF_MOTIFS = 4
# A step is recorded after so many, where X has no more entries: the time of larger ones is not that
# of launches.
_RECORDED_AFTER, _LAUNCH_BOUND = 20, 2**30


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


class CUDAEngine(DeviceArrays):
    """A problem on a GPU (or NumPy in its place); handles are its arrays."""

    _rough, _far = False, 0.0  # whether P is by TF32 now; the KKT residual after the last step
    _steps = 0  # that were taken

    @property
    def _may_be_rough(self) -> bool:
        return (
            self._far > _ROUGH
            and self.device.precision == "auto"
            and self.problem.dtype == np.float32
        )

    def _forget_products(self) -> None:
        for memo in (self._of_activations, self._columns, self._motif_problems):
            memo.clear()

    def _forget(self) -> None:
        """All that was made of factors whose numbers may be others by now."""
        self._forget_products()
        for memo in (self._of_motifs, self._problems, self._filled, self._on_host):
            memo.clear()

    # --- one iteration ----------------------------------------------------------------------

    def step(
        self,
        W: Any,
        H: Any,
        solver: Solver,
        inner: Inner,
        *,
        follow: float,
        enough: float | None = None,
    ) -> Step:
        """One iteration; the device is waited for once, unless entries are missing.

        Where the residual was large, P is by TF32: it moves W, and nothing is judged by it.
        """
        self._rough = self._may_be_rough and enough is None
        if self._rough:
            self._forget_products()  # those of a certificate are not rounded, nor these kept
        recording = None if enough is not None else self._recording(W, H, solver, inner)
        problem: Any = None
        if recording is None:
            told, gradient = self._told(W, H)
            if enough is not None:
                kkt_W = _kkt_of(self.device.host(told))
                if kkt_W <= enough:
                    return Step(kkt_W)
            W, H, problem = self._taken(W, H, solver, inner, told, gradient)
            numbers = self.device.host(told)
        else:
            W, H, numbers = recording.step(W, H)
        sums = self._sums_of(numbers[_OF_MOTIFS : -self.problem.K], H, problem)
        kkt_W = _kkt_of(numbers)
        self._powers.put((W,), numbers[-self.problem.K :].copy())
        if self._rough:
            self._forget_products()
        self._rough, self._far = False, max(kkt_W, sums.kkt)
        followed = not self.hides or sums.kkt <= follow
        if self.hides and followed:
            sums = self._sums(H, self._filled_problem(problem, H))
        return Step(kkt_W, W, H, sums, self._penalty(W, sums), followed)

    def empty_motifs(self, W: Any) -> np.ndarray:
        """From what the step that made them told."""
        powers = self._powers.get((W,), lambda: self.motifs(W).max(axis=(0, 1)))
        return np.flatnonzero(powers == 0)

    @cached_property
    def _powers(self) -> Memo:
        return Memo(2)

    def _told(self, W: Any, H: Any) -> tuple[Any, Any]:
        """Room for what a step tells, the residuals of the motifs there already; their gradient.

        Told are those, what ``Sums`` are made of, and the power of each new motif.
        """
        told = self.xp.zeros(_OF_MOTIFS + 4 + 3 * self.problem.K)
        return told, self._residuals_of_motifs(W, H, told[:_OF_MOTIFS])

    def _taken(
        self, W: Any, H: Any, solver: Solver, inner: Inner, told: Any, gradient: Any
    ) -> tuple[Any, Any, Any]:
        """New factors and the problem in the activations; all on the device (changes told)."""
        of_W, all_of_W = self.motif_problem(W, H), self._all_columns(W, H)
        W = self._updated_motifs(W, of_W, solver, inner, gradient)
        if self.model.background:
            _update_background(W, *all_of_W)
        problem = self.activation_problem(W, H)
        H = self._swept(H, problem, solver, inner)
        K = self.problem.K
        self._sum_up(H, problem, told[_OF_MOTIFS:-K])
        told[-K:] = self._statistics(W).A[:, self.model.L - 1].diagonal()
        return W, H, problem

    @cached_property
    def _recordings(self) -> dict[Any, Recording]:
        return {}

    @cached_property
    def _may_be_recorded(self) -> bool:
        """Whether a step is the same launches every time, and bound by them."""
        penalties, problem = self.model.penalties, self.problem
        coupled = (
            penalties.between_activations() is not None or penalties.between_matches() is not None
        )
        own = coupled or self.hides or self.model.background or self.data.forbidden is not None
        return not (own or self.data.streamed) and problem.T * problem.N <= _LAUNCH_BOUND

    def _recording(self, W: Any, H: Any, solver: Solver, inner: Inner) -> Recording | None:
        """The step that was recorded, once it pays."""
        self._steps += 1
        if self._steps <= _RECORDED_AFTER or type(solver) is not HALS or not self._may_be_recorded:
            return None
        key = solver.order, inner.max_sweeps, inner.shrink, self._rough
        if key not in self._recordings:
            plain = Inner(inner.max_sweeps, inner.shrink)

            def body(W: Any, H: Any) -> tuple[Any, Any, Any]:
                self._forget()
                told, gradient = self._told(W, H)
                W, H, _ = self._taken(W, H, solver, plain, told, gradient)
                self._forget()
                return W, H, told

            self._recordings[key] = Recording(self.device, body, W, H)
        found = self._recordings[key]
        return found if found.works else None

    def _updated_motifs(
        self, W: Any, of_W: WStatistics, solver: Solver, inner: Inner, gradient: Any
    ) -> Any:
        """New motifs, those that are learnt updated."""
        learnt = self.model.learnt
        W = W.copy()
        if not learnt.size:
            return W
        part = self._learnt(W)
        penalties = self.model.penalties.for_components(learnt.size)
        update_W(self.device, solver, part, of_W, penalties, inner, gradient)
        if self.model.held is not None:
            W[:, :, self._here(learnt)] = part
        return W

    def _learnt(self, W: Any) -> Any:
        """The motifs that are learnt: a copy, unless all are."""
        if self.model.held is None:
            return W
        return self.xp.ascontiguousarray(W[:, :, self._here(self.model.learnt)])

    # --- at given factors -------------------------------------------------------------------

    def residual(self, W: Any, H: Any) -> float:
        """One pass over the data."""
        return self.passes.squared_residual(W, H)

    def kkt_of_motifs(self, W: Any, H: Any) -> float:
        """From P and B, which the next iteration will use."""
        told = self.xp.zeros(_OF_MOTIFS)
        self._residuals_of_motifs(W, H, told)
        return _kkt_of(self.device.host(told))

    def _residuals_of_motifs(self, W: Any, H: Any, out: Any) -> Any:
        """Sums above and below, of the motifs and of the background (changes out, (4,), of zeros).

        Returns the gradient of those that are learnt, None if there are none.
        """
        learnt, gradient = self.model.learnt, None
        if learnt.size:
            part, of_W = self._learnt(W), self.motif_problem(W, H)
            flat = part.reshape(of_W.P.shape)
            gradient = self.device.product(flat, of_W.B)
            gradient -= of_W.P
            penalties = self.model.penalties.for_components(learnt.size)
            weights = self._here(penalties.l1_W), self._here(penalties.l2_W)
            kernels = self.device.kernels(learnt.size, self.model.L, W.dtype)
            kernels.sums_W(flat, gradient, of_W.B, *weights, out[:2])
        if self.model.background:
            out[2:] = _update_background(W.copy(), *self._all_columns(W, H))
        return gradient

    def power_shares(self, W: Any, H: Any) -> Array:
        """Σ(2X·X̂_k − X̂_k²)/ΣX² over observed entries, floored at zero, from the statistics."""
        problem, statistics = self.problem, self._statistics(W)
        shares = np.zeros(problem.K)
        if problem.squared_norm == 0:
            return shares
        for k in range(problem.K):
            alone = self.xp.zeros(H.shape, dtype=H.dtype)
            alone[:, k] = H[:, k]
            shares[k] = self._inner(2 * statistics.C - statistics.correlate(alone), alone)
            if self.hides:
                shares[k] += self.passes.hidden_power(W, alone)
        return np.maximum(shares / problem.squared_norm, 0.0)

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
            C[:, :n] *= self.data.allowed
        return DeviceStatistics(C, *self._grams(W), self.data)

    def _grams(self, W: Any) -> tuple[Any, Any]:
        """A (K, 2L−1, K) and E (L, K, L, K) of placed motifs, as ``model.motifs.motif_grams``."""
        N, L, K = W.shape
        reverse = self.xp.ascontiguousarray(W[:, ::-1]).reshape(N, L * K)
        E = self.device.product(reverse.T, reverse).reshape(L, K, L, K)
        self.kernels.diagonal_sums(E)
        A = self.xp.empty((K, 2 * L - 1, K), dtype=W.dtype)
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


def _kkt_of(numbers: Array) -> float:
    """The KKT residual of the motifs, from the first of what a step tells."""
    above, below, *background = (float(number) for number in numbers[:_OF_MOTIFS])
    return max(kkt_ratio(above, below), kkt_ratio(*background))


def _update_background(W: Any, P: Any, B: Any) -> Any:
    """``solvers.learnt.update_background`` on a device (changes W).

    Returns the two sums of the KKT residual that it had, (2,).
    """
    N, _, K = W.shape
    column = K - 1
    level = W[:, 0, column].astype(np.float64)
    slope = (W.reshape(N, -1) @ B[:, column] - P[:, column]).astype(np.float64)
    step = slope / np.maximum(B[column, column].astype(np.float64), 1e-300)
    part = np.minimum(level, step)
    W[:, 0, column] = np.maximum(level - step, 0)
    return np.stack([part @ part, level @ level])
