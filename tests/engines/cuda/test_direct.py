"""The passes without cuBLAS: their CUDA C and their twins, against the oracle, in whole fits."""

from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
import reference
from cases import make_case, make_mask

from motifold.engines.cpu import Workers
from motifold.engines.cuda import Device, compiled, engine_on, passes
from motifold.engines.cuda.twin import Twin
from motifold.fit import Acceleration, Loop, Rules, SearchState, search
from motifold.solvers import HALS


@dataclass
class Rows:
    """A recording of single precision, of which ``first`` … ``first + n`` are at hand."""

    K: int
    L: int
    lengths: list[int]
    N: int
    first: int
    n: int
    density: float = 0.3

    def __post_init__(self):
        K, L, T, N = self.K, self.L, sum(self.lengths), self.N
        rng = np.random.default_rng(K + L + N)
        edges = np.r_[0, np.cumsum(self.lengths)]
        segment, t = np.repeat(np.arange(len(self.lengths)), self.lengths), np.arange(T)
        self.age = np.minimum(t - edges[segment], L - 1).astype(np.uint16)
        self.left = np.minimum(edges[segment + 1] - t, L).astype(np.uint16)
        self.X = rng.random((T, N)).astype(np.float32)
        active = rng.random((T, K)) < self.density
        self.H = (rng.random((T, K)) * active).astype(np.float32)
        self.W = rng.random((N, L, K)).astype(np.float32)
        self.V = np.ascontiguousarray(self.W.transpose(2, 1, 0))
        here = slice(self.first, self.first + self.n)
        self.here = np.ascontiguousarray(self.X[here])
        self.seen = np.ascontiguousarray(rng.random((T, N))[here] < 0.7)
        self.only = np.zeros_like(self.X)  # X where it is at hand, else zero
        self.only[here] = self.here


CASES = [
    Rows(3, 5, [70, 3, 31], 37, 0, 104),
    Rows(3, 5, [70, 3, 31], 5, 30, 40),  # a block in the middle
    Rows(2, 2, [90], 32, 0, 90, density=1.0),  # all activations: they are not looked at one by one
    Rows(2, 2, [90], 33, 5, 80, density=0.0),
    Rows(60, 3, [40], 9, 0, 40),  # several groups of motifs
    pytest.param(Rows(5, 20, [150, 90], 40, 0, 240, density=0.7), marks=pytest.mark.slow),
    pytest.param(Rows(1, 64, [300], 8, 100, 150), marks=pytest.mark.slow),
]


@pytest.fixture(params=CASES, ids=lambda r: f"K{r.K}L{r.L}N{r.N}")
def rows(request) -> Rows:
    return request.param


@pytest.fixture(params=["twin", "lanes"])
def kernels(request, rows):
    if request.param == "twin":
        return Twin(rows.K, rows.L, np.dtype(np.float32))
    return request.getfixturevalue("on_lanes")(rows.K, rows.L, np.float32)


def test_products_are_the_oracles(kernels, rows, monkeypatch):
    for units in (1584, 4):  # runs of rows, for each of which a warp has sums of its own
        monkeypatch.setattr(compiled, "_UNITS", units)
        P = np.full((rows.N, rows.L * rows.K), np.nan, np.float32)
        kernels.direct_products(rows.here, rows.H, rows.left, rows.first, P)
        expected, _ = reference.w_statistics(rows.only, rows.H, rows.L, rows.lengths)
        np.testing.assert_allclose(P.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_correlations_are_the_oracles(kernels, rows):
    C = np.full(rows.H.shape, 0.5, np.float32)  # they are added to what is there
    kernels.direct_correlation(rows.here, rows.V, rows.left, rows.first, C)
    expected = reference.correlate_H(rows.only, rows.W, rows.lengths)
    np.testing.assert_allclose(C - 0.5, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("masked", [False, True])
def test_residuals_are_the_oracles(kernels, rows, masked, monkeypatch):
    if rows.K * rows.L > passes._COLUMNS_OF_RESIDUAL:
        pytest.skip("such motifs do not fit registers")
    monkeypatch.setattr(compiled, "_UNITS", 4)
    fit = reference.reconstruct(rows.W, rows.H, rows.lengths)[rows.first : rows.first + rows.n]
    seen = rows.seen if masked else np.ones(rows.here.shape, bool)
    out = np.full(1, np.nan)
    args = rows.V, rows.H, rows.age, rows.first, out
    kernels.direct_residual(rows.here, rows.seen if masked else None, *args)
    assert out[0] == pytest.approx(((rows.here - fit)[seen] ** 2).sum(), rel=1e-5)


def guarded(array: np.ndarray) -> np.ndarray:
    """A copy that ends where memory does that nobody may read."""
    page = mmap.PAGESIZE
    size = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), page, 0) == 0
    whole = np.frombuffer(memory, np.uint8)[size - array.nbytes : size]
    copy = whole.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.skipif(sys.platform != "linux", reason="protects a page of memory")
@pytest.mark.parametrize("shape", [(100, 32), (100, 33), (128, 64), (7, 40)])
def test_nothing_is_read_behind_the_end(on_lanes, shape, monkeypatch):
    """Neither by warps that have no run; it would be a crash."""
    T, N = shape
    rows = Rows(2, 3, [T], N, 0, T)
    kernels = on_lanes(2, 3, np.float32)
    X, H, V = (guarded(array) for array in (rows.X, rows.H, rows.V))
    age, left = guarded(rows.age), guarded(rows.left)
    for units in (1584, 4):
        monkeypatch.setattr(compiled, "_UNITS", units)
        kernels.direct_products(X, H, left, 0, np.empty((N, 6), np.float32))
        kernels.direct_correlation(X, V, left, 0, np.zeros_like(rows.H))
        out = np.empty(1)
        kernels.direct_residual(X, None, V, H, age, 0, out)
        fit = reference.reconstruct(rows.W, rows.H, rows.lengths)
        assert out[0] == pytest.approx(((rows.X - fit) ** 2).sum(), rel=1e-5)


class Counted(Device):
    """It counts what goes without products."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.direct = []

    def _new_kernels(self, K, L, dtype):
        kernels = super()._new_kernels(K, L, dtype)
        for name in ("direct_products", "direct_correlation", "direct_residual"):
            plain = getattr(kernels, name)

            def counted(*args, plain=plain, name=name):
                self.direct.append(name)
                return plain(*args)

            setattr(kernels, name, counted)
        return kernels


CASE = make_case([60, 3, 45], N=30, K=3, L=4)
KINDS = {
    "plain": {},
    "valid": {"boundary": "valid"},
    "missing": {"observed": make_mask("half", CASE.X, CASE.lengths)},
    "penalties": {"penalties": {"l1_H": 0.1, "l2_W": 0.1}},
}


@pytest.mark.parametrize("memory", [None, CASE.X.nbytes // 8])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_are_those_with_products(kind, memory, monkeypatch):
    """Whole, and streamed in blocks; and what is in double precision goes the other way."""
    case = replace(CASE, **KINDS[kind])
    ends, ways = [], []
    for least in (0, 2**60):
        monkeypatch.setattr(passes, "_DIRECT_FROM", least)
        monkeypatch.setattr(passes, "_BINS_OF_C", least)
        device = Counted(memory=memory)
        rules = Rules(max_iter=30, tol=1e-9, acceleration=Acceleration())
        with Workers(1) as workers:
            engine = engine_on(device, case.problem(np.float32), workers)
            assert engine.data.streamed == (memory is not None)
            ends.append(search(Loop(engine, HALS(), rules), SearchState([3])))
        ways.append(set(device.direct))
    assert {"direct_products", "direct_correlation"} <= ways[0]
    assert not ways[1]
    assert ends[0].now.objective == pytest.approx(ends[1].now.objective, rel=1e-3)


@pytest.mark.parametrize(
    ("shape", "direct"),
    [((60, 30, 3, 4), True), ((60, 30, 3, 1), False), ((60, 9, 3, 4), False)],
    ids=["it fits", "one lag", "few features"],
)
def test_what_goes_without_products(shape, direct, monkeypatch):
    monkeypatch.setattr(passes, "_DIRECT_FROM", 0)
    T, N, K, L = shape
    case, device = make_case([T], N=N, K=K, L=L), Counted()
    with Workers(1) as workers:
        engine = engine_on(device, case.problem(np.float32), workers)
        engine.residual(engine.put_motifs(case.W), engine.put(case.H))
    assert bool(device.direct) == direct
