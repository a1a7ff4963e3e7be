"""The engine of a device for squared error: Grams and gradients by kernels and cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from motifold.engines.base import Step
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.statistics import WStatistics
from motifold.engines.cuda.beside import Asked, likeness_of
from motifold.engines.cuda.problems import DeviceProblems
from motifold.engines.cuda.recording import Foreseen, Point, Recording
from motifold.engines.cuda.solving import update_W
from motifold.engines.cuda.together import Seat, seat, together
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
# Entries of X beyond which TF32 saves time: launches bind the products of smaller ones, too.
_LARGE = 2**24
# Entries of X up to which starts go side by side, and how many at most.
_SMALL, _MOST_STARTS = 2**24, 16

Result = TypeVar("Result")


class CUDAEngine(DeviceProblems):
    """A problem on a GPU (or NumPy in its place); handles are its arrays."""

    _far = 0.0  # the KKT residual after the last step
    _steps = 0  # that were taken
    _next_beta: float | None = None  # of the step behind the next, if that is taken
    _foreseen: Foreseen | None = None
    _residual_asked = False  # whether anyone asked for one since the last step

    @property
    def _may_be_rough(self) -> bool:
        return (
            self._far > _ROUGH
            and self.device.precision == "auto"
            and self.problem.dtype == np.float32
            and self.problem.T * self.problem.N > _LARGE
        )

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
        mine = seat()
        if mine is not None and self._may_meet(solver):
            return self._met(mine, W, H, solver, inner, enough)
        return self.step_alone(W, H, solver, inner, follow, enough)

    def step_alone(
        self, W: Any, H: Any, solver: Solver, inner: Inner, follow: float, enough: float | None
    ) -> Step:
        """The same, whoever else is in a meeting."""
        self._rough = self._may_be_rough and enough is None
        if self._rough:
            self._forget_products()  # those of a certificate are not rounded, nor these kept
        recording = None if enough is not None else self._recording(W, H, solver, inner)
        problem: Any = None
        beta, self._next_beta = self._next_beta, None
        if recording is None:
            self._foreseen = None
            told, gradient = self._told(W, H)
            if enough is not None:
                kkt_W = _kkt_of(self.device.host(told))
                if kkt_W <= enough:
                    return Step(kkt_W)
            W, H, problem = self._taken(W, H, solver, inner, told, gradient)
            numbers = self.device.host(told)
        else:
            W, H, numbers = self._replayed(recording, W, H, beta)
        if self._rough:
            self._forget_products()
        self._rough = False
        return self.step_of(W, H, numbers, problem, follow)

    def step_of(
        self, W: Any, H: Any, numbers: Array, problem: Any = None, follow: float = 0.0
    ) -> Step:
        """From what it told."""
        sums = self._sums_of(numbers[_OF_MOTIFS : -self.problem.K], H, problem)
        kkt_W = _kkt_of(numbers)
        self._powers.put((W,), numbers[-self.problem.K :].copy())
        self._far = max(kkt_W, sums.kkt)
        followed = not self.hides or sums.kkt <= follow
        if self.hides and followed:
            sums = self._sums(H, self._filled_problem(problem, H))
        return Step(kkt_W, W, H, sums, self._penalty(W, sums), followed)

    def _replayed(
        self, recording: Recording, W: Any, H: Any, beta: float | None
    ) -> tuple[Any, Any, Array]:
        """A recorded step, begun already if it was foreseen; the next begins behind it."""
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and foreseen.is_of(recording, W, H):
            begun = foreseen.step
        else:
            begun = recording.begin(W, H)
        if beta is not None:
            of_W = self._beyond(begun.W, self._origin(W), beta)
            of_H = self._beyond(begun.H, self._origin(H), beta)
            step = recording.begin(of_W.ahead, of_H.ahead)
            if self._residual_asked:  # it will be asked for again
                residual = self.passes.squared_residual(step.W, step.H)
                self._residuals.put((step.W, step.H), residual)
            self._residual_asked = False
            self._foreseen = Foreseen(recording, beta, of_W, of_H, step)
        return begun.W, begun.H, begun.numbers()

    def _beyond(self, now: Any, before: Any, beta: float) -> Point:
        return Point(super().ahead(now, before, beta), now, before)

    def _origin(self, ahead: Any) -> Any:
        """The factor that this one is ahead of; itself, if it is of none."""
        return self._origins.get((ahead,), lambda: ahead)

    @cached_property
    def _origins(self) -> Memo:
        return Memo(4)

    def ahead(self, now: Any, before: Any, beta: float) -> Any:
        """A new array, or the one where a step has begun already."""
        found = None if self._foreseen is None else self._foreseen.ahead(now, before, beta)
        found = super().ahead(now, before, beta) if found is None else found
        self._origins.put((found,), now)
        return found

    def foresee(self, beta: float) -> None:
        """A recorded step begins while the numbers of the one before it are looked at."""
        self._next_beta = beta

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
        starts = _starts_of(W)
        told = self.xp.zeros(starts * self._n_told)
        return told, self._residuals_of_motifs(W, H, told[: starts * _OF_MOTIFS])

    @property
    def _n_told(self) -> int:
        """How many numbers a step of one start tells."""
        return _OF_MOTIFS + 4 + 3 * self.problem.K

    def told_of(self, numbers: Array, number: int, starts: int) -> Array:
        """What one of several starts is told, of the numbers of all: each sum lies together."""
        of_motifs, K = starts * _OF_MOTIFS, starts * self.problem.K
        parts = numbers[:of_motifs].reshape(2, starts, -1)[:, number]
        sums, powers = numbers[of_motifs:-K], numbers[-K:]
        each = (part.reshape(starts, -1)[number] for part in (sums, powers))
        return np.concatenate([parts.ravel(), *each])

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
        starts = _starts_of(W)
        K = starts * self.problem.K
        self._sum_up(H, problem, told[starts * _OF_MOTIFS : -K])
        own = self._statistics(W).A[..., self.model.L - 1, :]
        told[-K:] = own.diagonal(axis1=-2, axis2=-1).reshape(-1)
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
            self._recordings[key] = Recording(self.device, self.body(solver, inner), W, H)
        found = self._recordings[key]
        return found if found.works else None

    def body(self, solver: Solver, inner: Inner) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
        """The step to record; also of several starts, whose factors have one more axis in front."""
        plain = Inner(inner.max_sweeps, inner.shrink)

        def body(W: Any, H: Any) -> tuple[Any, Any, Any]:
            self._forget()
            told, gradient = self._told(W, H)
            W, H, _ = self._taken(W, H, solver, plain, told, gradient)
            self._forget()
            return W, H, told

        return body

    # --- side by side with others -----------------------------------------------------------

    def _may_meet(self, solver: Solver) -> bool:
        """Whether a step may be taken together with those of other starts."""
        small = self.problem.T * self.problem.N <= _SMALL and self.device.has_one_stream
        return small and type(solver) is HALS and self._may_be_recorded and self.model.held is None

    @cached_property
    def likeness(self) -> Hashable:
        """What has to be equal of engines whose steps are taken as one."""
        return likeness_of(self)

    def beside(self, n: int, solver: Solver) -> list[Any]:
        """Engines for so many starts side by side; none where one after the other is as good."""
        n = min(n, self.most_starts)
        if n < 2 or seat() is not None or not self._may_meet(solver):
            return []
        return [type(self)(self.problem, self.workers, self.device, self.data) for _ in range(n)]

    @cached_property
    def most_starts(self) -> int:
        """How many there may be side by side: what they take has to fit, too."""
        problem, room = self.problem, self.device.room()
        if room is None:
            return _MOST_STARTS
        rows = max(b - a for a, b in self.data.ranges)
        # Windows, X·W̃ and what is made of them; B, E and their like; H, C and theirs.
        columns = problem.L * problem.K
        numbers = 3 * rows * columns + 8 * columns**2 + 12 * problem.T * problem.K
        each = numbers * problem.dtype.itemsize
        return int(max(1, min(_MOST_STARTS, room // each)))

    def together(self, works: Sequence[Callable[[], Result]]) -> list[Result]:
        """Do the works at once, each in a thread, whose device is this engine's."""

        def here(work: Callable[[], Result]) -> Callable[[], Result]:
            def done() -> Result:
                with self.device.here():
                    return work()

            return done

        return together([here(work) for work in works])

    def _met(
        self,
        mine: Seat,
        W: Any,
        H: Any,
        solver: Solver,
        inner: Inner,
        enough: float | None,
    ) -> Step:
        self._next_beta = self._foreseen = None
        step: Step = mine.step(Asked(self, W, H, solver, inner))
        return Step(step.kkt_W) if enough is not None and step.kkt_W <= enough else step

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
        """One pass over the data, which may be under way already."""
        self._residual_asked = True
        return self._residuals.get((W, H), lambda: self.passes.squared_residual(W, H))()

    @cached_property
    def _residuals(self) -> Memo:
        return Memo(4)  # of two iterates that are compared, and of those that are under way

    def kkt_of_motifs(self, W: Any, H: Any) -> float:
        """From P and B, which the next iteration will use."""
        told = self.xp.zeros(_OF_MOTIFS)
        self._residuals_of_motifs(W, H, told)
        return _kkt_of(self.device.host(told))

    def _residuals_of_motifs(self, W: Any, H: Any, out: Any) -> Any:
        """Sums above and below, of the motifs and of the background (changes out, (4,), of zeros).

        Of several starts first those of all their motifs.

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
            kernels.sums_W(flat, gradient, of_W.B, *weights, out[: len(out) // 2])
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


def _starts_of(W: Any) -> int:
    """How many starts lie side by side."""
    return 1 if W.ndim == 3 else int(W.shape[0])


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
