"""The engine of a device for β-divergences: X̂, its ratios to X and their products, in blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from motifold.engines.cpu.ratios.engine import SMALL, RatioEngine
from motifold.engines.cpu.ratios.passes import Ratios, settled_divergence
from motifold.engines.cpu.ratios.reference import reference
from motifold.engines.cuda.arrays import DeviceArrays
from motifold.engines.cuda.engine import CUDAEngine
from motifold.engines.cuda.resident import Block
from motifold.model import Array
from motifold.model.certificate import kkt_ratio


class CUDARatioEngine(DeviceArrays, RatioEngine):
    """A problem whose loss needs X̂ at every entry, on a GPU (or NumPy in its place)."""

    # --- passes -----------------------------------------------------------------------------

    def _new_of_motifs(self, W: Any, H: Any) -> Ratios:
        """Pass 1: products of the ratios with H̃, (N, L, K)."""
        xp, passes, (N, L, K) = self.xp, self.passes, W.shape
        above, below = xp.zeros((N, L * K)), xp.zeros((N if self._two else 1, L * K))
        divergences = []
        for block in self.data.blocks():
            H_tilde = passes.windows(H, block.a, block.b)
            first, second, divergence = self._ratios(block, W, H_tilde)
            above += first.T @ H_tilde
            below += H_tilde.sum(axis=0) if second is None else second.T @ H_tilde
            divergences.append(divergence)
        above, below = (
            part.astype(self.problem.dtype).reshape(-1, L, K) for part in (above, below)
        )
        ratios = Ratios(above, below, self._settled(divergences))
        matches = self.model.penalties.between_matches()
        if matches is None:
            return ratios
        nearby = self._smoothed(H) @ self._here(matches.astype(H.dtype))
        slope, _ = passes.lag_products(nearby * self.data.allowed, gram=False)
        return replace(ratios, below=ratios.below + slope.reshape(W.shape))

    def _new_of_activations(self, W: Any, H: Any) -> Ratios:
        """Pass 2: products of the ratios with every placed motif, (T, K)."""
        xp, passes, V = self.xp, self.passes, W.reshape(len(W), -1)
        above = xp.zeros(H.shape, dtype=H.dtype)
        below = xp.zeros(H.shape, dtype=H.dtype) if self._two else self._placed_sums(W)
        divergences = []
        for block in self.data.blocks():
            H_tilde = passes.windows(H, block.a, block.b)
            first, second, divergence = self._ratios(block, W, H_tilde)
            rows = self.data.left, block.a, block.b - block.a
            self.kernels.add_lags(first @ V, *rows, above)
            if second is not None:
                self.kernels.add_lags(second @ V, *rows, below)
            divergences.append(divergence)
        if self.data.forbidden is not None:  # nothing to meet: nothing grows
            above = above * ~self.data.forbidden
        ratios = Ratios(above, below.astype(H.dtype), self._settled(divergences))
        slope = self._slope(W)
        return ratios if slope is None else replace(ratios, below=ratios.below + slope)

    def _ratios(self, block: Block, W: Any, H_tilde: Any) -> tuple[Any, Any, Any]:
        """Both ratios of a block, the second None where it is one, and the divergence, (1,)."""
        xp = self.xp
        fit = xp.ascontiguousarray(H_tilde @ W.reshape(len(W), -1).T)
        second = xp.empty(fit.shape, dtype=fit.dtype) if self._two else None
        X, divergence = xp.ascontiguousarray(block.X), xp.zeros(1)
        numbers = 1.0, reference(self.problem).floor, self.model.loss.beta
        self.kernels.ratios(X, fit, second, block.observed, *numbers, divergence)
        return fit, second, divergence

    @property
    def _two(self) -> bool:
        """Whether the second ratio has to be computed: it is one everywhere for β = 1."""
        return self.model.loss.beta != 1 or self.hides

    def _settled(self, divergences: list[Any]) -> float:
        total = float(self.device.host(self.xp.concatenate(divergences)).sum())
        return settled_divergence(self.problem, total)

    def _placed_sums(self, W: Any) -> Any:
        """Σ over its lags and features of every placed motif, cut off at its segment's end."""
        sums = W.sum(axis=0, dtype=np.float64).cumsum(axis=0)  # (L, K)
        return sums[self.data.left.astype(np.int64) - 1]

    def _parts_of_fit(self, W: Any, H: Any) -> Array:
        """Σ X̂ of every component, (K,)."""
        return self.device.host((H * self._placed_sums(W)).sum(axis=0))

    def _smoothed(self, F: Any) -> Any:
        """Q∗F (T, K)."""
        out = self.xp.empty(F.shape, dtype=F.dtype)
        self.kernels.smoothed(F, self.data.age, self.data.left, out)
        return out

    def _correlation(self, W: Any) -> Any:
        """C = W⋆X (T, K), zero where no motif may start."""
        C = self.passes.correlation(W)
        if self.problem.boundary == "valid":
            C[:, : self.model.n_motifs] *= self.data.allowed
        return C

    # --- squared error, to start with -------------------------------------------------------

    def _engine_of_squares(self, problem: Any) -> CUDAEngine:
        """Its data is this one's, but for the weights."""
        return CUDAEngine(problem, self.workers, self.device, self.data.weighed(problem))

    def _levelled(self, W: Any, H: Any) -> tuple[Any, Any]:
        """As they are: an iteration on the device is cheap."""
        return W, H

    def _penalty_of_W(self, W: Any) -> float:
        return self.model.penalties.value_W(self.motifs(W))

    # --- steps ------------------------------------------------------------------------------

    def _kkt(self, F: Any, above: Any, below: Any, l1: Array, l2: Array, free: Any = None) -> float:
        """By the operations of the device's arrays."""
        if free is not None:
            rows = self._here(free)
            F, above, below = F[rows], above[rows], below[rows]
        if not F.size:
            return 0.0
        axes = tuple(range(F.ndim - 1))
        F = F.astype(np.float64, copy=False)
        below = below + self._here(l1) + self._here(l2) * F
        slope = (below - above) / np.maximum(below, 1e-300)
        typical = F.mean(axis=axes)
        part = np.minimum(F, np.maximum(F, typical) * slope)
        return kkt_ratio(float(np.vdot(part, part)), float(np.vdot(F, F)))

    def _beyond(self, F: Any, new: Any, beta: float, ratios: Ratios, l1: Array) -> Any:
        """By the operations of the device's arrays."""
        kind, axes = F.dtype.type, tuple(range(F.ndim - 1))
        beyond = new + kind(beta) * (new - F)
        np.maximum(beyond, kind(0.1) * new, out=beyond)
        small = (SMALL * F.mean(axis=axes, dtype=np.float64)).astype(F.dtype)
        below = ratios.below + self._here(l1.astype(F.dtype))
        growth = ratios.above / np.maximum(below, kind(1e-30)) - 1
        return np.maximum(beyond, np.clip(growth, 0, 1) * small, out=beyond)
