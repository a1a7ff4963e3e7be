"""The passes over the data on a device: products of BLAS in blocks, and what kernels do between.

W̃ is (N, L·K), lag 0 first, as is H̃: a row of it is L rows of H, the newest first. Of several
starts side by side the factors, and what is made of them, have one more axis in front: what a
recorded step needs can do that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from motifold.engines.cuda.resident import Block, Resident

# Passes go without cuBLAS (direct.cu) from so many entries of X on, for motifs of so many lags, and
# so many of them, at most, where so many of the lanes have a feature. Measured on an H200.
_DIRECT_FROM, _LONGEST, _MOST_MOTIFS, _BUSY = 2**19, 64, 64, 0.7
# All lags of all motifs at most: for P, for C (from so many bins on), and for the residual, which
# has them in registers.
_COLUMNS_OF_P, _COLUMNS_OF_C, _BINS_OF_C, _COLUMNS_OF_RESIDUAL = 256, 128, 40_000, 104
_LANES = 32


class Passes:
    """What is asked of the data, for K components."""

    def __init__(self, data: Resident, K: int) -> None:
        self.data, self.device, self.xp = data, data.device, data.device.xp
        self.K, self.L = K, data.problem.L
        self.kernels = self.device.kernels(K, self.L, data.dtype)

    def windows(self, H: Any, a: int, b: int) -> Any:
        """Rows a to b of H̃."""
        out = self.xp.empty((*H.shape[:-2], b - a, self.L * self.K), dtype=self.data.dtype)
        self.kernels.windows(H, self.data.age, a, b - a, out)
        return out

    # --- squared error --------------------------------------------------------------------------

    def _goes_direct(self, factor: Any, axes: int, columns: int) -> bool:
        """Whether a pass goes without cuBLAS: X is large, and the lags of a motif fit registers.

        ``factor`` has so many axes, if it is of one start; ``columns``: lags of all motifs at most.
        """
        data = self.data
        lanes = data.N / (_LANES * -(-data.N // _LANES))  # share of them that have a feature
        fit = 1 < self.L <= _LONGEST and self.K <= _MOST_MOTIFS and lanes >= _BUSY
        return (
            fit
            and columns >= self.L * self.K
            and factor.dtype == np.float32
            and factor.ndim == axes
            and data.T * data.N >= _DIRECT_FROM
        )

    def _by_motif(self, W: Any) -> Any:
        """W as (K, L, N): neighbouring lanes have neighbouring features."""
        return self.xp.ascontiguousarray(W.transpose(2, 1, 0))

    def lag_products(self, H: Any, *, gram: bool = True, rough: bool = False) -> tuple[Any, Any]:
        """Pass 1: P = XᵀH̃ (N, L·K), summed over blocks in float64, and B (L·K, L·K) if asked.

        ``rough``: P may be rounded.
        """
        P: Any = None
        direct = not rough and self._goes_direct(H, 2, _COLUMNS_OF_P)
        for block in self.data.blocks(whole=direct):
            if direct:
                part = self.xp.empty((self.data.N, self.L * self.K), dtype=H.dtype)
                self.kernels.direct_products(block.X, H, self.data.left, block.a, part)
            else:
                H_tilde = self.windows(H, block.a, block.b)
                part = self.device.product(block.X.T, H_tilde, rough)
            P = _added(P, part)
        weights = self.data.weights
        P = P.astype(self.data.dtype, copy=False)
        return P if weights is None else P * weights, self._gram(H) if gram else None

    def _gram(self, H: Any) -> Any:
        """B from the products that all lags share and the last rows of every segment.

        See ``engines.cpu.statistics``: all terms are nonnegative and only added.
        """
        L, K, xp = self.L, self.K, self.xp
        several = H.shape[:-2]
        base = xp.empty((*several, K * L * K))
        self.kernels.lag_gram(H, self.data.age, base)
        ends = self.data.ends
        tails = xp.empty((*several, len(ends), L * K), dtype=self.data.dtype)
        self.kernels.windows(H, self.data.age, 0, len(ends), tails, ends)
        sums = self.device.product(tails.swapaxes(-2, -1), tails).reshape(*several, L, K, L, K)
        axes = len(several)
        oldest_last = base.reshape(*several, K, L, K).transpose(
            *range(axes), axes + 1, axes + 2, axes
        )
        sums[..., L - 1, :] = oldest_last.astype(sums.dtype)
        self.kernels.diagonal_sums(sums)
        return sums.reshape(*several, L * K, L * K)

    def correlation(self, W: Any) -> Any:
        """Pass 2: C = W⋆X (T, K)."""
        weights = self.data.weights
        several = W.shape[:-3]
        V = W.reshape(*several, self.data.N, self.L * self.K)
        V = V if weights is None else V * weights
        C = self.xp.zeros((*several, self.data.T, self.K), dtype=self.data.dtype)
        if self.data.T >= _BINS_OF_C and self._goes_direct(W, 3, _COLUMNS_OF_C):
            by_motif = self._by_motif(V.reshape(W.shape))
            for block in self.data.blocks(whole=True):
                self.kernels.direct_correlation(block.X, by_motif, self.data.left, block.a, C)
            return C
        for block in self.data.blocks():
            Y = self.device.product(block.X, V)
            self.kernels.add_lags(Y, self.data.left, block.a, block.b - block.a, C)
        return C

    def fitted(self, W: Any, H: Any, a: int, b: int) -> Any:
        """Rows a to b of X̂."""
        flat = W.reshape(self.data.N, self.L * self.K)
        return self.device.product(self.windows(H, a, b), flat.T)

    def _unexplained(self, block: Block, W: Any, H: Any) -> Any:
        """X − X̂ of a block, zero where nothing is observed."""
        rest = self._weighed(block) - self.fitted(W, H, block.a, block.b)
        return rest if block.observed is None else rest * block.observed

    def _weighed(self, block: Block) -> Any:
        return block.X if self.data.weights is None else block.X * self.data.weights[:, 0]

    def squared_residual(self, W: Any, H: Any) -> Callable[[], float]:
        """‖X − X̂‖², from the residual itself: launched now, waited for when it is asked for."""
        sums = []
        direct = self._goes_direct(H, 2, _COLUMNS_OF_RESIDUAL) and self.data.weights is None
        by_motif = self._by_motif(W) if direct else None
        for block in self.data.blocks(whole=direct):
            sums.append(self.xp.empty(1))
            X, seen = self._weighed(block), block.observed
            if direct:
                rows = self.data.age, block.a
                self.kernels.direct_residual(X, seen, by_motif, H, *rows, sums[-1])
            else:
                fit = self.fitted(W, H, block.a, block.b)
                self.kernels.distance(X, fit, seen, sums[-1])
        numbers = self.device.fetched(self.xp.concatenate(sums))
        return lambda: float(numbers().sum())

    def unexplained_power(self, W: Any, H: Any) -> np.ndarray:
        """Σ max(0, X − X̂)² of every row, (T,) on the host.

        Where nothing is observed X is zero, and X̂ not below it.
        """
        power = self.xp.empty(self.data.T)
        for block in self.data.blocks():
            rest = self.xp.maximum(self._unexplained(block, W, H), 0)
            power[block.a : block.b] = (rest * rest).sum(axis=1, dtype=np.float64)
        return self.device.host(power)

    # --- missing entries ------------------------------------------------------------------------

    def hidden_products(self, W: Any, H: Any) -> Any:
        """What X̂ at the missing entries adds to P, (N, L·K)."""
        P = self.xp.zeros((self.data.N, self.L * self.K))
        for a, b, observed in self.data.observed_blocks():
            H_tilde = self.windows(H, a, b)
            P += self._hidden(W, H_tilde, observed).T @ H_tilde
        return P.astype(self.data.dtype, copy=False)

    def hidden_correlation(self, W: Any, H: Any) -> tuple[Any, float]:
        """What X̂ at the missing entries adds to C (T, K), and the sum of its squares there."""
        V = W.reshape(self.data.N, self.L * self.K)
        C = self.xp.zeros((self.data.T, self.K), dtype=H.dtype)
        kernels = self.device.kernels(self.K, self.L, H.dtype)
        sums = []
        for a, b, observed in self.data.observed_blocks():
            entries = self._hidden(W, self._windows_of(H, a, b), observed)
            kernels.add_lags(entries @ V, self.data.left, a, b - a, C)
            sums.append(self._power(entries, kernels))
        return C, float(self.device.host(self.xp.concatenate(sums)).sum())

    def hidden_power(self, W: Any, H: Any) -> float:
        """Σ X̂² over the missing entries."""
        kernels = self.device.kernels(self.K, self.L, H.dtype)
        sums = [
            self._power(self._hidden(W, self._windows_of(H, a, b), observed), kernels)
            for a, b, observed in self.data.observed_blocks()
        ]
        return float(self.device.host(self.xp.concatenate(sums)).sum())

    def _windows_of(self, H: Any, a: int, b: int) -> Any:
        """Rows a to b of H̃, in the precision of H."""
        out = self.xp.empty((b - a, self.L * self.K), dtype=H.dtype)
        self.device.kernels(self.K, self.L, H.dtype).windows(H, self.data.age, a, b - a, out)
        return out

    def _hidden(self, W: Any, H_tilde: Any, observed: Any) -> Any:
        """X̂ where nothing is observed, else zero."""
        fit = H_tilde @ W.reshape(self.data.N, self.L * self.K).T
        return fit * ~observed

    def _power(self, entries: Any, kernels: Any) -> Any:
        power = self.xp.zeros(1)
        kernels.inner(entries, entries, power)
        return power


def _added(total: Any, part: Any) -> Any:
    """The sum over blocks, in float64 where there are several."""
    return part if total is None else total.astype(np.float64, copy=False) + part
