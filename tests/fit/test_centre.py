"""``center=True``: motifs end in the middle of their windows, and J never rises on the way."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from cases import make_case
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.fit import Acceleration, Clock, Loop, Rules
from motifold.fit.moves import centred
from motifold.solvers import HALS

K, L, N = 2, 16, 20


def plant(seed: int, T: int = 900) -> np.ndarray:
    """Motifs of 6 bins, in windows that leave room on both sides."""
    rng = np.random.default_rng(seed)
    motifs = np.zeros((K, L, N))
    for feature in range(N):
        motifs[feature % K, 5 + rng.integers(6), feature] = 1
    activations = (rng.random((T, K)) < 0.02) * rng.exponential(1, (T, K))
    X = 0.05 * rng.random((T, N))
    for lag in range(L):
        X[lag:] += activations[: T - lag] @ motifs[:, lag]
    return X


def off_centre(motifs: np.ndarray) -> np.ndarray:
    """Lags between the centre of mass of each motif and the middle of its window."""
    mass = motifs.sum(axis=2)
    return np.abs(mass @ np.arange(L) / mass.sum(axis=1) - (L - 1) / 2)


def fitted(seed: int, **settings) -> CNMF:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(K, L, random_state=seed, max_iter=100, **settings).fit(plant(seed))


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_motifs_end_in_the_middle_of_their_windows(solver):
    plain = [fitted(seed, solver=solver) for seed in range(3)]
    moved = [fitted(seed, solver=solver, center=True) for seed in range(3)]
    assert max(off_centre(model.components_).max() for model in plain) > 3
    assert max(off_centre(model.components_).max() for model in moved) < 1.5
    for before, after in zip(plain, moved, strict=True):
        assert after.loss_ < 1.03 * before.loss_
        assert np.all(np.diff(after.history_.objective) <= 1e-12 * after.history_.objective[0])


@pytest.mark.parametrize("settings", [{"boundary": "valid"}, {"acceleration": None}], ids=str)
def test_with_segments_boundaries_and_published_algorithms(settings):
    X = plant(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CNMF(K, L, random_state=0, max_iter=60, center=True, **settings)
        model.fit(X, lengths=[400, 10, 490])
    assert off_centre(model.components_).max() < 1.5
    assert np.all(np.diff(model.history_.objective) <= 1e-12 * model.history_.objective[0])
    if "boundary" in settings:
        assert not model.activations_[400 - L + 1 : 410].any()


def test_fixed_motifs_stay_where_they_are():
    given = np.zeros((K, L, N))
    given[0, :4] = np.random.default_rng(0).random((4, N))
    given[1] = 1
    model = CNMF(K, L, random_state=0, center=True, fixed_components=[0])
    model.fit(plant(0), components_init=given)
    np.testing.assert_array_equal(model.components_[0], given[0])


def test_centring_keeps_to_the_time():
    case = make_case([200], N=5, K=3, L=6)
    W = case.W.copy()
    W[:, 2:] = 0  # all motifs are early
    with case.engine() as engine:
        for seconds, moves in [(0.0, True), (60.0, False)]:
            clock = Clock(60.0, elapsed=seconds, now=lambda: 0.0)
            loop = Loop(engine, HALS(), Rules(tol=0, center=True))
            state = loop.descent.iterate(loop.start(W, case.H), clock)
            worse = replace(state.now, squared_residual=1e6 * state.now.squared_residual)
            state = replace(state, now=replace(worse, exact=True))  # any move would be taken
            assert (centred(loop.descent, state, clock) is not None) == moves


def test_a_move_that_raises_the_objective_is_not_made():
    """Motifs that fill their windows cannot be moved without a loss."""
    case = make_case([200], N=5, K=1, L=6)
    W = case.W.copy()
    W[:, :2] *= 3  # the centre of mass is early
    with case.engine() as engine:
        rules = Rules(tol=0, acceleration=Acceleration(), center=True)
        loop = Loop(engine, HALS(), rules)
        state = loop.start(W, case.H)
        for _ in range(64):
            state = loop.descent.iterate(state, Clock())
        before = state.now.objective
        after = centred(loop.descent, state, Clock())
    assert after is None or after.now.objective <= before
