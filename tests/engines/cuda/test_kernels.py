"""Every kernel: its CUDA C, run on the CPU's lanes, does what its NumPy twin does."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from shapes import Shape, motif_problem

from motifold.engines.cuda import compiled, tiles
from motifold.engines.cuda.tiles import cut
from motifold.engines.cuda.twin import Twin
from motifold.solvers import Inner

SHAPES = [
    Shape(3, 5, [70, 3, 31], np.float64),
    Shape(2, 1, [40], np.float32),
    Shape(1, 9, [4, 50], np.float32),
    Shape(3, 4, [1500], np.float32),  # more than a block's threads: its rows are shared
    pytest.param(Shape(5, 20, [150, 90], np.float64), marks=pytest.mark.slow),
    pytest.param(Shape(18, 3, [300, 40], np.float64), marks=pytest.mark.slow),
    # Taps that do not fit registers, tiles that do not fit shared memory.
    pytest.param(Shape(4, 130, [600], np.float64), marks=pytest.mark.slow),
]


@pytest.fixture(params=SHAPES, ids=lambda s: f"K{s.K}L{s.L}{s.dtype.__name__}")
def shape(request) -> Shape:
    return request.param


@pytest.fixture
def both(shape, on_lanes):
    """A function that has both make something, and compares what they made."""
    kernels = on_lanes(shape.K, shape.L, shape.dtype), Twin(shape.K, shape.L, shape.dtype)

    def compare(make):
        made = [make(kernel) for kernel in kernels]
        tolerance = 1e-9 if shape.dtype == np.float64 else 2e-4
        for ours, twins in zip(*made, strict=True):
            scale = 1 + np.abs(twins).max()
            np.testing.assert_allclose(ours, twins, rtol=tolerance, atol=tolerance * scale)
        return made[1]

    return compare


def test_windows(shape, both):
    def make(kernel):
        some, ends = shape.real(np.full((20, shape.L * shape.K), np.nan)), shape.edges[1:] - 1
        last = shape.real(np.full((len(ends), shape.L * shape.K), np.nan))
        kernel.windows(shape.H, shape.age, 5, 20, some)
        kernel.windows(shape.H, shape.age, 0, len(ends), last, ends.astype(np.int64))
        return some, last

    some, last = both(make)
    design = reference.w_design(shape.H, shape.L, shape.lengths)
    np.testing.assert_allclose(some, design[5:25], rtol=1e-6)
    np.testing.assert_allclose(last, design[shape.edges[1:] - 1], rtol=1e-6)


def test_lags_return_to_their_places(shape, both):
    """Two blocks, one after the other, of which the second adds to rows of the first."""
    Y = shape.real(shape.X @ shape.W.reshape(5, -1))
    half = len(Y) // 2

    def make(kernel):
        C = np.zeros_like(shape.C)
        kernel.add_lags(np.ascontiguousarray(Y[:half]), shape.left, 0, half, C)
        kernel.add_lags(np.ascontiguousarray(Y[half:]), shape.left, half, len(Y) - half, C)
        return (C,)

    np.testing.assert_allclose(both(make)[0], shape.C, rtol=1e-4)


@pytest.mark.parametrize("subtract", [False, True])
@pytest.mark.parametrize(("small", "long"), [(2**15, 0), (0, 0), (0, 2**18)])
def test_gradient(shape, both, subtract, small, long, monkeypatch):
    """Small problems have a warp for each entry, others rows in shared memory, one or several."""
    monkeypatch.setattr(compiled, "_SMALL", small)
    monkeypatch.setattr(compiled, "_LONG", long)

    def make(kernel):
        out = np.full_like(shape.H, np.nan)
        C = shape.C if subtract else None
        rows = shape.age, shape.left, shape.cut_off
        kernel.gradient(shape.H, C, shape.A, shape.E, *rows, out)
        return (out,)

    fit = reference.reconstruct(shape.W, shape.H, shape.lengths)
    expected = reference.correlate_H(fit - subtract * shape.X, shape.W, shape.lengths)
    scale = np.abs(shape.C).max()
    np.testing.assert_allclose(both(make)[0], expected, atol=1e-5 * scale)


def test_smoothed(shape, both):
    def make(kernel):
        out = np.full_like(shape.H, np.nan)
        kernel.smoothed(shape.H, shape.age, shape.left, out)
        return (out,)

    expected = reference.overlap(shape.H, shape.L, shape.lengths)
    np.testing.assert_allclose(both(make)[0], expected, rtol=1e-5)


def test_diagonal_sums_give_the_grams(shape, both):
    V = shape.W[:, ::-1].reshape(5, -1)
    G = (V.T @ V).reshape(shape.E.shape)

    def make(kernel):
        S = G.copy()
        kernel.diagonal_sums(S)
        return (S,)

    np.testing.assert_allclose(both(make)[0], shape.E, rtol=1e-5)


def test_extrapolate(shape, both):
    def make(kernel):
        out = np.full_like(shape.H, np.nan)
        kernel.extrapolate(shape.H, shape.C, 0.3, out)
        return (out,)

    both(make)


@pytest.mark.parametrize("valid", [False, True])
def test_sums_of_activations(shape, both, valid):
    g = shape.real(shape.rng.standard_normal(shape.H.shape))
    weights = shape.l1, shape.l2

    def make(kernel):
        out = np.full(4 + 2 * shape.K, np.nan)
        grams = shape.A, shape.E, shape.left
        kernel.sums_H(shape.H, g, shape.C, *grams, *weights, max(1, shape.K - 1), valid, out)
        return (out,)

    sums = both(make)[0]
    assert sums[0] == pytest.approx(np.vdot(shape.C, shape.H), rel=1e-5)
    assert sums[4:] == pytest.approx(np.r_[shape.H.sum(0), (shape.H**2).sum(0)], rel=1e-5)


@pytest.mark.parametrize("long", [0, 2**18])
def test_products_of_lags(shape, both, long, monkeypatch):
    monkeypatch.setattr(compiled, "_LONG", long)
    K, L = shape.K, shape.L

    def make(kernel):
        out = np.full(K * L * K, np.nan)
        kernel.lag_gram(shape.H, shape.age, out)
        return (out,)

    design = reference.w_design(shape.H, L, shape.lengths)
    expected = (design[:, -K:].T @ design).ravel()
    np.testing.assert_allclose(both(make)[0], expected, rtol=1e-4, atol=1e-4)


def test_sums_of_motifs(shape, both):
    W, g, B = motif_problem(shape)

    def make(kernel):
        out = np.full(2, np.nan)
        kernel.sums_W(W, g, B, shape.l1, shape.l2, out)
        return (out,)

    assert both(make)[0][1] == pytest.approx(np.sum(shape.W**2), rel=1e-5)


@pytest.mark.parametrize(("slope", "power"), [(2.0, 0.25), (-1.0, np.inf)])
def test_motifs_that_all_but_vanished(on_lanes, slope, power):
    """A slope beside next to no curvature overflows: an infinite step, and no warning."""
    none, B = np.zeros(2), np.diag([1e-310, 1e-310])
    for kernels in (on_lanes(2, 1, np.float64), Twin(2, 1, np.float64)):
        W, g, out = np.array([[0.0, 0.5]]), np.array([[slope, slope]]), np.empty(2)
        kernels.sums_W(W, g, B, none, none, out)
        assert out.tolist() == [power, 0.25]
        if slope > 0:
            kernels.sweep_W(W, g, B, none, none, Inner(1))
            assert not W.any()


def test_squares_beyond_the_largest_number():
    """They are infinite in the twin, too: no warning."""
    none, B, out = np.zeros(1), np.array([[1e-300]]), np.empty(2)
    W, g = np.array([[0.5]]), np.array([[-1.0]])
    Twin(1, 1, np.float64).sums_W(W, g, B, none, none, out)
    assert out.tolist() == [np.inf, 0.25]
    Twin(1, 1, np.float64).sweep_W(W, g, B, none, none, Inner(1))
    assert W.item() == pytest.approx(1e300)


def test_inner(shape, both):
    def make(kernel):
        out = np.full(1, np.nan)
        kernel.inner(shape.H, shape.C, out)
        return (out,)

    assert both(make)[0][0] == pytest.approx(np.vdot(shape.H, shape.C), rel=1e-5)


@pytest.mark.parametrize("hidden", [False, True])
def test_distance(shape, both, hidden):
    X, fit = shape.real(shape.X), shape.real(shape.X[::-1])
    observed = shape.rng.random(X.shape) < 0.7 if hidden else None

    def make(kernel):
        out = np.full(1, np.nan)
        kernel.distance(X, fit, observed, out)
        return (out,)

    expected = ((X - fit)[observed if hidden else ...] ** 2).sum()
    assert both(make)[0][0] == pytest.approx(expected, rel=1e-5)


def test_taps(shape, both):
    def make(kernel):
        A = np.full_like(shape.A, np.nan)
        kernel.taps_of(shape.E, A)
        return (A,)

    np.testing.assert_allclose(both(make)[0], shape.A, rtol=1e-6)


def test_rounding_is_dropped(shape, both):
    def make(kernel):
        W, _, B = motif_problem(shape)
        W[0] *= np.finfo(shape.dtype).eps / 4
        W[1, 0] = 0.6
        kernel.drop_rounding(W, B, np.finfo(shape.dtype).eps)
        return (W,)

    W = both(make)[0]
    assert (W[0] == 0).all()
    assert (W[1] > 0).all()


@pytest.mark.parametrize("sweeps", [1, 4])
def test_sweeps_of_motifs(shape, both, sweeps):
    l1, l2 = shape.real(shape.l1), shape.real(shape.l2)

    def make(kernel):
        W, g, B = motif_problem(shape)
        kernel.sweep_W(W, g, B, l1, l2, Inner(sweeps, 0.0))
        return W, g

    W = both(make)[0]
    if sweeps == 1:
        weights = {"l1_W": shape.l1, "l2_W": shape.l2}
        expected = reference.hals_step(shape.X, shape.W, shape.H, shape.lengths, **weights)[0]
        np.testing.assert_allclose(W, expected.reshape(W.shape), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("length", ["short", "long", "whole"])
def test_sweeps_of_activations(shape, both, length):
    L, T = shape.L, len(shape.H)
    tile = {"short": max(1, 2 * L - 2), "long": 3 * L, "whole": T}[length]
    found = cut(shape.bounds, L, shape.K, tile, lambda table: table)
    l1, l2 = shape.real(shape.l1), shape.real(shape.l2)

    def make(kernel):
        H = shape.H.copy()
        kernel.sweep_H(H, shape.C, shape.A, shape.E, l1, l2, found, Inner(3, 0.0))
        return (H,)

    H = both(make)[0]
    expected = shape.H
    weights = {"l1_H": shape.l1, "l2_H": shape.l2}
    if T > 200:
        return  # the oracle would take its time
    for _ in range(3):
        options = {"order": "tiles", "tile": tile, **weights}
        expected = reference.sweep_H(shape.X, shape.W, expected, shape.lengths, **options)
    np.testing.assert_allclose(H, expected, rtol=1e-3, atol=1e-4 * (1 + expected.max()))


def test_bins_that_are_cut_off_are_a_seam_where_there_are_many_tiles(on_lanes, monkeypatch):
    """None is left out, none that is not free is moved, and both do the same."""
    L, K, lengths = 6, 2, [90, 3, 5, 48]
    shape = Shape(K, L, lengths, np.float64)
    edges = shape.edges
    for valid in (False, True):
        active = np.maximum(edges[:-1], edges[1:] - (L - 1) * valid)
        bounds = np.c_[edges[:-1], active, edges[1:]].astype(np.int64)
        found = {}
        for many in (10**6, 1):
            monkeypatch.setattr(tiles, "_MANY", many)
            found[many] = cut(bounds, L, K, 12, lambda table: table)
        assert (found[1].table[:, 1] <= found[10**6].table[:, 1]).all()
        assert (found[1].table[:, 1] < found[10**6].table[:, 1]).sum() == 4
        kernels, weights = (on_lanes(K, L, np.float64), Twin(K, L, np.float64)), np.zeros(K)

        def swept(kernel, sweeps, found=found, weights=weights):
            H = np.full_like(shape.H, 0.25)
            args = shape.C, shape.A, shape.E, weights, weights
            kernel.sweep_H(H, *args, found[1], Inner(sweeps, 0.0))
            return H

        np.testing.assert_allclose(*(swept(kernel, 2) for kernel in kernels), atol=1e-12)
        H = swept(kernels[1], 1000)
        free = np.zeros(len(H), dtype=bool)
        for start, stop, _ in bounds:
            free[start:stop] = True
        assert (H[~free] == 0.25).all()
        fit = reference.reconstruct(shape.W, H, lengths)
        slope = reference.correlate_H(fit - shape.X, shape.W, lengths)[free]
        assert np.abs(np.minimum(H[free], slope)).max() < 1e-6  # each found its minimum


def test_sweeps_end_where_they_move_little(on_lanes):
    """Both stop by the same rule, without a look from outside."""
    shape = Shape(2, 4, [60, 30], np.float64)
    found = cut(shape.bounds, 4, 2, 12, lambda table: table)
    weights = np.zeros(2), np.zeros(2)
    for kernel in (on_lanes(2, 4, np.float64), Twin(2, 4, np.float64)):
        after = []
        for sweeps, shrink in ((50, 0.5), (50, 0.0), (1, 0.0)):
            H = shape.H.copy()
            kernel.sweep_H(H, shape.C, shape.A, shape.E, *weights, found, Inner(sweeps, shrink))
            after.append(H)
        assert not np.array_equal(after[0], after[1])
        assert not np.array_equal(after[0], after[2])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.5, 3.0])
def test_ratios(shape, both, beta, masked):
    rng = np.random.default_rng(3)
    X, fit = shape.real(rng.random((30, 4)) + 0.01), shape.real(rng.random((30, 4)))
    observed = rng.random((30, 4)) < 0.7 if masked else None

    def make(kernel):
        ratio, second, out = fit.copy(), np.full_like(fit, np.nan), np.full(1, np.nan)
        kernel.ratios(X, ratio, second, observed, 1.0, 1e-3, beta, out)
        return ratio, second, out

    ratio, second, out = both(make)
    seen = np.ones(X.shape, bool) if observed is None else observed
    u = fit.astype(float) + 1e-3
    expected = np.sum(reference.beta_divergence(X, u, beta)[seen])
    assert out[0] == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(ratio, np.where(seen, X * u ** (beta - 2), 0), rtol=1e-3)
    np.testing.assert_allclose(second, np.where(seen, u ** (beta - 1), 0), rtol=1e-3)


def test_tiles_do_not_meet():
    """Entries that are swept at the same time are at least L bins apart."""
    for L in (1, 2, 7, 200):
        for T in (50, 5_000, 300_000):
            bounds = np.array([[0, T, T]])
            found = cut(bounds, L, 3, tiles.tile_length(T, L), lambda table: table)
            begin, seam, end = found.table[:, :3].T
            assert (begin[1:] - seam[:-1] >= L - 1).all()
            assert (seam[1:] - end[:-1] >= L - 1).all()
            assert (end - begin).max() <= 2 * max(2 * L - 2, 512)
