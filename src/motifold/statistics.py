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

from motifold.kernels.windows import correlate_tails, lag_products, shift_and_add
from motifold.missing import HiddenFit, filled_C, hidden_fit, moved_power
from motifold.parallel import Workers
from motifold.problem import Array, Problem, Segment, sum_of_others
from motifold.spectral import Spectra, best_way
from motifold.toeplitz import BlockToeplitz, Padding, padded_rows, smoothed, windows

Map = Callable[[Array], Array]


@dataclass(frozen=True)
class WStatistics:
    """What W depends on when H is fixed.

    Attributes
    ----------
    P : (N, L·K), P[n, ℓK+k] = Σ_t X[t, n] H[t−ℓ, k], less the slope of what is linear in W
    B : (L·K, L·K), the Gram of the shifted copies of H, with what is quadratic in W
    workers : threads for whoever wants them; rows of W are independent
    slope : (N, L·K), nonnegative, or None: what was taken from P
    P_data : P before that, nonnegative, or None if nothing was taken
    """

    P: Array
    B: Array
    workers: Workers
    slope: Array | None = None
    P_data: Array | None = None

    def gradient(self, W: Array) -> Array:
        """∇_W J as (N, L·K), l1 and l2 left out; W is (N, L, K) or (N, L·K)."""
        gradient = W.reshape(self.P.shape) @ self.B
        return np.subtract(gradient, self.P, out=gradient)


@dataclass(frozen=True)
class HStatistics:
    """What H depends on when W is fixed.

    Attributes
    ----------
    C : (T, K), C[t, k] = ⟨motif k placed at t, X⟩, less the slope of what is linear in H
    A : (K, 2L−1, K), A[k, L−1+δ, j] = ⟨motif k placed at t, motif j placed at t+δ⟩
    E : (L, K, L, K), the same product for the last L starts of a segment, in the order of time,
        where its end cuts motifs off: E[p, k, q, j], start p having L−p samples left
    bounds : (segments, 3), see ``Problem.bounds``
    workers : threads for whoever wants them
    slope : (T, K), nonnegative, or None: what was taken from C
    C_data : C before that, nonnegative, or None if nothing was taken
    ortho : what A and E have been given on top where two different motifs meet (``ortho_H``)
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
    ortho: float = 0.0
    fill: Fill | None = None
    fill_power: float = 0.0

    def correlate(self, H: Array) -> Array:
        """A∗H (T, K): the products of every placed motif with X̂."""
        out = BlockToeplitz(self.A, self.padding).apply(H, self.workers)
        correlate_tails(H, self.A, self.E, self.bounds, out)
        return out

    def gradient(self, H: Array) -> Array:
        """∇_H J (T, K), l1 and l2 left out."""
        gradient = self.correlate(H)
        return np.subtract(gradient, self.C, out=gradient)

    def curvature(self) -> Array:
        """The diagonal of the Gram, (T, K): squared norm of every motif as placed."""
        L, K = self.E.shape[:2]
        lag0 = np.arange(K)
        full = self.A[lag0, L - 1, lag0]
        cut = self.E[np.arange(L)[:, None], lag0, np.arange(L)[:, None], lag0]
        diagonal = np.broadcast_to(full, self.C.shape).copy()
        for start, _, stop in self.bounds:
            tail = min(L, stop - start)
            diagonal[stop - tail : stop] = cut[L - tail :]
        return diagonal

    def refilled(self, H: Array) -> HStatistics:
        """The same statistics with the missing entries replaced by X̂ of this H."""
        if self.fill is None:
            return self
        fill, C, power = self.fill.at(H, self.workers)
        changes: dict[str, Any] = (
            {"C": C} if self.slope is None else {"C": C - self.slope, "C_data": C}
        )
        return replace(self, fill=fill, fill_power=power, **changes)

    def coupling(self, H: Array) -> tuple[float, float]:
        """Values at H of the penalties that are in the slope and in the Grams."""
        linear = quadratic = 0.0
        if self.slope is not None:
            linear = float(np.einsum("tk,tk->", self.slope, H, dtype=np.float64))
        if self.ortho:
            others = sum_of_others(smoothed(H, self.padding))
            quadratic = 0.5 * self.ortho * float(np.einsum("tk,tk->", others, H, dtype=np.float64))
        return linear, quadratic

    def _mapped(self, part: Map, grams: Map) -> dict[str, Any]:
        """The arrays that have the components in their last axis, and the Grams, mapped."""
        mapped: dict[str, Any] = {"A": grams(self.A), "E": grams(self.E)}
        for name in ("C", "slope", "C_data"):
            array = getattr(self, name)
            mapped[name] = None if array is None else part(array)
        if self.fill is not None:
            mapped["fill"] = self.fill.mapped(part)
        return mapped

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

    def moved(self, H: Array, workers: Workers) -> float:
        """The squared distance of the entries of W∗H from those that have been entered."""
        assert self.fit is not None
        return moved_power(self.fit, H, workers)

    def mapped(self, part: Map) -> Fill:
        """The same with both arrays mapped, and nothing entered."""
        return Fill(self.problem, part(self.W), part(self.C))


def w_statistics(problem: Problem, H: Array, workers: Workers) -> WStatistics:
    """Data pass 1: P = X H̃ᵀ and B = H̃H̃ᵀ, added up over blocks and segments in float64."""
    N, L, K, dtype = problem.N, problem.L, problem.K, problem.dtype
    spectra = _spectra(problem)

    def group_sums(blocks: list[tuple[Segment, int, int]]) -> tuple[Array, Array]:
        P, base = np.zeros((N, L * K), dtype=dtype), np.zeros((K, L * K))
        product = workers.buffer("product", P.shape, dtype)
        for segment, a, b in blocks:
            rows = padded_rows(H[segment.start : segment.stop], a, b, L)
            if spectra is None:
                X = _blas_ready(segment.X[a:b])
                np.matmul(X.T, windows(rows, L, 1, workers), out=product)
                P += product
            products = np.zeros(base.shape, dtype=dtype)
            lag_products(rows, products)
            base += products
        return P, base

    P, base = np.zeros((N, L * K)), np.zeros((K, L * K))
    for P_group, base_group in workers.map(group_sums, problem.groups()):
        P += P_group
        base += base_group
    P = P * problem.scale if spectra is None else spectra.products(H, workers)  # type: ignore[assignment]
    P = P.reshape(N, L, K)[:, ::-1].reshape(N, L * K)
    tails = np.stack([_last_rows(H[s.start : s.stop], L) for s in problem.segments])
    B = _gram_from_tail(base.reshape(K, L, K), tails.reshape(-1, L * K).astype(np.float64))
    return WStatistics(P.astype(dtype, copy=False), B.astype(dtype, copy=False), workers)


def h_statistics(problem: Problem, W: Array, workers: Workers) -> HStatistics:
    """Data pass 2: C = W⋆X, and the Grams A and E of W."""
    spectra = _spectra(problem)
    C = _correlation(problem, W, workers) if spectra is None else spectra.correlation(W, workers)
    if problem.boundary == "valid":
        C[~problem.allowed] = 0
    A, E = motif_grams(W)
    return HStatistics(C, A, E, problem.bounds, workers)


def _spectra(problem: Problem) -> Spectra | None:
    """The transformed data, where passes by FFT are the best way for a problem of this shape."""
    if "spectra" not in problem.kept:
        sizes = problem.N, problem.T, problem.K, problem.L, problem.dtype.itemsize
        way = best_way(*sizes)
        keep = way == "kept transforms"
        problem.kept["spectra"] = None if way == "products" else Spectra(problem, keep)
    return problem.kept["spectra"]


def _correlation(problem: Problem, W: Array, workers: Workers) -> Array:
    """C = W⋆X (T, K) by matrix products and shift-and-add."""
    N, L, K = W.shape
    dtype = problem.dtype
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K))
    C = np.zeros((problem.T, K), dtype=dtype)

    def block_sums(segment: Segment, a: int, b: int) -> Array:
        """What rows a to b of X add to rows a−L+1 to b of the segment's C."""
        Y = workers.buffer("product", (b - a, L * K), dtype)
        np.matmul(_blas_ready(segment.X[a:b]), oldest_first, out=Y)
        part = np.zeros((b - a + L - 1, K), dtype=dtype)
        shift_and_add(Y, L - 1, part)
        return part

    groups = problem.groups()
    parts = workers.map(lambda blocks: [block_sums(*block) for block in blocks], groups)
    for blocks, group_parts in zip(groups, parts, strict=True):
        for (segment, a, b), part in zip(blocks, group_parts, strict=True):
            first = max(0, a - L + 1)
            C[segment.start + first : segment.start + b] += part[first - (a - L + 1) :]
    C *= dtype.type(problem.scale)
    return C


def motif_grams(W: Array) -> tuple[Array, Array]:
    """The Grams A (K, 2L−1, K) and E (L, K, L, K) of placed motifs; W is (N, L, K)."""
    N, L, K = W.shape
    reverse = W[:, ::-1].reshape(N, L * K)  # one sample left comes last, as in time
    G = (reverse.T @ reverse).reshape(L, K, L, K)
    E = _block_diagonal_sums(G)
    A = np.empty((K, 2 * L - 1, K), dtype=W.dtype)
    ahead = E[0]  # motif k uncut, motif j starting δ = 0…L−1 later: (K, L, K)
    A[:, L - 1 :] = ahead
    A[:, L - 1 :: -1] = ahead.transpose(2, 1, 0)
    return A, E


def squared_residual(problem: Problem, W: Array, H: Array, workers: Workers) -> float:
    """‖X − X̂‖² from the residual itself, in time blocks, accumulated in float64.

    Like ‖X‖² it counts observed entries only.
    """
    N, L, K = W.shape
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K).T)

    def block_norm(segment: Segment, a: int, b: int) -> float:
        fit = workers.buffer("product", (b - a, N), problem.dtype)
        rows = padded_rows(H[segment.start : segment.stop], a, b, L)
        np.matmul(windows(rows, L, 1, workers), oldest_first, out=fit)
        np.subtract(problem.scaled_block(segment, a, b), fit, out=fit)
        if segment.observed is not None:
            np.multiply(fit, segment.observed[a:b], out=fit)
        # Row sums in the data's precision, their sum in float64: as good, and no copy.
        return float(np.einsum("tn,tn->t", fit, fit).sum(dtype=np.float64))

    norms = workers.map(lambda blocks: [block_norm(*block) for block in blocks], problem.groups())
    return sum(norm for group in norms for norm in group)


def worst_window(
    problem: Problem, W: Array, H: Array, workers: Workers
) -> tuple[int, Array] | None:
    """Where L bins are explained worst: their first row in H, and max(0, X − X̂) there (L, N).

    None if no segment has L bins, or nothing is left to explain.
    """
    N, L, K = W.shape
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K).T)

    def unexplained(segment: Segment, a: int, b: int) -> Array:
        rows = padded_rows(H[segment.start : segment.stop], a, b, L)
        fit = windows(rows, L, 1, workers) @ oldest_first
        return np.maximum(problem.scaled_block(segment, a, b) - fit, 0)

    def energies(blocks: list[tuple[Segment, int, int]]) -> list[Array]:
        parts = [unexplained(*block) for block in blocks]
        return [np.einsum("tn,tn->t", part, part, dtype=np.float64) for part in parts]

    energy = np.concatenate([e for g in workers.map(energies, problem.groups()) for e in g])
    best: tuple[float, Segment, int] | None = None
    for segment in problem.segments:
        sums = np.concatenate([[0.0], np.cumsum(energy[segment.start : segment.stop])])
        if len(sums) > L:
            in_windows = sums[L:] - sums[:-L]
            a = int(np.argmax(in_windows))
            if in_windows[a] > 0 and (best is None or in_windows[a] > best[0]):
                best = float(in_windows[a]), segment, a
    if best is None:
        return None
    _, segment, a = best
    return segment.start + a, unexplained(segment, a, a + L)


def free_squared_residual(
    problem: Problem, H: Array, statistics: HStatistics, gradient: Array
) -> float:
    """‖X − X̂‖² = ‖X‖² − ⟨C, H⟩ + ⟨∇, H⟩, without touching X; gradient (T, K) is A∗H − C.

    What the penalties added is taken out again, and so is how far missing entries have moved since
    they were entered. It cancels when the fit is good; see ``free_loss_noise``.
    """
    C = statistics.C if statistics.C_data is None else statistics.C_data
    fitted = np.einsum("tk,tk->", C, H, dtype=np.float64)
    slope = np.einsum("tk,tk->", gradient, H, dtype=np.float64)
    linear, quadratic = statistics.coupling(H)  # ⟨∇, H⟩ has the quadratic ones twice
    free = problem.squared_norm - float(fitted) + float(slope)
    free += statistics.fill_power - linear - 2 * quadratic
    if statistics.fill is not None:
        free -= statistics.fill.moved(H, statistics.workers)
    return max(0.0, free)


def free_loss_noise(dtype: np.dtype) -> float:
    """Error of the free ‖X − X̂‖² in units of ‖X‖², a little above what was measured."""
    return 1e-7 if dtype == np.float32 else 1e-14


def reconstruct(W: Array, H: Array, bounds: np.ndarray) -> Array:
    """X̂ (T, N) of motifs W (N, L, K) and activations H (T, K), segment by segment."""
    N, L, K = W.shape
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K).T)
    out = np.empty((H.shape[0], N), dtype=np.result_type(W, H))
    step = max(128, 2**18 // (L * K))
    serial = Workers(1)
    for start, _, stop in bounds:
        for a in range(0, stop - start, step):
            b = min(a + step, stop - start)
            rows = padded_rows(H[start:stop], a, b, L)
            out[start + a : start + b] = windows(rows, L, 1, serial) @ oldest_first
    return out


def _last_rows(H: Array, L: int) -> Array:
    """The last L rows of a segment, newest first, zeros where it has fewer: (L, K)."""
    out = np.zeros((L, H.shape[1]), dtype=H.dtype)
    n = min(L, H.shape[0])
    out[:n] = H[H.shape[0] - n :][::-1]
    return out


def _gram_from_tail(base: Array, tails: Array) -> Array:
    """B (L·K, L·K) from the sums that all lags share and what the last rows of H add.

    base (K, L, K): Σ_s H[s, j] H[s+d, k] over s ≤ T−L, as [j, d, k]. tails (S, L·K): the last L
    rows of every segment, newest first. All terms are nonnegative and only added, so a true zero
    stays zero (running the recursion the other way subtracts, and HALS would divide by −3e-16).
    """
    K, L, _ = base.shape
    sums = (tails.T @ tails).reshape(L, K, L, K)
    # B[ℓ, k, L−1, j] with ℓ = L−1−d is the base sum at lag d.
    sums[:, :, L - 1, :] = base[:, ::-1, :].transpose(1, 2, 0)
    return _block_diagonal_sums(sums).reshape(L * K, L * K)


def _block_diagonal_sums(G: Array) -> Array:
    """S[p, q] = G[p, q] + S[p+1, q+1] in blocks, (L, K, L, K), symmetric; reads q ≥ p of G."""
    L = G.shape[0]
    S = G.copy()
    for p in range(L - 2, -1, -1):
        S[p, :, p : L - 1, :] += S[p + 1, :, p + 1 :, :]
    for p in range(L):
        S[p + 1 :, :, p, :] = S[p, :, p + 1 :, :].transpose(1, 2, 0)
    return S


def _blas_ready(X: Array) -> Array:
    """X itself if matrix products take it without a slow path, else a copy (of a block)."""
    aligned = X.flags.aligned and all(s % X.itemsize == 0 and s >= 0 for s in X.strides)
    if aligned and X.itemsize in X.strides:
        return X
    return np.ascontiguousarray(X)
