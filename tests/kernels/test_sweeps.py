"""Two kernels for the same sweep agree, whatever the length of the rows and their number."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.kernels.hals import sweep_W, sweep_W_together
from motifold.kernels.windows import lag_products


@pytest.mark.parametrize(("N", "K", "L"), [(1, 1, 1), (16, 3, 1), (37, 3, 4), (50, 4, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_swept_together_or_one_by_one(N, K, L, dtype):
    rng = np.random.default_rng(0)
    H = rng.random((200, L * K))
    H[:, 0] *= N % 2  # in some cases a column without curvature
    B = (H.T @ H).astype(dtype)
    W = rng.random((N, L * K)).astype(dtype)
    g = (W @ B - 20 * rng.random((N, L * K))).astype(dtype)
    l1, l2 = (0.1 * rng.random(K).astype(dtype) for _ in range(2))
    if not N % 2:
        l2[0] = 0
    results = []
    for sweep in (sweep_W, sweep_W_together):
        F, gradient = W.copy(), g.copy()
        moved = sweep(F, gradient, B, l1, l2)
        np.testing.assert_allclose(moved, np.sum((F - W) ** 2), rtol=1e-4)
        results.append((F, gradient))
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(g).max())


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
    lag_products(rows, out)
    np.testing.assert_allclose(out, expected)
