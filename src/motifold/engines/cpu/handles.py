"""Factors on this machine: as handles, which are arrays; drawn, put, moved about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from motifold.engines.cpu.hidden import hidden_fit, hidden_power
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import worst_window
from motifold.engines.cpu.statistics import HStatistics, h_statistics
from motifold.engines.cpu.threads import Workers
from motifold.kernels.residuals import extrapolate
from motifold.model import Array
from motifold.model.motifs import in_data_scale, moved_along, with_background

# Rows of H that a thread takes at a time for sums, and seconds of an entry, about.
RUN, SECONDS = 4096, 1e-9
# X̂ of a random start has at least this part of the norm of data that may be below zero.
_LEAST_START = 0.1


class Handles:
    """A problem, its factors W (N, L, K) and H (T, K), and what is kept for the last of them.

    Parameters
    ----------
    problem : a model and its data
    workers : the threads
    """

    def __init__(self, problem: Problem, workers: Workers) -> None:
        self.problem = problem
        self.workers = workers
        self._of_motifs = Memo(2)  # W → C, A, E of the data
        self._problems = Memo(2)  # W → the problem in H
        self._filled = Memo(1)  # problem, H → the same with missing entries those of H
        self._of_activations = Memo(1)  # H → P, B of the data
        self._motif_problems = Memo(1)  # W, H → the problem in W
        self._fits = Memo(1)  # W, H → X̂ at the missing entries
        self._gradients = Memo(1)  # problem, H → ∇, where sweeps left it behind
        self._columns = Memo(1)  # W, H → P, B of all components
        self._of_background = Memo(2)  # A of the problem in H → what the background explains

    model = property(lambda self: self.problem.model)
    facts = property(lambda self: self.problem.facts)
    hides = property(lambda self: bool(self.problem.hidden))
    lengths = property(lambda self: list(self.problem.data.layout.lengths))

    @property
    def reference_deviance(self) -> float:
        """‖X‖²: what the loss is relative to."""
        return self.facts.squared_norm

    # --- handles ----------------------------------------------------------------------------

    def draw(self, seed: int, W: Array | None, H: Array | None) -> tuple[Array, Array]:
        """Given factors as they are; others uniform on (0, 1), as in the paper.

        What was drawn is scaled so that α·X̂ fits the data best. Numbers are those of PCG64 in
        the order W, H: any engine can make any rows of them by ``PCG64.advance``.
        """
        dtype = self.problem.dtype
        draw_W, draw_H = W is None, H is None
        W, H = self._drawn(seed, W, H)
        if not (draw_W or draw_H):
            return W, H
        statistics = self._statistics(W)
        alpha = self._best_scale(statistics, W, H)
        share = np.sqrt(alpha) if draw_W and draw_H else alpha
        if draw_H:
            H[:, : self.model.n_motifs] *= dtype.type(share)
        if draw_W:
            W = W * dtype.type(share)
            self._of_motifs.put((W,), statistics.rescaled(dtype.type(share)))
        return W, H

    def _drawn(self, seed: int, W: Array | None, H: Array | None) -> tuple[Array, Array]:
        """Given factors, or uniform random numbers, zero where nothing can be learnt."""
        problem, dtype = self.problem, self.problem.dtype
        K = self.model.n_motifs
        rng = np.random.default_rng(seed)
        # Drawn in either case: a given factor does not change the other's random numbers.
        random_W = rng.random((problem.N, problem.L, K), dtype=np.float64)
        random_W[~problem.learnable[0]] = 0  # nothing will ever move them
        W = np.array(random_W if W is None else W, dtype=dtype, order="C")
        if H is None:
            H = np.empty((problem.T, K), dtype=dtype)
            for a in range(0, problem.T, RUN):
                H[a : a + RUN] = rng.random(H[a : a + RUN].shape, dtype=np.float64)
        else:
            H = np.array(H, dtype=dtype, order="C")
        H = problem.confine(H)
        if self.model.background:
            W, H = self._with_background(W), self._with_constant(H)
        return W, H

    def _with_background(self, W: Array) -> Array:
        """Motifs with a first guess of the background beside them, unless it is there already."""
        if W.shape[2] == self.model.K:
            return W
        return with_background(W, self._first_background())

    def _with_constant(self, H: Array) -> Array:
        """Activations with those of the background, which are 1, beside them."""
        return np.concatenate([H[:, : self.model.n_motifs], np.ones_like(H[:, :1])], axis=1)

    def _first_background(self) -> Array:
        """(N,): none; the first iteration finds the best."""
        return np.zeros(self.problem.N)

    def _best_scale(self, statistics: HStatistics, W: Array, H: Array) -> float:
        """The α for which α·X̂ is nearest to X."""
        overlap = np.einsum("tk,tk->", statistics.C, H, dtype=np.float64)
        power = np.einsum("tk,tk->", statistics.correlate(H), H, dtype=np.float64)
        if self.hides:
            power -= hidden_power(hidden_fit(self.problem, W, H, self.workers), self.workers)
        return self._scale_for(float(overlap), float(power))

    def _scale_for(self, overlap: float, power: float) -> float:
        """The same from ⟨X, X̂⟩ and ‖X̂‖²."""
        if power <= 0:
            return 1.0
        least = 0.0
        if self.model.signed:  # data around zero has next to no overlap with what is above it
            least = _LEAST_START * np.sqrt(self.facts.squared_norm / power)
        return max(float(overlap / power), float(least))

    def put(self, H: Array) -> Array:
        """The array itself, in the data's precision."""
        return np.ascontiguousarray(H, dtype=self.problem.dtype)

    put_motifs = put

    def motifs(self, W: Array) -> Array:
        """The array itself."""
        return W

    def empty_motifs(self, W: Array) -> np.ndarray:
        """By a look at all entries."""
        return np.flatnonzero(~W.any(axis=(0, 1)))

    def gather(self, H: Array) -> Array:
        """The array itself."""
        return H

    def delivered(self, H: Array, scales: Array, order: np.ndarray) -> Any:
        """An array."""
        model = self.model
        return in_data_scale(self.gather(H), scales, model.scale, order, self.problem.dtype)

    def ahead(self, now: Array, before: Array, beta: float) -> Array:
        """A new array."""
        ahead, step = np.empty_like(now), RUN * self.problem.K
        flags = np.zeros(-(-now.size // step) + 2, dtype=np.int64)
        args = now, before, now.dtype.type(beta), step, ahead, flags
        self.workers.together(lambda n: extrapolate(*args, n), SECONDS * now.size)
        return ahead

    def foresee(self, beta: float) -> None:
        """All cores are at work anyway."""

    def beside(self, n: int, solver: Any) -> list[Any]:
        """None: all cores are."""
        return []

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """One after the other."""
        return [work() for work in works]

    def zeros(self, problem: Any = None) -> Array:
        """An array of zeros (T, K)."""
        dtype = self.problem.dtype if problem is None else problem.statistics.C.dtype
        H = np.zeros((self.problem.T, self.problem.K), dtype=dtype)
        H[:, self.model.n_motifs :] = 1
        return H

    def level(self, values: Array) -> Array:
        """A new array."""
        H = self.zeros()
        H[:] = values
        H = self._confined(H)
        H[:, self.model.n_motifs :] = 1
        return H

    def means(self, H: Array) -> Array:
        """In float64."""
        return H.mean(axis=0, dtype=np.float64)

    # --- moves ------------------------------------------------------------------------------

    def take(self, H: Array, rows: list[tuple[int, int]] | None) -> Array:
        """A new array, or H itself."""
        return H if rows is None else np.concatenate([H[a:b] for a, b in rows])

    def worst_window(self, W: Array, H: Array, k: int | None = None) -> tuple[int, Array] | None:
        """One pass over the data."""
        support = self.problem.support
        starts = None if support is None or k is None else support[:, k]
        return worst_window(self.problem, W, H, self.workers, starts)

    def plant(self, W: Array, H: Array, k: int, t: int, window: Array) -> tuple[Array, Array]:
        """The weight goes to both factors alike, as after a while of alternating."""
        W, H = W.copy(), H.copy()
        norm = np.linalg.norm(window)
        level = np.sqrt(norm)
        H[:, k] = 0
        W[:, :, k], H[t, k] = window.T * (level / norm), level
        return W, H

    def shift(self, W: Array, H: Array, shifts: dict[int, int]) -> tuple[Array, Array]:
        """Activations stay within their segments."""
        W, H = W.copy(), H.copy()
        for k, by in shifts.items():
            W[:, :, k] = moved_along(W[:, :, k], by, axis=1)
            for start, _, stop in self.problem.bounds:
                H[start:stop, k] = moved_along(H[start:stop, k], -by, axis=0)
            H[~self.problem.allowed, k] = 0
            if self.problem.support is not None:
                H[~self.problem.support[:, k], k] = 0
        return W, H

    # --- the parts --------------------------------------------------------------------------

    def _statistics(self, W: Array) -> HStatistics:
        """C, A and E of the data alone."""
        return self._of_motifs.get((W,), lambda: h_statistics(self.problem, W, self.workers))

    def _here(self, array: Any) -> Any:
        """An array of the model's, not to be changed, where the handles are."""
        return array

    def _confined(self, H: Array) -> Array:
        """Zero where activations may not differ from it, or cannot be learnt (changes H)."""
        return self.problem.confine(H)

    def _inner(self, F: Array, G: Array) -> float:
        """⟨F, G⟩, accumulated in float64."""
        return float(np.einsum("tk,tk->", F, G, dtype=np.float64))
