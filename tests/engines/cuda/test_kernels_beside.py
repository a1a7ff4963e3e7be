"""The kernels of a step take several starts at once: each has the bits that it has alone."""

from __future__ import annotations

import numpy as np
import pytest
from shapes import Shape, motif_problem

from motifold.engines.cuda import compiled
from motifold.engines.cuda.tiles import cut
from motifold.engines.cuda.twin import Twin
from motifold.solvers import Inner

SHAPES = [Shape(3, 5, [70, 3, 31], np.float64), Shape(2, 1, [40], np.float32)]
STARTS = 3


def calls(shape: Shape):
    """Every kernel of a recorded step: what of its arguments each start has, and what all share."""
    K, L, T, N = shape.K, shape.L, len(shape.H), 5
    W, g, B = motif_problem(shape)
    real, empty = shape.real, np.full
    tiles = cut(shape.bounds, L, K, max(1, 2 * L - 2), lambda table: table)
    G = np.ascontiguousarray(shape.E)
    Y = real(shape.X @ shape.W.reshape(N, -1))
    l1, l2 = real(shape.l1), real(shape.l2)
    ends = (shape.edges[1:] - 1).astype(np.int64)
    grams = (shape.A, shape.E)
    nan = np.nan

    def windows(k, H, out):
        k.windows(H, shape.age, 2, 20, out)

    def windows_of_some(k, H, out):
        k.windows(H, shape.age, 0, len(ends), out, ends)

    def add_lags(k, Y, C):
        k.add_lags(Y, shape.left, 0, T, C)

    def gradient(k, H, C, A, E, out):
        k.gradient(H, C, A, E, shape.age, shape.left, shape.cut_off, out)

    def sums_H(k, H, g, C, A, E, out):
        k.sums_H(H, g, C, A, E, shape.left, shape.l1, shape.l2, K, False, out)

    def lag_gram(k, H, out):
        k.lag_gram(H, shape.age, out)

    def sums_W(k, W, g, B, out):
        k.sums_W(W, g, B, shape.l1, shape.l2, out)

    def sweep_W(k, W, g, B):
        k.sweep_W(W, g, B, l1, l2, Inner(4, 0.3))

    def sweep_H(k, H, C, A, E):
        k.sweep_H(H, C, A, E, l1, l2, tiles, Inner(4, 0.3))

    slope = real(np.random.default_rng(1).standard_normal((T, K)))
    rows = empty((20, L * K), nan, shape.dtype), empty((len(ends), L * K), nan, shape.dtype)
    return [
        (windows, [shape.H, rows[0]]),
        (windows_of_some, [shape.H, rows[1]]),
        (add_lags, [Y, np.zeros_like(shape.C)]),
        (gradient, [shape.H, shape.C, *grams, empty(shape.H.shape, nan, shape.dtype)]),
        (lambda k, S: k.diagonal_sums(S), [G]),
        (lambda k, E, A: k.taps_of(E, A), [shape.E, empty(shape.A.shape, nan, shape.dtype)]),
        (sums_H, [shape.H, slope, shape.C, *grams, empty(4 + 2 * K, nan)]),
        (lag_gram, [shape.H, empty(K * L * K, nan)]),
        (sums_W, [W, g, B, empty(2, nan)]),
        (lambda k, W, B: k.drop_rounding(W, B, 0.5), [W, B]),
        (sweep_W, [W, g, B]),
        (sweep_H, [shape.H, shape.C, *grams]),
    ]


@pytest.mark.parametrize("small", [2**15, 0])
@pytest.mark.parametrize("kind", ["twin", "lanes"])
@pytest.mark.parametrize("shape", SHAPES, ids=["float64", "L1"])
def test_kernels_take_several_starts(shape, kind, small, request, monkeypatch):
    """Each ends up with the bits that it has alone, also where one is done before the others."""
    monkeypatch.setattr(compiled, "_SMALL", small)
    if kind == "twin":
        kernels = Twin(shape.K, shape.L, np.dtype(shape.dtype))
    else:
        kernels = request.getfixturevalue("on_lanes")(shape.K, shape.L, shape.dtype)
    for call, arrays in calls(shape):
        alone = []
        for start in range(STARTS):
            factor = shape.dtype(1 + 0.5 * start)
            alone.append([np.ascontiguousarray(factor * array) for array in arrays])
        # Sums of all starts lie in one row.
        several = [
            np.concatenate(parts) if parts[0].ndim == 1 else np.stack(parts)
            for parts in zip(*alone, strict=True)
        ]
        call(kernels, *several)
        for start, mine in enumerate(alone):
            call(kernels, *mine)
            for one, all_of_them in zip(mine, several, strict=True):
                found = all_of_them.reshape(STARTS, *one.shape)[start]
                np.testing.assert_array_equal(found, one)
