"""The passes over the data on a device: products of BLAS in blocks, and what kernels do between.

W̃ is (N, L·K), lag 0 first, as is H̃: a row of it is L rows of H, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from motifold.engines.cuda.resident import Block, Resident


class Passes:
    """What is asked of the data, for K components."""

    def __init__(self, data: Resident, K: int) -> None:
        self.data, self.device, self.xp = data, data.device, data.device.xp
        self.K, self.L = K, data.problem.L
        self.kernels = self.device.kernels(K, self.L, data.dtype)

    def windows(self, H: Any, a: int, b: int) -> Any:
        """Rows a to b of H̃."""
        out = self.xp.empty((b - a, self.L * self.K), dtype=self.data.dtype)
        self.kernels.windows(H, self.data.age, a, b - a, out)
        return out

    # --- squared error --------------------------------------------------------------------------

    def lag_products(self, H: Any, *, gram: bool = True, rough: bool = False) -> tuple[Any, Any]:
        """Pass 1: P = XᵀH̃ (N, L·K), summed over blocks in float64, and B (L·K, L·K) if asked.

        ``rough``: P may be rounded.
        """
        P: Any = None
        for block in self.data.blocks():
            H_tilde = self.windows(H, block.a, block.b)
            P = _added(P, self.device.product(block.X.T, H_tilde, rough))
        weights = self.data.weights
        P = P.astype(self.data.dtype, copy=False)
        return P if weights is None else P * weights, self._gram(H) if gram else None

    def _gram(self, H: Any) -> Any:
        """B from the products that all lags share and the last rows of every segment.

        See ``engines.cpu.statistics``: all terms are nonnegative and only added.
        """
        L, K, xp = self.L, self.K, self.xp
        base = xp.empty(K * L * K)
        self.kernels.lag_gram(H, self.data.age, base)
        ends = self.data.ends
        tails = xp.empty((len(ends), L * K), dtype=self.data.dtype)
        self.kernels.windows(H, self.data.age, 0, len(ends), tails, ends)
        sums = self.device.product(tails.T, tails).reshape(L, K, L, K)
        sums[:, :, L - 1, :] = base.reshape(K, L, K).transpose(1, 2, 0).astype(sums.dtype)
        self.kernels.diagonal_sums(sums)
        return sums.reshape(L * K, L * K)

    def correlation(self, W: Any) -> Any:
        """Pass 2: C = W⋆X (T, K)."""
        weights = self.data.weights
        V = W.reshape(self.data.N, self.L * self.K)
        V = V if weights is None else V * weights
        C = self.xp.zeros((self.data.T, self.K), dtype=self.data.dtype)
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
        for block in self.data.blocks():
            sums.append(self.xp.empty(1))
            fit = self.fitted(W, H, block.a, block.b)
            self.kernels.distance(self._weighed(block), fit, block.observed, sums[-1])
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
