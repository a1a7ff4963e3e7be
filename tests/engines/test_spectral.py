"""The data passes by FFT against the naive ones, and the model that chooses between the ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from cases import Case, cases, make_case
from hypothesis import given

import motifold.engines.cpu.spectral
from motifold import CNMF
from motifold.engines.cpu.spectral import Spectra, best_way
from motifold.engines.cpu.statistics import h_statistics, w_statistics
from motifold.engines.cpu.threads import Workers


def statistics_by_fft(case: Case, keep: bool, dtype=np.float64, n_jobs: int = 1):
    problem = case.problem(dtype)
    problem.kept["spectra"] = Spectra(problem, keep)
    W, H = case.W.astype(dtype), case.H.astype(dtype)
    with Workers(n_jobs) as workers:
        for _ in range(2):  # the second time with what was kept
            found = w_statistics(problem, H, workers), h_statistics(problem, W, workers)
    return found


@pytest.mark.parametrize("keep", [False, True])
@given(case=cases())
def test_passes_by_fft(keep, case: Case):
    w_stats, h_stats = statistics_by_fft(case, keep)
    L = case.W.shape[1]
    P, B = reference.w_statistics(case.X, case.H, L, case.lengths)
    np.testing.assert_allclose(w_stats.P, P.reshape(w_stats.P.shape), atol=1e-10)
    assert np.all(w_stats.B[B == 0] == 0)
    C, _ = reference.h_statistics(case.X, case.W, case.lengths)
    C = np.asarray(C).reshape(h_stats.C.shape)
    free = reference.allowed(len(case.X), L, *case.arguments)
    np.testing.assert_allclose(h_stats.C[free], C[free], atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_blocks_groups_and_threads(dtype, monkeypatch):
    monkeypatch.setattr(motifold.engines.cpu.spectral, "_GROUP_BYTES", 2000)
    case = make_case([300, 40, 3], N=4, K=3, L=5)
    first, *others = [statistics_by_fft(case, True, dtype, n_jobs) for n_jobs in (1, 2, 3)]
    exact = make_case([300, 40, 3], N=4, K=3, L=5).problem()
    exact.kept["spectra"] = None
    with Workers(1) as workers:
        P = w_statistics(exact, case.H, workers).P
        C = h_statistics(exact, case.W, workers).C
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(first[0].P, P, rtol=tolerance, atol=tolerance * P.max())
    np.testing.assert_allclose(first[1].C, C, rtol=tolerance, atol=tolerance * C.max())
    for w_stats, h_stats in others:
        np.testing.assert_array_equal(w_stats.P, first[0].P)
        np.testing.assert_array_equal(h_stats.C, first[1].C)


def test_what_the_end_cuts_off_is_exact_entry_by_entry():
    """Next to nothing is left of a motif there, and its activation makes up for it."""
    case = make_case([90, 30], N=4, K=2, L=6)
    W, H = case.W.copy(), case.H.copy()
    W[:, :3] *= 1e-25  # the first three lags
    for stop in (90, 120):
        H[stop - 3 : stop] *= 1e25
    _, h_stats = statistics_by_fft(replace(case, W=W), True)
    C, _ = reference.h_statistics(case.X, W, case.lengths)
    C = np.asarray(C).reshape(h_stats.C.shape)
    for stop in (90, 120):
        np.testing.assert_allclose(h_stats.C[stop - 3 : stop], C[stop - 3 : stop], rtol=1e-12)
    w_stats, _ = statistics_by_fft(replace(case, H=H), True)
    P, _ = reference.w_statistics(case.X, H, 6, case.lengths)
    later = slice(3 * 2, None)  # of these lags the data of the last three bins knows nothing
    found, expected = w_stats.P[:, later], P.reshape(w_stats.P.shape)[:, later]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("acceleration", ["auto", None])
def test_clean_data_does_not_blow_up(acceleration):
    """Rounding left 1e-18 of a motif at the end of a segment, and an activation of 1e17 with it."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        motifs = np.zeros((5, 24, 40))
        motifs[np.arange(40) % 5, 4 + rng.integers(16, size=40), np.arange(40)] = 1
        active = (rng.random((850, 5)) < 0.01) * rng.exponential(1, (850, 5))
        X = reference.reconstruct(motifs.transpose(2, 1, 0), active, [850])
        model = CNMF(7, 24, tol=1e-2, random_state=seed, acceleration=acceleration, n_jobs=1)
        model.fit(X, lengths=[276, 574])
        assert model.loss_ < 0.5
        assert np.all(np.diff(model.history_.objective) <= 1e-9)


def test_the_model_knows_lags_and_memory():
    assert best_way(250, 20_000, 5, 1, 4) == "products"
    assert best_way(250, 20_000, 5, 5, 4) == "products"
    assert best_way(100, 20_000, 3, 200, 4) == "kept transforms"
    assert best_way(100, 20_000_000, 3, 200, 4) == "transforms", "a copy of X would not fit"
    assert best_way(250, 20_000_000, 5, 20, 4) == "products"


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_long_motifs_through_the_estimator(solver):
    rng = np.random.default_rng(0)
    X = rng.random((900, 6))
    assert best_way(6, 900, 3, 60, 8) == "kept transforms"
    model = CNMF(3, 60, solver=solver, random_state=0, max_iter=8, tol=0).fit(X)
    objective = model.history_.objective
    assert np.all(np.diff(objective) <= 1e-9 * objective[0])
    error = np.linalg.norm(X - model.inverse_transform(model.activations_))
    np.testing.assert_allclose(model.reconstruction_err_, error, rtol=1e-8)
