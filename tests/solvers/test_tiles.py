"""The order of tiles: as the naive one, for any cut of time and any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import Case, cases, make_case
from hypothesis import given, settings
from hypothesis import strategies as st

import motifold.engines.cpu.threads
from motifold import CNMF, HALS
from motifold.datasets import make_sequences
from motifold.engines.base import noise
from motifold.engines.cpu.statistics import h_statistics
from motifold.engines.cpu.threads import Workers
from motifold.solvers import tiles
from motifold.solvers.base import Inner


@pytest.fixture(autouse=True)
def short_tiles(monkeypatch):
    """Tiles as short as they may be, and every thread is called for the least work."""
    monkeypatch.setattr(tiles, "tile_length", lambda T, L, K: shortest(L))
    monkeypatch.setattr(motifold.engines.cpu.threads, "_WORTH_A_THREAD", 1e-12)


def shortest(L: int) -> int:
    return max(1, 3 * L - 3)


def swept(case: Case, sweeps: int = 1, dtype: type = np.float64, n_jobs: int = 1):
    """H after some sweeps of ours, and the gradient that is left behind."""
    problem, H = case.problem(dtype), case.H.astype(dtype)
    with Workers(n_jobs) as workers:
        statistics = h_statistics(problem, case.W.astype(dtype), workers)
        inner = Inner(max_sweeps=sweeps, shrink=0.0)
        gradient = HALS("tiles").update_H(H, statistics, problem.penalties, inner)
    return H, gradient, statistics


def swept_naively(case: Case, sweeps: int = 1) -> np.ndarray:
    H = case.H
    for _ in range(sweeps):
        options = {"order": "tiles", "tile": shortest(case.W.shape[1]), **case.penalties}
        H = reference.sweep_H(case.X, case.W, H, *case.arguments, **options)
    return H


lengths = st.lists(st.integers(1, 70), min_size=1, max_size=3)


@settings(max_examples=150)
@given(case=cases(max_length=70), sweeps=st.integers(1, 3))
def test_sweeps_are_the_naive_ones(case: Case, sweeps):
    H, gradient, statistics = swept(case, sweeps)
    expected = swept_naively(case, sweeps)
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(H, expected, rtol=1e-8, atol=1e-9 * scale)
    if gradient is not None:
        fresh = statistics.gradient(H)
        scale = 1 + np.abs(fresh).max() + np.abs(statistics.C).max()
        np.testing.assert_allclose(gradient, fresh, atol=1e-9 * scale)


@settings(max_examples=50)
@given(case=cases(max_length=70), n_jobs=st.sampled_from([2, 3, 4, 7]))
def test_threads_change_no_bit(case: Case, n_jobs):
    alone = swept(case, 4, np.float32)
    together = swept(case, 4, np.float32, n_jobs)
    np.testing.assert_array_equal(together[0], alone[0])
    if alone[1] is not None:
        np.testing.assert_array_equal(together[1], alone[1])


@pytest.mark.parametrize("n_jobs", [2, 3, 4, 7])
def test_threads_change_no_bit_of_many_tiles(n_jobs):
    case = make_case([3000, 1, 40, 1500], N=3, K=3, L=9, zeros=0.5)
    alone = swept(case, 4, np.float32)
    for _ in range(5):
        together = swept(case, 4, np.float32, n_jobs)
        np.testing.assert_array_equal(together[0], alone[0])
        np.testing.assert_array_equal(together[1], alone[1])


@pytest.mark.parametrize("L", [2, 5, 30])
def test_single_precision_agrees(L):
    case = make_case([400, 90], N=6, K=3, L=L, penalties={"l1_H": 0.1, "l2_H": 0.2})
    single, double = swept(case, 4, np.float32)[0], swept(case, 4)[0]
    np.testing.assert_allclose(single, double, atol=1e-4 * np.abs(double).max())


@settings(max_examples=60)
@given(case=cases(max_length=70), dtype=st.sampled_from([np.float32, np.float64]))
def test_the_objective_never_rises(case: Case, dtype):
    problem, W, H = case.problem(dtype), case.W.astype(dtype), case.H.astype(dtype)
    last = case.objective(W, H)
    slack = 50 * np.finfo(dtype).eps * (1 + np.sum(case.X**2) + last)
    with Workers(1) as workers:
        statistics = h_statistics(problem, W, workers)
        for _ in range(3):
            HALS("tiles").update_H(H, statistics, problem.penalties, Inner())
            now = case.objective(W, H)
            assert now <= last + slack
            assert H.min() >= 0
            last = now


@given(lengths=lengths, L=st.integers(1, 12))
def test_the_cut_is_the_naive_one(lengths, L):
    stops = np.cumsum(lengths)
    bounds = np.column_stack([stops - lengths, stops, stops])
    cut = tiles.cut(bounds, L, 3)
    expected = reference.tiles(stops[-1], L, shortest(L), lengths)
    assert [tuple(row) for row in cut.table[:, :3]] == expected
    assert cut.items[0] == 0
    assert cut.items[-1] == len(expected)
    assert np.all(np.diff(cut.items) > 0)


@pytest.mark.parametrize("shrink", [0.0, 0.1, 0.9])
def test_sweeps_end_when_they_move_little(shrink):
    """As ``Inner.repeat`` says, with one sweep at a time."""
    case = make_case([300], N=6, K=2, L=5)
    problem = case.problem()
    by_one, at_once = case.H.copy(), case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(problem, case.W, workers)

        def one_sweep() -> float:
            before = by_one.copy()
            HALS("tiles").update_H(by_one, statistics, problem.penalties, Inner())
            return float(np.sum((by_one - before) ** 2))

        Inner(20, shrink).repeat(one_sweep)
        HALS("tiles").update_H(at_once, statistics, problem.penalties, Inner(20, shrink))
    np.testing.assert_allclose(at_once, by_one, rtol=1e-8, atol=1e-12)


def test_a_motif_without_curvature_is_left_out():
    """Also where it is coupled to others, which have to be told that it is gone."""
    case = make_case([80], N=4, K=3, L=4, zeros=0.0)
    W = case.W.copy()
    W[:, :, 1] = 0
    problem = case.problem()
    H = case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(problem, W, workers)
        different = 0.5 * (1 - np.eye(3))[:, None]
        statistics.A[...] += different
        statistics.E[...] += different
        gradient = HALS("tiles").update_H(H, statistics, problem.penalties, Inner())
        np.testing.assert_allclose(gradient, statistics.gradient(H), atol=1e-10)
    assert not H[:, 1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_does_not_depend_on_the_number_of_threads(dtype):
    X = make_sequences(3000, 12, 3, 7, random_state=0).X.astype(dtype)
    settings = {"solver": HALS("tiles"), "random_state": 0, "max_iter": 5, "tol": 0}
    fits = [
        CNMF(3, 7, n_jobs=n_jobs, **settings).fit(X, lengths=[2000, 900, 100])
        for n_jobs in (1, 2, 4)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.components_, fits[0].components_)
        np.testing.assert_array_equal(fit.activations_, fits[0].activations_)
        np.testing.assert_array_equal(fit.history_.loss, fits[0].history_.loss)


def test_the_gradient_left_behind_serves_loss_and_certificate():
    """In single precision, after four sweeps: as good as one computed anew."""
    case = make_case([3000, 400], N=30, K=3, L=12, zeros=0.6)
    with case.engine(np.float32, n_jobs=2) as engine:
        W, H = case.handles(engine)
        problem = engine.activation_problem(W)
        H = engine.sweep(H, problem, HALS("tiles"), Inner(4))
        kept, anew = (engine.assess(W, same).sums for same in (H, H.copy()))
        losses = [sums.squared_residual(engine.facts) for sums in (kept, anew)]
    assert abs(losses[0] - losses[1]) < noise(np.dtype(np.float32)) * engine.facts.squared_norm
    np.testing.assert_allclose(kept.kkt, anew.kkt, rtol=1e-4)


def test_acceleration_sweeps_by_tiles_and_the_published_order_stays():
    X = make_sequences(2500, 10, 2, 6, random_state=0).X
    start = {"random_state": 0, "max_iter": 4, "tol": 0}
    fits = {
        (order, acceleration): CNMF(
            2, 6, solver=HALS(order), acceleration=acceleration, **start
        ).fit(X)
        for order in ("entries", "tiles")
        for acceleration in ("auto", None)
    }
    same = fits["entries", "auto"], fits["tiles", "auto"]
    np.testing.assert_array_equal(same[0].activations_, same[1].activations_)
    other = fits["entries", None], fits["tiles", None]
    assert not np.array_equal(other[0].activations_, other[1].activations_)
