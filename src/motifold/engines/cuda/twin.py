"""The NumPy twins of the kernels: the same signatures, the same order, for machines without a GPU.

They carry the tests of the engine, and say in a few lines what each kernel does. Shapes: H, C, g
(T, K), A (K, 2L−1, K), E (L, K, L, K), W (N, M) with M = L·K′. ``age`` and ``left`` (T,) are bins
from the start and to the end of the segment, at most L−1 and L. Of several starts side by side the
arrays that each has for itself have one more axis in front; what they share has none.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from motifold.engines.cuda.tiles import Tiles
from motifold.model import Array
from motifold.model.motifs import block_diagonal_sums
from motifold.solvers import Inner


def of_each(axes: int, own: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A kernel that does several starts, one after the other.

    ``axes``: of the first array of one start; ``own``: the arrays that each start has for itself.
    """

    def several(kernel: Callable[..., None]) -> Callable[..., None]:
        signature, names = inspect.signature(kernel), own.split()

        @functools.wraps(kernel)
        def called(*args: Any, **more: Any) -> None:
            given = signature.bind(*args, **more).arguments
            starts = len(given[names[0]]) if given[names[0]].ndim > axes else None
            if starts is None:
                kernel(**given)
                return
            for start in range(starts):
                of_one = {name: _of_one(given[name], start, starts) for name in names}
                kernel(**{**given, **of_one})

        return called

    return several


def _of_one(array: Array | None, start: int, starts: int) -> Array | None:
    """The part of a start; sums of all of them lie in one row."""
    if array is None:
        return None
    return array[start] if array.ndim > 1 else array.reshape(starts, -1)[start]


class Twin:
    """All kernels for K components and L lags."""

    def __init__(self, K: int, L: int, dtype: np.dtype) -> None:
        self.K, self.L, self.dtype = K, L, dtype

    # --- passes -----------------------------------------------------------------------------

    @of_each(2, "H out")
    def windows(
        self, H: Array, age: Array, first: int, n: int, out: Array, rows: Array | None = None
    ) -> None:
        """out[i, ℓ, k] = H[t−ℓ, k], zero beyond the segment; t = rows[i], or first + i."""
        t = np.arange(first, first + n) if rows is None else rows
        lags = np.arange(self.L)
        inside = lags <= age[t][:, None]
        found = H[np.where(inside, t[:, None] - lags, 0)] * inside[:, :, None]
        out.reshape(found.shape)[...] = found

    @of_each(2, "C Y")
    def add_lags(self, Y: Array, left: Array, first: int, n: int, C: Array) -> None:
        """C[t, k] += Σ_ℓ Y[t+ℓ, ℓ, k] over the rows first … first + n that Y has (changes C)."""
        Y = Y.reshape(n, self.L, self.K)
        begin = max(0, first - self.L + 1)
        t = np.arange(begin, first + n)
        sums = np.zeros((len(t), self.K), dtype=self.dtype)
        for lag in range(self.L):
            use = (t + lag >= first) & (t + lag < first + n) & (lag < left[t])
            sums[use] += Y[t[use] + lag - first, lag]
        C[begin : first + n] += sums

    @of_each(2, "H C A E out")
    def gradient(
        self,
        H: Array,
        C: Array | None,
        A: Array,
        E: Array,
        age: Array,
        left: Array,
        cut_off: Array,
        out: Array,
    ) -> None:
        """A∗H − C, or A∗H (changes out). ``cut_off``: rows whose windows leave the segment."""
        L, T = self.L, len(H)
        taps = cut_off_taps(A, E)
        t = np.arange(T)
        total = np.zeros_like(H)
        for s in range(-L + 1, L):
            near = np.flatnonzero((s >= -age.astype(int)) & (s < left))
            part = taps[L - left[near], :, s + L - 1]  # (rows, K, K)
            total[near] += np.einsum("tkj,tj->tk", part, H[t[near] + s])
        out[...] = total if C is None else total - C

    def smoothed(self, F: Array, age: Array, left: Array, out: Array) -> None:
        """Q∗F: sums over the bins less than L away, within the segment (changes out)."""
        total = np.zeros(F.shape)
        t = np.arange(len(F))
        for s in range(-self.L + 1, self.L):
            near = (s >= -age.astype(int)) & (s < left)
            total[near] += F[t[near] + s]
        out[...] = total

    @of_each(4, "S")
    def diagonal_sums(self, S: Array) -> None:
        """``motifs.block_diagonal_sums`` (changes S, (L, K, L, K))."""
        S[...] = block_diagonal_sums(S)

    @of_each(3, "A E")
    def taps_of(self, E: Array, A: Array) -> None:
        """A of E, (L, K, L, K): products of a motif with one before or after it (changes A)."""
        A[:, self.L - 1 :] = E[0]
        A[:, : self.L - 1] = E[0].transpose(2, 1, 0)[:, :0:-1]

    def extrapolate(self, now: Array, before: Array, beta: float, out: Array) -> None:
        """max(0, now + β·(now − before)) (changes out)."""
        np.maximum(now + now.dtype.type(beta) * (now - before), 0, out=out)

    # --- passes without matrices of windows -------------------------------------------------

    def direct_products(self, X: Array, H: Array, left: Array, first: int, out: Array) -> None:
        """P of these rows of X, first … first + n: Σ H[s, k]·X[s+ℓ] (changes out, (N, L·K))."""
        n = len(X)
        for lag in range(self.L):
            s = np.arange(max(0, first - lag), first + n - lag)
            s = s[lag < left[s]]
            sums = X[s + lag - first].T.astype(np.float64) @ H[s]
            out[:, lag * self.K : (lag + 1) * self.K] = sums

    def direct_correlation(self, X: Array, V: Array, left: Array, first: int, C: Array) -> None:
        """C[t, k] += Σ_ℓ ⟨X[t+ℓ], V[k, ℓ]⟩ over these rows of X (changes C); V (K, L, N)."""
        n = len(X)
        for lag in range(self.L):
            t = np.arange(max(0, first - lag), first + n - lag)
            t = t[lag < left[t]]
            C[t] += X[t + lag - first] @ V[:, lag].T

    def direct_residual(
        self,
        X: Array,
        observed: Array | None,
        V: Array,
        H: Array,
        age: Array,
        first: int,
        out: Array,
    ) -> None:
        """Σ (X − X̂)² of these rows, over what is observed (changes out, (1,)); V (K, L, N)."""
        fit = np.zeros_like(X)
        for lag in range(self.L):
            t = np.arange(first, first + len(X))
            t = t[lag <= age[t]]
            fit[t - first] += H[t - lag] @ V[:, lag]
        self.distance(X, fit, observed, out)

    # --- sums -------------------------------------------------------------------------------

    @of_each(2, "H g C A E out")
    def sums_H(
        self,
        H: Array,
        g: Array,
        C: Array,
        A: Array,
        E: Array,
        left: Array,
        l1: Array,
        l2: Array,
        n_free: int,
        valid: bool,
        out: Array,
    ) -> None:
        """⟨C, H⟩, ⟨g, H⟩, Σ min(H, ∇/diag)², ΣH², and ΣH_k and ΣH_k² (changes out, (4 + 2K,))."""
        L, K = self.L, self.K
        h, slope, place = H.astype(np.float64), g.astype(np.float64), L - left.astype(int)
        own = np.einsum("pkpk->pk", E).astype(np.float64)
        own[0] = np.einsum("kk->k", A[:, L - 1])
        free = np.broadcast_to((np.arange(K) < n_free), h.shape).copy()
        if valid:
            free[place > 0] = False
        part = np.where(free, _part(h, slope + l1 + l2 * h, own[place] + l2), 0)
        out[0], out[1] = np.sum(C * h), np.sum(slope * h)
        out[2], out[3] = _power(part), np.sum(np.where(free, h, 0) ** 2)
        out[4 : 4 + K], out[4 + K :] = h.sum(axis=0), (h * h).sum(axis=0)

    @of_each(2, "H out")
    def lag_gram(self, H: Array, age: Array, out: Array) -> None:
        """Σ H[t−L+1, k]·H[t−lag, j] over rows with L−1 before them; out (K·L·K,)."""
        t = np.flatnonzero(age == self.L - 1)
        oldest = H[t - self.L + 1].astype(np.float64)
        later = [oldest.T @ H[t - lag] for lag in range(self.L)]
        out[:] = np.stack(later, axis=1).ravel()

    @of_each(2, "W g B out")
    def sums_W(self, W: Array, g: Array, B: Array, l1: Array, l2: Array, out: Array) -> None:
        """Σ min(W, ∇/B_pp)² and ΣW² (changes out, (2,))."""
        w, l1, l2 = W.astype(np.float64), np.tile(l1, self.L), np.tile(l2, self.L)
        part = _part(w, g + l1 + l2 * w, B.diagonal() + l2)
        out[0], out[1] = _power(part), np.sum(w**2)

    def inner(self, a: Array, b: Array, out: Array) -> None:
        """Σ a·b in float64 (changes out, (1,))."""
        out[0] = np.sum(a.astype(np.float64) * b)

    def distance(self, X: Array, fit: Array, observed: Array | None, out: Array) -> None:
        """Σ (X − fit)² in float64, over what is observed (changes out, (1,))."""
        rest = (X - fit).astype(np.float64)
        out[0] = np.sum(rest**2 if observed is None else rest**2 * observed)

    @of_each(2, "W B")
    def drop_rounding(self, W: Array, B: Array, eps: float) -> None:
        """``motifs.drop_rounding`` of (N, M), powers of activations in B's diagonal (changes W)."""
        motifs = W.reshape(len(W), self.L, self.K)
        added = motifs * np.sqrt(B.diagonal()).reshape(self.L, self.K)
        kind = W.dtype.type(eps)
        least, least_added = (kind * part.max(axis=(0, 1)) for part in (motifs, added))
        motifs[(motifs <= least) & (added <= least_added)] = 0

    # --- coordinate descent -----------------------------------------------------------------

    @of_each(2, "W g B")
    def sweep_W(self, W: Array, g: Array, B: Array, l1: Array, l2: Array, inner: Inner) -> None:
        """All sweeps over rows of W (N, M), each k, each lag; g = WB − P follows (changes both)."""
        M, Kl = W.shape[1], len(l1)

        def sweep() -> float:
            moved = 0.0
            for k in range(Kl):
                for p in range(k, M, Kl):
                    d = _best(W[:, p], g[:, p] + l1[k] + l2[k] * W[:, p], B[p, p] + l2[k]) - W[:, p]
                    W[:, p] += d
                    g[...] += d[:, None] * B[p]
                    moved += float(_power(d.astype(np.float64)))
            return moved

        _repeat(sweep, inner)

    @of_each(2, "H C A E")
    def sweep_H(
        self,
        H: Array,
        C: Array,
        A: Array,
        E: Array,
        l1: Array,
        l2: Array,
        tiles: Tiles,
        inner: Inner,
    ) -> None:
        """All sweeps over H, interiors of tiles and then seams, in each k, then t (changes H)."""
        table = tiles.table
        parts = (0, 1) if tiles.has_seams else (0,)
        taps = cut_off_taps(A, E)

        def sweep() -> float:
            return sum(self._sweep_part(H, C, taps, l1, l2, table, part) for part in parts)

        _repeat(sweep, inner)

    def _sweep_part(
        self, H: Array, C: Array, taps: Array, l1: Array, l2: Array, table: Array, part: int
    ) -> float:
        """One part of a sweep, all tiles at once: none sees what another does."""
        L, K, T = self.L, self.K, len(H)
        begin, seam, end, start, stop_active, stop = table.T[:6]
        a, b = (begin, seam) if part == 0 else (seam, end)
        b = np.minimum(b, stop_active)
        use = b > a
        if not use.any():
            return 0.0
        a, b, start, stop = a[use], b[use], start[use], stop[use]
        longest = int((b - a).max())
        # What a tile sees: its rows with L−1 around them, zeros beyond its segment.
        rows = a[:, None] + np.arange(-L + 1, longest + L - 1)
        inside = (rows >= start[:, None]) & (rows < stop[:, None])
        h = H[np.clip(rows, 0, T - 1)] * inside[:, :, None]
        moved = 0.0
        for k in range(K):
            for i in range(longest):
                t = a + i
                there = t < b
                place = np.clip(L - (stop - t), 0, L - 1)
                window = h[:, i : i + 2 * L - 1]
                if place.any():
                    slope = np.einsum("nsj,nsj->n", window, taps[place, k])
                else:
                    slope = window.reshape(len(h), -1) @ taps[0, k].ravel()
                old = h[:, i + L - 1, k]
                slope = slope - C[np.minimum(t, T - 1), k] + l1[k] + l2[k] * old
                d = np.where(there, _best(old, slope, taps[place, k, L - 1, k] + l2[k]) - old, 0)
                h[:, i + L - 1, k] += d
                moved += float(_power(d.astype(np.float64)))
        mine = np.arange(longest) < (b - a)[:, None]
        H[(a[:, None] + np.arange(longest))[mine]] = h[:, L - 1 : L - 1 + longest][mine]
        return moved

    # --- ratios -----------------------------------------------------------------------------

    def ratios(
        self,
        X: Array,
        fit: Array,
        second: Array | None,
        observed: Array | None,
        scale: float,
        floor: float,
        beta: float,
        out: Array,
    ) -> None:
        """U = fit + floor; fit becomes x·u^(β−2), second u^(β−1), out[0] the divergence.

        Both are zero where nothing is observed. ``second`` is None where it would be one.
        """
        kind = fit.dtype.type
        x, u = kind(scale) * X, fit + kind(floor)
        with np.errstate(divide="ignore", invalid="ignore"):
            part, first, other = _ratios(x, u, kind(beta))
        if observed is not None:
            part, first, other = (np.where(observed, array, 0) for array in (part, first, other))
        fit[...] = first
        if second is not None:
            second[...] = other
        out[0] = np.sum(part, dtype=np.float64)


def _ratios(x: Array, u: Array, beta: Any) -> tuple[Array, Array, Array]:
    """The divergence of every entry, and both ratios."""
    ratio = x / u
    if beta == 1:
        return np.where(x > 0, x * np.log(ratio), 0) + (u - x), ratio, np.ones_like(u)
    if beta == 0:
        return (ratio - 1) - np.log(ratio), ratio / u, 1 / u
    power = u ** (beta - 1)
    own = x**beta if beta > 0 else np.where(x > 0, x**beta, 0)
    part = (own + (beta - 1) * u * power - beta * x * power) / (beta * (beta - 1))
    return part, ratio * power, power


def cut_off_taps(A: Array, E: Array) -> Array:
    """What a motif meets around it, (L, K, 2L−1, K): by its place among the last L starts."""
    L, K = E.shape[:2]
    taps = np.zeros((L, K, 2 * L - 1, K), dtype=A.dtype)
    taps[0] = A
    for place in range(1, L):
        for s in range(-L + 1, L - place):
            q = s + place  # of the other; it is cut off, too, if positive
            taps[place, :, s + L - 1] = A[:, s + L - 1] if q <= 0 else E[place, :, q]
    return taps


# Beside the curvature of a motif that has all but vanished, which may be 1e-310, a slope overflows:
# as in the kernels that is an infinite step, which ``min`` or ``max`` judges, and no warning.


def _part(value: Array, slope: Array, curvature: Array) -> Array:
    """min(value, slope/curvature); where it is flat, only a positive slope counts."""
    curved = curvature > 0
    with np.errstate(over="ignore"):
        ratio = slope / np.where(curved, curvature, 1)
    return np.where(curved, np.minimum(value, ratio), np.where(slope > 0, value, 0))


def _power(part: Array) -> Any:
    """Σ part², infinite where a square is."""
    with np.errstate(over="ignore"):
        return np.sum(part**2)


def _best(old: Array, slope: Array, curvature: Array) -> Array:
    """The best value of an entry that is not negative; without curvature it is zero."""
    curved = curvature > 0
    with np.errstate(over="ignore"):
        new = old - slope / np.where(curved, curvature, 1)
        return np.where(curved, np.maximum(new, 0), 0).astype(old.dtype, copy=False)


def _repeat(sweep: Any, inner: Inner) -> None:
    """As often as ``inner`` says; a GPU does not look at the clock meanwhile, nor does this."""
    first = 0.0
    for number in range(inner.max_sweeps):
        moved = sweep()
        first = moved if number == 0 else first
        if moved <= inner.shrink**2 * first:
            return
