"""Empty motifs come back where they help, and restarts that will not win are given up."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
from cases import make_case
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.fit import Acceleration, Loop, Rules, SearchState, StopReason, search
from motifold.solvers import HALS, find_solver


@pytest.mark.parametrize("boundary", ["zero", "valid"])
def test_the_worst_window(boundary):
    case = make_case([30, 2, 40], N=4, K=2, L=5, boundary=boundary)
    with case.engine(n_jobs=2) as engine:
        t, window = engine.worst_window(case.W, case.H)
    residual = case.X - reference.reconstruct(case.W, case.H, case.lengths)
    residual = np.maximum(residual, 0)
    starts = [*range(26), *range(32, 68)]
    best = max(starts, key=lambda s: np.sum(residual[s : s + 5] ** 2))
    assert t == best
    np.testing.assert_allclose(window, residual[best : best + 5], atol=1e-12)


def test_no_window_where_nothing_is_left_or_all_segments_are_short():
    case = make_case([30], N=4, K=2, L=5)
    exact = reference.reconstruct(case.W, case.H, case.lengths)
    short = make_case([4, 3], N=4, K=2, L=5)
    with replace(case, X=exact).engine() as engine:
        found = engine.worst_window(case.W, case.H)
        assert found is None or np.abs(found[1]).max() < 1e-12
    with short.engine() as engine:
        assert engine.worst_window(short.W, short.H) is None


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_an_empty_motif_is_revived(solver):
    data = make_sequences(600, 12, 3, 6, noise=0.02, random_state=0)
    rng = np.random.default_rng(0)
    start = {"components_init": rng.random((3, 6, 12)), "activations_init": rng.random((600, 3))}
    start["components_init"][1] = start["activations_init"][:, 1] = 0
    options = {"solver": solver, "random_state": 0, "max_iter": 300, "tol": 1e-3}
    left = CNMF(3, 6, acceleration=None, **options).fit(data.X, **start)
    revived = CNMF(3, 6, **options).fit(data.X, **start)
    assert np.linalg.norm(left.components_[1]) == 0
    assert np.linalg.norm(revived.components_[1]) > 0
    assert revived.loss_ < 0.8 * left.loss_
    assert np.all(np.diff(revived.history_.objective) <= 1e-9)


def test_what_a_penalty_emptied_stays_empty():
    X = make_sequences(300, 8, 2, 4, random_state=0).X
    model = CNMF(2, 4, l1_W=1e4, l1_H=1e4, random_state=0)
    with pytest.warns(UserWarning, match="All motifs are empty"):
        model.fit(X)
    assert np.all(model.components_ == 0)
    assert model.converged_


def test_a_start_that_will_not_win_is_given_up():
    case = make_case([200], N=8, K=3, L=5)
    with case.engine() as engine:
        rules = Rules(tol=1e-6, max_iter=500, acceleration=Acceleration())
        loop = Loop(engine, HALS(), rules)
        free = loop.run(loop.start(case.W, case.H))
        for to_beat, outdone in [(0.5 * free.objective, True), (1.1 * free.objective, False)]:
            loop = Loop(engine, HALS(), rules)
            loop.to_beat = to_beat
            state = loop.run(loop.start(case.W, case.H))
            assert state.given_up is outdone
            assert (state.stop_reason is None) is outdone
        assert free.iteration > 16


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_restarts_keep_the_best_and_end_sooner(solver):
    X = make_sequences(300, 20, 4, 8, random_state=1).X
    case = replace(make_case([300], N=20, K=4, L=8), X=X)
    seeds = list(range(6))
    rules = Rules(tol=1e-4, max_iter=300, acceleration=Acceleration())
    with case.engine() as engine:
        alone, iterations = [], 0
        for seed in seeds:
            loop = Loop(engine, find_solver(solver), rules)
            state = search(loop, SearchState([seed]))
            alone.append(state.objective)
            iterations += state.iteration
        count = 0

        def counted(state):
            nonlocal count
            count += 1
            return False

        loop = Loop(engine, find_solver(solver), rules, counted)
        together = search(loop, SearchState(seeds))
    assert not together.given_up
    assert together.objective <= min(alone) * 1.02
    assert count < iterations


@pytest.mark.parametrize("seed", [8, 130, 146, 203, 222])
def test_what_is_ahead_is_never_given_up(seed):
    """Problems that every start solves exactly: J moves by rounding, up as well as down."""
    rng = np.random.default_rng([6, seed])
    T, N = int(rng.integers(10, 60)), int(rng.integers(2, 8))
    K, L = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    X = rng.random((T, N)).astype([np.float32, np.float64][rng.integers(2)])
    tol = [0, 1e-9, 1e-3][rng.integers(3)]
    mask = (rng.random(X.shape) > 0.2) if rng.random() < 0.3 else None
    solver = ["hals", "anls", "mu"][rng.integers(3)]
    model = CNMF(K, L, solver=solver, tol=tol, n_init=6, max_iter=70, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, mask=mask)
    assert model.stop_reason_ in set(StopReason)
