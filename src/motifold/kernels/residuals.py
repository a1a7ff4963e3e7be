"""Sums for the KKT certificate, in one pass and without temporary arrays."""

import numpy as np

from motifold.kernels._jit import kernel


@kernel
def _part(value, gradient, curvature):
    """min(value, gradient/curvature); where it is flat, only a positive gradient counts."""
    if curvature > 0:
        return min(value, gradient / curvature)
    return value if gradient > 0 else value * 0


@kernel
def kkt_sums_W(W, g, diagonal, l1, l2):
    """Σ min(W, ∇/diag)² and ΣW² for W (N, L·K), g = W̃B − P, diagonal (L·K,), l1, l2 (K,)."""
    N, LK = W.shape
    K = l1.shape[0]
    above, below = 0.0, 0.0
    for n in range(N):
        for p in range(LK):
            w = np.float64(W[n, p])
            weight = l2[p % K]
            part = _part(w, g[n, p] + l1[p % K] + weight * w, diagonal[p] + weight)
            above += part * part
            below += w * w
    return above, below


@kernel
def kkt_sums_H(H, g, A, E, bounds, l1, l2):
    """The same for H (T, K), with g = A∗H − C and the curvature of cut-off motifs in the tail."""
    K = H.shape[1]
    L = E.shape[0]
    above, below = 0.0, 0.0
    for s in range(bounds.shape[0]):
        start, stop_active, stop = bounds[s]
        for t in range(start, stop_active):
            left = stop - t
            for k in range(K):
                h = np.float64(H[t, k])
                curvature = A[k, L - 1, k] if left >= L else E[L - left, k, L - left, k]
                part = _part(h, g[t, k] + l1[k] + l2[k] * h, curvature + l2[k])
                above += part * part
                below += h * h
    return above, below
