"""Problems of odd sizes, and everything that a kernel may ask of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import reference

from motifold.model.motifs import motif_grams


@dataclass
class Shape:
    """A problem, and everything that kernels may ask of it."""

    K: int
    L: int
    lengths: list[int]
    dtype: type

    def __post_init__(self):
        K, L, T, N = self.K, self.L, sum(self.lengths), 5
        rng = np.random.default_rng(K + L)
        edges = np.r_[0, np.cumsum(self.lengths)]
        self.edges = edges
        self.bounds = np.c_[edges[:-1], edges[1:], edges[1:]].astype(np.int64)
        segment, t = np.repeat(np.arange(len(self.lengths)), self.lengths), np.arange(T)
        self.age = np.minimum(t - edges[segment], L - 1).astype(np.uint16)
        self.left = np.minimum(edges[segment + 1] - t, L).astype(np.uint16)
        self.cut_off = np.flatnonzero((self.age < L - 1) | (self.left < L))
        self.W = rng.random((N, L, K)).astype(self.dtype)
        self.H = (rng.random((T, K)) * (rng.random((T, K)) < 0.5)).astype(self.dtype)
        self.X = rng.random((T, N))
        self.C = reference.correlate_H(self.X, self.W, self.lengths).astype(self.dtype)
        self.A, self.E = motif_grams(self.W)
        self.l1, self.l2 = 0.1 + 0.1 * np.arange(K), 0.3 - 0.05 * np.arange(K)
        self.rng = rng

    def real(self, array) -> np.ndarray:
        return np.ascontiguousarray(array, dtype=self.dtype)


def motif_problem(shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W (N, L·K), the slope there, and B."""
    design = reference.w_design(shape.H, shape.L, shape.lengths)
    B = shape.real(design.T @ design)
    W = shape.W.reshape(5, -1).copy()
    return W, shape.real(W @ B - shape.X.T @ design), B
