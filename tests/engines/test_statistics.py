"""Every statistic against the naive oracle, over segments, boundaries, tails and memory orders."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import reference
from cases import Case, cases, make_case
from hypothesis import given

import motifold.data.recording
import motifold.engines.cpu.passes
import motifold.engines.cpu.threads
import motifold.engines.cpu.toeplitz
from motifold.data import Data
from motifold.engines.base import noise
from motifold.engines.cpu import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import reconstruct, squared_residual
from motifold.engines.cpu.statistics import (
    h_statistics,
    w_statistics,
)
from motifold.engines.cpu.threads import Workers


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut all work into many blocks, and give them to threads, so that the seams are tested."""
    monkeypatch.setattr(motifold.data.recording, "_BLOCK_BYTES", 0)
    monkeypatch.setattr(motifold.engines.cpu.toeplitz, "_BLOCK_BYTES", 0)
    monkeypatch.setattr(motifold.engines.cpu.threads, "_WORTH_A_THREAD", 1e-12)


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=1e-10, atol=1e-12)


@given(case=cases())
def test_w_statistics(case: Case):
    with Workers(1) as workers:
        statistics = w_statistics(case.problem(), case.H, workers)
    P, B = reference.w_statistics(case.X, case.H, case.W.shape[1], case.lengths)
    close(statistics.P, P.reshape(statistics.P.shape))
    close(statistics.B, B)
    assert np.all(statistics.B[B == 0] == 0), "a true zero must stay zero: HALS divides by it"
    unpenalised = reference.gradient_W(case.X, case.W, case.H, *case.arguments)
    close(statistics.gradient(case.W).reshape(case.W.shape), unpenalised)


@given(case=cases())
def test_h_statistics(case: Case):
    problem = case.problem()
    with Workers(1) as workers:
        statistics = h_statistics(problem, case.W, workers)
    C, gram = reference.h_statistics(case.X, case.W, case.lengths)
    free = reference.allowed(len(case.X), case.W.shape[1], *case.arguments)
    close(statistics.C[free], C[free])
    close(statistics.C[~free], 0)
    close(statistics.correlate(case.H), np.einsum("tksj,sj->tk", gram, case.H))
    unpenalised = reference.gradient_H(case.X, case.W, case.H, *case.arguments)
    close(statistics.gradient(case.H)[free], unpenalised[free])


@pytest.mark.parametrize("L", [1, 2, 5, 40])
def test_the_tail_is_exact(L):
    """Only the last L−1 bins hold activations: every motif is cut off."""
    case = make_case([60, 7], N=4, K=3, L=L, zeros=0.0, seed=L)
    _, gram = reference.h_statistics(case.X, case.W, case.lengths)
    H = np.zeros_like(case.H)
    H[60 - min(L, 60) : 60] = case.H[60 - min(L, 60) : 60]
    H[60:] = case.H[60:]
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(), case.W, workers)
    close(statistics.correlate(H), np.einsum("tksj,sj->tk", gram, H))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("boundary", ["zero", "valid"])
def test_seams_of_time_blocks(boundary):
    case = make_case([300, 1, 129, 128], N=3, K=2, L=7, boundary=boundary)
    test_w_statistics.hypothesis.inner_test(case)
    test_h_statistics.hypothesis.inner_test(case)
    test_losses.hypothesis.inner_test(case)


@given(case=cases())
def test_losses(case: Case):
    problem = case.problem()
    expected = np.sum(reference.residual(case.X, case.W, case.H, case.lengths) ** 2)
    with Workers(1) as workers:
        engine = CPUEngine(problem, workers)
        direct = engine.residual(case.W, case.H)
        free = engine.assess(case.W, case.H).sums.squared_residual(engine.facts)
    close(direct, expected)
    np.testing.assert_allclose(free, expected, atol=1e-12 * (1 + np.sum(case.X**2) + expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_free_loss_is_as_good_as_its_noise_says(dtype):
    """Near a good fit, where it cancels: the error stays below what the loop assumes."""
    truth = make_case([4000], N=50, K=4, L=10, zeros=0.5)
    X = reference.reconstruct(truth.W, truth.H, [4000])
    W, H = truth.W.astype(dtype), truth.H.astype(dtype)
    with Workers(1) as workers:
        engine = CPUEngine(Problem.of(Data.of([X.astype(dtype)]), 4, 10), workers)
        direct = engine.residual(W, H)
        free = engine.assess(W, H).sums.squared_residual(engine.facts)
    assert abs(free - direct) <= noise(np.dtype(dtype)) * engine.facts.squared_norm


@given(case=cases())
def test_kkt_certificate(case: Case):
    with case.engine() as engine:
        kkt_W = engine.kkt_of_motifs(case.W, case.H)
        kkt_H = engine.assess(case.W, case.H).sums.kkt
    expected = reference.kkt_residual(case.X, case.W, case.H, *case.arguments, **case.penalties)
    np.testing.assert_allclose((kkt_W, kkt_H), expected, rtol=1e-8, atol=1e-11)


@given(case=cases())
def test_reconstruction(case: Case):
    close(
        reconstruct(case.W, case.H, case.problem().bounds),
        reference.reconstruct(case.W, case.H, case.lengths),
    )


@given(case=cases())
def test_penalties(case: Case):
    with case.engine() as engine:
        fit = 0.5 * engine.residual(case.W, case.H)
        penalty = engine.assess(case.W, case.H).penalty
    expected = reference.objective(case.X, case.W, case.H, case.lengths, **case.penalties)
    close(fit + penalty, expected)


@given(case=cases(penalised=False))
def test_power_shares(case: Case):
    with case.engine() as engine:
        shares = engine.power_shares(case.W, case.H)
    if engine.facts.squared_norm > 0:
        expected = reference.power_shares(case.X, case.W, case.H, case.lengths)
        np.testing.assert_allclose(shares, expected, atol=1e-9 * (1 + expected.max()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_is_a_power_of_two_and_changes_nothing_else(dtype):
    case = make_case([30], N=3, K=2, L=4)
    extreme = dtype(2.0**100 if dtype == np.float64 else 2.0**40)
    plain = Problem.of(Data.of([case.X.astype(dtype)]), 2, 4)
    scaled = Problem.of(Data.of([case.X.astype(dtype) * extreme]), 2, 4)
    assert plain.scale == 1
    assert np.frexp(scaled.scale)[0] == 0.5
    ratio = dtype(scaled.scale * extreme)
    with Workers(1) as workers:
        a = h_statistics(plain, case.W.astype(dtype), workers)
        b = h_statistics(scaled, case.W.astype(dtype), workers)
        np.testing.assert_array_equal(b.C, a.C * ratio)
    np.testing.assert_allclose(scaled.squared_norm, plain.squared_norm * float(ratio) ** 2)


@pytest.mark.parametrize("name", ["fortran", "strided", "reversed", "read-only", "unaligned"])
def test_memory_layouts(name):
    case = make_case([200], N=6, K=2, L=5)
    X = case.X
    if name == "fortran":
        X = np.asfortranarray(X)
    elif name == "strided":
        X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif name == "reversed":
        X = X[::-1, ::-1].copy()[::-1, ::-1]
    elif name == "read-only":
        X = X.copy()
        X.flags.writeable = False
    else:
        X = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    plain = case.problem()
    problem = Problem.of(Data.of([X]), 2, 5)
    with Workers(1) as workers:
        for statistics, factor in [(w_statistics, case.H), (h_statistics, case.W)]:
            expected = statistics(plain, factor, workers)
            actual = statistics(problem, factor, workers)
            for field in ("P", "B") if statistics is w_statistics else ("C", "A", "E"):
                close(getattr(actual, field), getattr(expected, field))
        residuals = [squared_residual(p, case.W, case.H, workers) for p in (plain, problem)]
    close(*residuals)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("order", ["C", "F", "mixed", "unaligned"])
def test_many_short_segments(order, monkeypatch):
    """Blocks go across segments of any length and layout, and a motif reaches over several."""
    monkeypatch.setattr(motifold.engines.cpu.passes, "_SHORT", 16)
    monkeypatch.setattr(motifold.data.recording, "_LEAST_ROWS", 16)
    lengths = [1, 5, 40, 2, 2, 17, 33, 1, 1, 16, 90]
    case = make_case(lengths, N=4, K=2, L=19)
    arrays = np.split(case.X, np.cumsum(lengths)[:-1])
    for i, X in enumerate(arrays):
        if order == "F" or (order == "mixed" and i % 2):
            arrays[i] = np.asfortranarray(X)
        elif order == "unaligned" and i % 2:
            odd = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:]
            arrays[i] = odd.view(np.float64).reshape(X.shape)
    problem = Problem.of(Data.of(arrays), 2, 19)
    P, B = reference.w_statistics(case.X, case.H, 19, lengths)
    C, gram = reference.h_statistics(case.X, case.W, lengths)
    expected = np.sum(reference.residual(case.X, case.W, case.H, lengths) ** 2)
    with Workers(3) as workers:
        w = w_statistics(problem, case.H, workers)
        h = h_statistics(problem, case.W, workers)
        close(w.P, P.reshape(w.P.shape))
        close(w.B, B)
        close(h.C, C)
        close(h.correlate(case.H), np.einsum("tksj,sj->tk", gram, case.H))
        close(squared_residual(problem, case.W, case.H, workers), expected)


@pytest.mark.usefixtures("small_blocks")
def test_threads_change_nothing():
    case = make_case([1000, 333], N=5, K=3, L=6)
    problem = case.problem(np.float32)
    W, H = case.W.astype(np.float32), case.H.astype(np.float32)
    results = []
    for n_jobs in (1, 2, 3, 4, 7):
        with Workers(n_jobs) as workers:
            a = w_statistics(problem, H, workers)
            b = h_statistics(problem, W, workers)
            loss = squared_residual(problem, W, H, workers)
            results.append((a.P, a.B, b.C, b.correlate(H), loss))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_nothing_of_the_size_of_the_data_is_allocated(tmp_path):
    """A memory-mapped X of 51 MB: the passes take a small part of it."""
    path = tmp_path / "X.dat"
    X = np.memmap(path, dtype=np.float32, mode="w+", shape=(50_000, 256))
    X[:] = np.random.default_rng(0).random((1, 256), dtype=np.float32)
    X = np.memmap(path, dtype=np.float32, mode="r", shape=X.shape)
    problem = Problem.of(Data.of([X]), 2, 10)
    W = np.ones((256, 10, 2), np.float32)
    H = np.ones((50_000, 2), np.float32)
    tracemalloc.start()
    with Workers(2) as workers:
        w_statistics(problem, H, workers)
        h_statistics(problem, W, workers)
        squared_residual(problem, W, H, workers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * X.nbytes
