"""The two data passes and the Grams they feed: the only code that reads X.

Everything a solver needs of the data are P and B (to update W) or C, A and E (to update H); see
``docs/theory``. X is read in time blocks, and nothing of its size is allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.engines.cpu import passes, sparse
from motifold.engines.cpu.hidden import HiddenFit, filled_C, hidden_fit, moved_power
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.spectral import Spectra, best_way
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import Padding, correlate
from motifold.model import Array
from motifold.model.motifs import block_diagonal_sums, motif_grams, newest_first

Map = Callable[[Array], Array]

# Bytes of the ends of segments that are taken at a time.
_TAIL_BYTES = 2**24


@dataclass(frozen=True)
class WStatistics:
    """What W depends on when H is fixed: ``solvers.base.WStatistics`` says what is what."""

    P: Array
    B: Array
    workers: Workers
    slope: Array | None = None
    P_data: Array | None = None

    def gradient(self, W: Array) -> Array:
        """∇_W J as (N, L·K), l1 and l2 left out; W is (N, L, K) or (N, L·K)."""
        # A penalty may be so large beside small data that a slope is infinite, as it should be.
        with np.errstate(over="ignore"):
            gradient = W.reshape(self.P.shape) @ self.B
        return np.subtract(gradient, self.P, out=gradient)


@dataclass(frozen=True)
class HStatistics:
    """What H depends on when W is fixed: see ``solvers.base.HStatistics``, and two more.

    Attributes
    ----------
    fill : how missing entries enter C, None if there are none
    fill_power : Σ X̂² over the missing entries, as they are in C
    """

    C: Array
    A: Array
    E: Array
    bounds: np.ndarray
    workers: Workers
    slope: Array | None = None
    C_data: Array | None = None
    fill: Fill | None = None
    fill_power: float = 0.0

    def correlate(self, H: Array) -> Array:
        """A∗H (T, K): the products of every placed motif with X̂."""
        return correlate(H, self.A, self.E, self.bounds, self.workers)

    def gradient(self, H: Array) -> Array:
        """∇_H J (T, K), l1 and l2 left out."""
        return correlate(H, self.A, self.E, self.bounds, self.workers, self.C)

    def refilled(self, H: Array) -> HStatistics:
        """The same statistics with the missing entries replaced by X̂ of this H."""
        if self.fill is None:
            return self
        fill, C, power = self.fill.at(H, self.workers)
        changes: dict[str, Any] = (
            {"C": C} if self.slope is None else {"C": C - self.slope, "C_data": C}
        )
        return replace(self, fill=fill, fill_power=power, **changes)

    def _mapped(self, part: Map, grams: Map) -> dict[str, Any]:
        """The arrays that have the components in their last axis, and the Grams, mapped."""
        mapped: dict[str, Any] = {"A": grams(self.A), "E": grams(self.E)}
        for name in ("C", "slope", "C_data"):
            array = getattr(self, name)
            mapped[name] = None if array is None else part(array)
        if self.fill is not None:
            mapped["fill"] = self.fill.mapped(part)
        return mapped

    def rescaled(self, factor: np.floating) -> HStatistics:
        """The statistics of the motifs times a factor; of the data alone."""
        return replace(self, C=factor * self.C, A=factor**2 * self.A, E=factor**2 * self.E)

    def without_last(self, explained: Array) -> HStatistics:
        """The statistics of all motifs but the last, which explains (T, K) of their products."""

        def rest(gram: Array) -> Array:
            return np.ascontiguousarray(
                gram.take(range(gram.shape[-1] - 1), gram.ndim - 3)[..., :-1]
            )

        data = self.C if self.C_data is None else self.C_data
        slope = explained if self.slope is None else explained + self.slope
        return HStatistics(
            self.C[:, :-1] - explained[:, :-1],
            rest(self.A),
            rest(self.E),
            self.bounds,
            self.workers,
            slope=np.ascontiguousarray(slope[:, :-1]),
            C_data=np.ascontiguousarray(data[:, :-1]),
        )

    def component(self, k: int) -> HStatistics:
        """The statistics of motif k alone; of the data alone."""
        C, A, E = self.C[:, [k]], self.A[[k]][:, :, [k]], self.E[:, [k]][:, :, :, [k]]
        return HStatistics(C, A, np.ascontiguousarray(E), self.bounds, self.workers)

    def astype(self, dtype: npt.DTypeLike) -> HStatistics:
        """The same statistics in another precision."""

        def cast(part: Array) -> Array:
            return part.astype(dtype, copy=False)

        return replace(self, **self._mapped(cast, cast))

    def permuted(self, order: np.ndarray) -> HStatistics:
        """The same statistics with the components in another order."""

        def columns(part: Array) -> Array:
            return np.ascontiguousarray(part[..., order])

        def grams(gram: Array) -> Array:
            rows = gram.take(order, axis=gram.ndim - 3)
            return np.ascontiguousarray(rows[..., order])

        return replace(self, **self._mapped(columns, grams))

    @cached_property
    def padding(self) -> Padding:
        """How H is laid out for sweeps and windows."""
        return Padding(self.bounds, self.E.shape[0])


@dataclass(frozen=True)
class Fill:
    """How missing entries enter C.

    Attributes
    ----------
    W : the motifs that make X̂
    C : the part of it that is observed
    fit : the missing entries that have been entered, if any
    """

    problem: Problem
    W: Array
    C: Array
    fit: HiddenFit | None = None

    def at(self, H: Array, workers: Workers) -> tuple[Fill, Array, float]:
        """The fill with the entries of W∗H; C (T, K) with them; and the sum of their squares."""
        fit = hidden_fit(self.problem, self.W, H, workers)
        C, power = filled_C(fit, workers)
        return replace(self, fit=fit), np.add(C, self.C, out=C), power

    def moved(self, H: Array, workers: Workers) -> tuple[float, HiddenFit]:
        """The squared distance of the entries of W∗H from those entered, and the new ones."""
        assert self.fit is not None
        return moved_power(self.fit, H, workers)

    def mapped(self, part: Map) -> Fill:
        """The same with both arrays mapped, and nothing entered."""
        return Fill(self.problem, part(self.W), part(self.C))


def w_statistics(problem: Problem, H: Array, workers: Workers) -> WStatistics:
    """Data pass 1: P = X H̃ᵀ and B = H̃H̃ᵀ, added up over blocks and segments in float64."""
    L, K, dtype = problem.L, problem.K, problem.dtype
    P, base = _products(problem, H, workers)
    B = gram_from_tail(base.reshape(K, L, K), tail_products(H, problem.bounds, L))
    return WStatistics(P, B.astype(dtype, copy=False), workers)


def data_products(problem: Problem, H: Array, workers: Workers) -> Array:
    """Data pass 1 without the Gram: P = X H̃ᵀ, (N, L·K)."""
    return _products(problem, H, workers)[0]


def _products(problem: Problem, H: Array, workers: Workers) -> tuple[Array, Array]:
    """P (N, L·K), and the lag products of H that B is made of."""
    N, L, K, dtype = problem.N, problem.L, problem.K, problem.dtype
    spectra = _spectra(problem)
    read = spectra is None and not problem.sparse
    P, base = passes.lag_products(problem, H, workers, read)
    if problem.sparse:
        P = sparse.lag_products(problem, H, workers)
    if spectra is not None:
        P = newest_first(spectra.products(H, workers), L)
    elif problem.weights is not None:
        P = P * problem.weights[:, None, None]
    return P.reshape(N, L * K).astype(dtype, copy=False), base


def data_correlation(problem: Problem, W: Array, workers: Workers) -> Array:
    """Data pass 2 without the Grams: C = W⋆X (T, K), zero where no motif may start."""
    spectra = _spectra(problem)
    if spectra is not None:
        C = spectra.correlation(W, workers)
        if not problem.model.signed:  # rounding may be below zero
            np.maximum(C, 0, out=C)
    else:
        weighed = W if problem.weights is None else W * problem.weights[:, None, None]
        C = (sparse if problem.sparse else passes).correlation(problem, weighed, workers)
    if problem.boundary == "valid":
        C[~problem.allowed, : problem.model.n_motifs] = 0
    return C


def h_statistics(problem: Problem, W: Array, workers: Workers) -> HStatistics:
    """Data pass 2: C = W⋆X, and the Grams A and E of W."""
    C = data_correlation(problem, W, workers)
    A, E = motif_grams(W)
    return HStatistics(C, A, E, problem.bounds, workers)


def _spectra(problem: Problem) -> Spectra | None:
    """The transformed data, where passes by FFT are the best way for a problem of this shape."""
    if "spectra" not in problem.kept:
        sizes = problem.N, problem.T, problem.K, problem.L, problem.dtype.itemsize
        way = "products" if problem.sparse else best_way(*sizes)
        keep = way == "kept transforms"
        problem.kept["spectra"] = None if way == "products" else Spectra(problem, keep)
    return problem.kept["spectra"]


def tail_products(H: Array, bounds: np.ndarray, L: int) -> Array:
    """Products of the last L rows of every segment, newest first, zeros where it has fewer.

    (L·K, L·K) in float64, summed over segments, some of them at a time.
    """
    K = H.shape[1]
    sums = np.zeros((L * K, L * K))
    step = max(1, _TAIL_BYTES // (8 * L * K))
    for i in range(0, len(bounds), step):
        starts, _, stops = bounds[i : i + step].T
        rows = stops[:, None] - 1 - np.arange(L)
        tails = H[np.maximum(rows, starts[:, None])].astype(np.float64)
        tails[rows < starts[:, None]] = 0
        tails = tails.reshape(len(tails), L * K)
        sums += tails.T @ tails
    return sums


def gram_from_tail(base: Array, products: Array) -> Array:
    """B (L·K, L·K) from the sums that all lags share and what the last rows of H add.

    base (K, L, K): Σ_s H[s, j] H[s+d, k] over s ≤ T−L, as [j, d, k]. products: of the last L rows,
    see ``tail_products`` (changes it). All terms are nonnegative and only added, so a true zero
    stays zero (running the recursion the other way subtracts, and HALS would divide by −3e-16).
    """
    K, L, _ = base.shape
    sums = products.reshape(L, K, L, K)
    # B[ℓ, k, L−1, j] with ℓ = L−1−d is the base sum at lag d.
    sums[:, :, L - 1, :] = base[:, ::-1, :].transpose(1, 2, 0)
    return block_diagonal_sums(sums).reshape(L * K, L * K)
