"""Passes over the entries of a sparse matrix: the oracle's numbers, and those of dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import Case, cases, full_cases, make_case
from hypothesis import given, settings
from scipy import sparse

import motifold.data.recording
import motifold.engines.cpu.passes
import motifold.engines.cpu.threads
from motifold import ANLS, HALS, MU
from motifold.data import Data, scan
from motifold.data.sources import SparseSource
from motifold.engines.cpu import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import squared_residual, worst_window
from motifold.engines.cpu.sparse import ratio_correlation, ratio_products
from motifold.engines.cpu.statistics import h_statistics, w_statistics
from motifold.engines.cpu.stretches import stretches
from motifold.engines.cpu.threads import Workers
from motifold.solvers.base import Inner


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut all work into many blocks, and give them to threads, so that the seams are tested."""
    monkeypatch.setattr(motifold.engines.cpu.passes, "_SHORT", 16)
    monkeypatch.setattr(motifold.data.recording, "_LEAST_ROWS", 16)
    monkeypatch.setattr(motifold.data.recording, "_BLOCK_BYTES", 0)
    monkeypatch.setattr(motifold.engines.cpu.threads, "_WORTH_A_THREAD", 1e-12)


@pytest.fixture
def no_block_of_rows(monkeypatch):
    """Whoever asks for rows of a sparse matrix, dense, is found out."""

    def refuse(self, a, b):
        raise AssertionError(f"rows {a} to {b} were made dense")

    monkeypatch.setattr(SparseSource, "rows", refuse)


def close(actual, desired, scale=1.0):
    np.testing.assert_allclose(actual, desired, rtol=1e-10, atol=1e-12 * scale)


def check_statistics(case: Case, n_jobs: int = 1) -> None:
    """P, B, C and both residuals against the oracle."""
    problem = case.problem(sparse=True)
    assert problem.sparse
    L = case.W.shape[1]
    P, B = reference.w_statistics(case.X, case.H, L, case.lengths)
    C, _ = reference.h_statistics(case.X, case.W, case.lengths)
    free = reference.allowed(len(case.X), L, *case.arguments)
    residual = reference.residual(case.X, case.W, case.H, case.lengths)
    with Workers(n_jobs) as workers:
        of_W = w_statistics(problem, case.H, workers)
        of_H = h_statistics(problem, case.W, workers)
        close(of_W.P, P.reshape(of_W.P.shape))
        close(of_W.B, B)
        close(of_H.C[free], C[free])
        close(of_H.C[~free], 0)
        close(squared_residual(problem, case.W, case.H, workers), np.sum(residual**2))
        found = worst_window(problem, case.W, case.H, workers)
        expected = worst_window(case.problem(), case.W, case.H, workers)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found[0] == expected[0]
        close(found[1], expected[1])


@given(case=cases())
def test_statistics(case: Case):
    check_statistics(case)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("boundary", ["zero", "valid"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_seams_of_blocks_and_segments(boundary, n_jobs):
    lengths = [1, 5, 40, 2, 2, 17, 33, 1, 1, 16, 190]
    check_statistics(make_case(lengths, N=11, K=2, L=19, boundary=boundary, zeros=0.7), n_jobs)


@settings(max_examples=60)
@given(case=full_cases())
def test_an_iteration_is_that_of_dense_data(case: Case):
    """Missing entries, every penalty, both boundaries, segments, fixed motifs, every solver."""
    for solver in (HALS(), ANLS(), MU()):
        steps = []
        for is_sparse in (False, True):
            with case.engine(sparse=is_sparse) as engine:
                step = engine.step(*case.handles(engine), solver, Inner(2), follow=1.0)
                shares = engine.power_shares(step.W, step.H)
                residual = engine.residual(step.W, step.H)
                steps.append((step.kkt_W, residual, step.penalty, shares, step.W, step.H))
        scale = 1 + max(np.abs(steps[0][4]).max(), np.abs(steps[0][5]).max())
        for dense, entries in zip(*steps, strict=True):
            np.testing.assert_allclose(entries, dense, rtol=1e-6, atol=1e-8 * scale**2)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype):
    case = make_case([1000, 333], N=9, K=3, L=6, zeros=0.9)
    problem = case.problem(dtype, sparse=True)
    W, H, b = case.W.astype(dtype), case.H.astype(dtype), np.full(9, 0.1, dtype)
    results = []
    for n_jobs in (1, 2, 3, 7):
        with Workers(n_jobs) as workers:
            found = [
                w_statistics(problem, H, workers).P,
                h_statistics(problem, W, workers).C,
                squared_residual(problem, W, H, workers),
                *ratio_products(problem, W, H, b, 1e-6, workers),
                ratio_correlation(problem, W, H, b, 1e-6, workers)[0],
            ]
        results.append([np.array(part) for part in found])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_is_a_power_of_two_and_changes_nothing_else(dtype):
    case = make_case([30], N=3, K=2, L=4)
    extreme = dtype(2.0**100 if dtype == np.float64 else 2.0**40)
    plain = case.problem(dtype, sparse=True)
    scaled = Case(case.X * extreme, *(case.W, case.H, [30], "zero")).problem(dtype, sparse=True)
    ratio = dtype(scaled.scale * extreme)
    W, H = case.W.astype(dtype), case.H.astype(dtype)
    with Workers(1) as workers:
        for statistics, factor, name in ((w_statistics, H, "P"), (h_statistics, W, "C")):
            one, two = (getattr(statistics(p, factor, workers), name) for p in (plain, scaled))
            np.testing.assert_array_equal(two, one * ratio)
        floor, b = 1e-6, np.zeros(3, dtype)
        one = ratio_products(plain, W, H, b, floor, workers)[0]
        two = ratio_products(scaled, W * ratio, H, b, floor * ratio, workers)[0]
        np.testing.assert_allclose(two, one, rtol=1e-6)
    np.testing.assert_allclose(scaled.squared_norm, plain.squared_norm * float(ratio) ** 2)


def ratio_by_hand(case: Case, background: np.ndarray, floor: float) -> np.ndarray:
    fit = reference.reconstruct(case.W, case.H, case.lengths) + background
    return case.X / np.maximum(fit, floor)


def check_ratio(case: Case, background: np.ndarray, floor: float, n_jobs: int = 1) -> None:
    N, L, K = case.W.shape
    R = ratio_by_hand(case, background, floor)
    P = reference.correlate_W(R, case.H, L, case.lengths)
    C = reference.correlate_H(R, case.W, case.lengths)
    seen = case.X > 0
    logs = np.sum(case.X[seen] * np.log(R[seen]))
    problem = case.problem(sparse=True)
    with Workers(n_jobs) as workers:
        args = problem, case.W, case.H, background, floor, workers
        products, totals, x_log = ratio_products(*args)
        found, _ = ratio_correlation(*args)
    scale = 1 + R.max(initial=0)
    assert products.shape == (N, L, K)
    close(products, P, scale)
    close(totals, R.sum(axis=0), scale)
    np.testing.assert_allclose(x_log, logs, rtol=1e-10, atol=1e-10 * (1 + np.abs(logs)))
    close(found, C, scale)


@given(case=cases())
def test_ratio_passes(case: Case):
    N = case.W.shape[0]
    check_ratio(case, np.zeros(N), 1e-3)
    check_ratio(case, np.linspace(0, 1, N), 1e-9)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ratio_passes_at_seams(n_jobs):
    lengths = [1, 5, 40, 2, 2, 17, 33, 1, 1, 16, 190]
    case = make_case(lengths, N=13, K=2, L=19, zeros=0.6)
    check_ratio(case, np.linspace(0, 0.1, 13), 1e-6, n_jobs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_of_nothing_is_no_reason_for_nan(dtype):
    """X̂ = 0 where X > 0 counts as the floor; an entry that is zero counts nowhere."""
    case = make_case([40], N=4, K=2, L=3, zeros=0.5)
    W, H = np.zeros_like(case.W, dtype=dtype), case.H.astype(dtype)
    X = sparse.csr_array(case.X.astype(dtype))
    X.data[::3] = 0
    problem = Problem.of(Data.of([SparseSource.of(X)]), 2, 3)
    with Workers(1) as workers:
        args = problem, W, H, np.zeros(4, dtype), 1e-10, workers
        P, totals, logs = ratio_products(*args)
        C, _ = ratio_correlation(*args)
    assert np.isfinite(P).all()
    assert np.isfinite(logs)
    np.testing.assert_array_equal(C, 0)
    np.testing.assert_allclose(totals, X.toarray().sum(axis=0, dtype=float) / 1e-10, rtol=1e-5)


def test_a_part_shares_all_entries():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.poisson(0.05, (20_000, 6)).astype(float))
    source = SparseSource.of(X)
    assert source.values is X.data or np.shares_memory(source.values, X.data)
    found = stretches(Problem.of(Data.of([source]), 2, 5))
    assert found is not None
    part, rows = found
    assert part.sparse
    for segment, (a, b) in zip(part.segments, rows, strict=True):
        assert np.shares_memory(segment.sparse.values, source.values)
        np.testing.assert_array_equal(segment.rows(0, b - a), X[a:b].toarray())
    np.testing.assert_allclose(part.squared_norm, sum((X[a:b] ** 2).sum() for a, b in rows))
    H = rng.random((part.T, 2))
    dense = Problem.of(Data.of([X[a:b].toarray() for a, b in rows]), 2, 5)
    with Workers(1) as workers:
        close(w_statistics(part, H, workers).P, w_statistics(dense, H, workers).P)


@pytest.mark.usefixtures("no_block_of_rows")
@pytest.mark.parametrize("solver", [HALS(), MU(), ANLS()], ids=repr)
def test_no_row_is_made_dense_on_the_way(solver):
    """Facts, statistics, sums, losses: from the entries alone, while nothing is hidden."""
    case = make_case([300, 100], N=6, K=2, L=5, zeros=0.9)
    with case.engine(sparse=True) as engine:
        assert isinstance(engine, CPUEngine)
        scan(engine.problem.data)
        W, H = engine.draw(0, None, None)
        step = engine.step(W, H, solver, Inner(2), follow=1.0)
        engine.residual(step.W, step.H)
        engine.power_shares(step.W, step.H)
