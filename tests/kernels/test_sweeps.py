"""Kernels against the same loops written out."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.kernels.hals import sweep_columns
from motifold.kernels.passes import lag_products


@pytest.mark.parametrize(("N", "M"), [(1, 1), (16, 3), (37, 12), (50, 80)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_one_after_the_other(N, M, dtype):
    rng = np.random.default_rng(0)
    H = rng.random((200, M))
    H[:, 0] *= N % 2  # in some cases a column without curvature
    B = (H.T @ H).astype(dtype)
    W = rng.random((N, M)).astype(dtype)
    g = (W @ B - 20 * rng.random((N, M))).astype(dtype)
    l1, l2 = (0.1 * rng.random(M).astype(dtype) for _ in range(2))
    if not N % 2:
        l2[0] = 0
    expected, slope = W.astype(np.float64), g.astype(np.float64)
    for p in range(M):
        curvature = B[p, p] + l2[p]
        new = np.zeros(N)
        if curvature > 0:
            old = expected[:, p]
            new = np.maximum(0, old - (slope[:, p] + l1[p] + l2[p] * old) / curvature)
        slope += np.outer(new - expected[:, p], B[p])
        expected[:, p] = new
    lines = W.T.copy()
    moved = sweep_columns(lines, g.T.copy(), B, l1, l2)
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(moved, np.sum((expected - W) ** 2), rtol=tolerance)
    np.testing.assert_allclose(lines.T, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("S", [0, 1, 3, 4, 9])
def test_lag_products(S):
    rng = np.random.default_rng(0)
    K, L = 3, 5
    rows = rng.random((S + L - 1, K))
    out = rng.random((K, L * K))
    expected = out.copy()
    for s in range(S):
        for d in range(L):
            expected[:, d * K : (d + 1) * K] += np.outer(rows[s], rows[s + d])
    windows = np.array([rows[s : s + L].ravel() for s in range(S)]).reshape(S, L * K)
    lag_products(windows, K, out)
    np.testing.assert_allclose(out, expected)
