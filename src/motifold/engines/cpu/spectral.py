"""The two data passes by FFT, for motifs of many lags: K·N·T multiplications instead of K·L·N·T.

The data is cut into blocks of M bins, each transformed with L−1 zeros behind it. Where memory
allows, the transforms are kept (a copy of X and a bit more); else every pass makes them again.

The rounding of a transform is that of its largest entry. Motifs that the end of a segment cuts off
may have next to nothing left and activations that make up for it, so that what belongs to the
last L−1 bins goes by matrix products, whose rounding is that of each entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import fft

from motifold.data import Block
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import padded_rows, windows
from motifold.kernels.windows import shift_and_add
from motifold.model import Array
from motifold.model.motifs import oldest_first

Way = Literal["products", "transforms", "kept transforms"]

# Nanoseconds per entry of X for both passes, measured by benchmarks/passes.py: matrix products
# (times K·L); products with kept transforms (fixed, and times K); transforming (both passes).
# Single precision on one core; double precision takes about twice as long in all of them.
_PRODUCTS, _KEPT, _KEPT_PER_MOTIF, _TRANSFORM = 0.04, 4.5, 0.15, 7.0
# Another way than matrix products has to be better by so much: its rounding is not as local.
_CLEARLY = 1.2
# Bytes that kept transforms may take, and those of one group of blocks.
_MEMORY, _GROUP_BYTES = 2**27, 2**24
# A block is about four times as long as a motif; groups, and blocks in one, for the threads' and
# for the products' sake.
_LENGTHS_OF_A_BLOCK, _GROUPS, _LEAST_BLOCKS = 4, 16, 16


def best_way(N: int, T: int, K: int, L: int, itemsize: int) -> Way:
    """How to pass over the data: what the cost model says, which knows only the shape."""
    if L == 1:
        return "products"
    costs = _costs(K, L)
    if _bytes_kept(N, T, L, itemsize) > _MEMORY:
        del costs["kept transforms"]
    return min(costs, key=lambda way: costs[way] * (1 if way == "products" else _CLEARLY))


def bytes_of_spectra(N: int, T: int, K: int, L: int, itemsize: int) -> int:
    """Bytes of transforms in memory at a time."""
    way = best_way(N, T, K, L, itemsize)
    if way == "products":
        return 0
    return _bytes_kept(N, T, L, itemsize) if way == "kept transforms" else 2 * _GROUP_BYTES


def slower(N: int, T: int, part: int, K: int, L: int, itemsize: int) -> float:
    """Seconds of a core for each bin that both passes take more over T bins than over ``part``.

    The transforms of a part may be kept where those of the whole may not.
    """
    costs = _costs(K, L)
    whole, less = (costs[best_way(N, n, K, L, itemsize)] for n in (T, part))
    return 1e-9 * (itemsize / 4) * N * (whole - less)


def _costs(K: int, L: int) -> dict[Way, float]:
    """Nanoseconds per entry of X, of every way."""
    kept = _KEPT + _KEPT_PER_MOTIF * K
    return {"products": _PRODUCTS * K * L, "transforms": kept + _TRANSFORM, "kept transforms": kept}


def _bytes_kept(N: int, T: int, L: int, itemsize: int) -> int:
    n = _transform_length(L)
    return int(N * T * itemsize * n / (n - L + 1))


def _transform_length(L: int) -> int:
    return 1 << (_LENGTHS_OF_A_BLOCK * L - 1).bit_length()


# What a transform rounds, in units of the precision and of the norms of what is multiplied.
_ROUNDED = 4


class Spectra:
    """The data of a problem in transformed blocks."""

    def __init__(self, problem: Problem, keep: bool) -> None:
        self.problem = problem
        self.n = _transform_length(problem.L)
        self.M = self.n - problem.L + 1
        blocks = [
            (segment, a, min(a + self.M, segment.stop - segment.start))
            for segment in problem.segments
            for a in range(0, segment.stop - segment.start, self.M)
        ]
        size = (self.n + 2) * problem.N * problem.dtype.itemsize
        most = max(1, _GROUP_BYTES // size)
        step = min(most, max(_LEAST_BLOCKS, -(-len(blocks) // _GROUPS)))
        self.groups = [blocks[i : i + step] for i in range(0, len(blocks), step)]
        self._kept: list[Array | None] | None = [None] * len(self.groups) if keep else None

    def products(self, H: Array, workers: Workers) -> Array:
        """Pass 1: Σ_t X[t, n] H[t−ℓ, k] as (N, L·K), the largest lag first, in float64."""
        N, L, K = self.problem.N, self.problem.L, self.problem.K
        ends = np.zeros((N, L * K))
        uncut = H.copy()
        for (tail, a, b), X in self._ends():
            rows = padded_rows(H[tail.start : tail.stop][a:b], 0, b - a, L)
            ends += X.T @ windows(rows, L, 1, workers)
            uncut[tail.start + a : tail.stop] = 0

        def group_sum(index: int) -> Array:
            blocks = self.groups[index]
            rows = np.zeros((len(blocks), self.n, K), dtype=self.problem.dtype)
            for i, (segment, a, b) in enumerate(blocks):
                rows[i, : b - a + L - 1] = padded_rows(uncut[segment.start : segment.stop], a, b, L)
            spectra = np.ascontiguousarray(fft.rfft(rows, axis=1).transpose(1, 0, 2))
            # conj(X̂)ᵀĤ = conj(X̂ᵀ conj(Ĥ)): the smaller one is conjugated
            return self._spectra(index).transpose(0, 2, 1) @ spectra.conj()

        parts = workers.map(group_sum, range(len(self.groups)))
        total = next(parts)
        for part in parts:
            total += part
        sums = fft.irfft(np.conj(total, out=total), n=self.n, axis=0)[:L]
        return ends + self._without_rounding(sums, uncut).transpose(1, 0, 2).reshape(N, L * K)

    def _without_rounding(self, P: Array, H: Array) -> Array:
        """P (L, N, K) with zeros where it is less than a transform may round (changes it).

        A motif of nothing but rounding would need activations as large as rounding is small. Data
        below zero may cancel to anything: there it stays.
        """
        if self.problem.model.signed:
            return P
        norms = np.outer(self._norms, np.linalg.norm(H, axis=0))
        P[_ROUNDED * np.finfo(self.problem.dtype).eps * norms > P] = 0
        return P

    @cached_property
    def _norms(self) -> Array:
        """(N,), of the features over all of the recording."""
        power = np.zeros(self.problem.N)
        for blocks in self.groups:
            for block in blocks:
                X = self.problem.scaled_block(*block)
                power += np.einsum("tn,tn->n", X, X, dtype=np.float64)
        return np.sqrt(power)

    def correlation(self, W: Array, workers: Workers) -> Array:
        """Pass 2: C[t, k] = Σ_ℓ Σ_n W[n, ℓ, k] X[t+ℓ, n] as (T, K)."""
        L, K = self.problem.L, self.problem.K
        motifs = fft.rfft(W.transpose(1, 0, 2), n=self.n, axis=0).conj()
        motifs = np.ascontiguousarray(motifs)
        C = np.zeros((self.problem.T, K), dtype=self.problem.dtype)

        def group_parts(index: int) -> Array:
            return fft.irfft(self._spectra(index) @ motifs, n=self.n, axis=0)

        parts = workers.map(group_parts, range(len(self.groups)))
        for blocks, group in zip(self.groups, parts, strict=True):
            for i, (segment, a, b) in enumerate(blocks):
                # Row r of a block is what it adds to bin a + r; the last ones are those before a.
                before = min(a, L - 1)
                start = segment.start + a
                C[start : segment.start + b] += group[: b - a, i]
                if before:
                    C[start - before : start] += group[-before:, i]
        W_tilde = oldest_first(W)
        for (tail, a, b), X in self._ends():
            part = np.zeros((b - a + L - 1, K), dtype=C.dtype)
            shift_and_add(X @ W_tilde, L - 1, part)
            C[tail.start + a : tail.stop] = part[L - 1 :]
        return C

    def _ends(self) -> Iterator[tuple[Block, Array]]:
        """The last L−1 bins of every segment: where they are, and the data there."""
        for segment in self.problem.segments:
            length = segment.stop - segment.start
            block = segment, max(0, length - self.problem.L + 1), length
            yield block, np.ascontiguousarray(self.problem.scaled_block(*block))

    def _spectra(self, index: int) -> Array:
        """The transforms of a group of blocks, (n/2 + 1, blocks, N)."""
        if self._kept is not None and (kept := self._kept[index]) is not None:
            return kept
        blocks, problem = self.groups[index], self.problem
        dtype = np.complex64 if problem.dtype == np.float32 else np.complex128
        out = np.empty((self.n // 2 + 1, len(blocks), problem.N), dtype=dtype)
        for i, block in enumerate(blocks):
            out[:, i] = fft.rfft(problem.scaled_block(*block), n=self.n, axis=0)
        if self._kept is not None:
            self._kept[index] = out
        return out
