"""Split activations are put together, cut-off motifs moved back; failures leave no trace."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
from cases import make_case
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.fit import Acceleration, Clock, Loop, Rules
from motifold.fit.reshape import Box, cut_off, reshaped, split
from motifold.fit.state import LoopState
from motifold.solvers import HALS, MU

N, K, L, T = 16, 2, 12, 400


def smooth(first: float = 0.0, last: float = L - 1.0, seed: int = 0) -> np.ndarray:
    """Motifs (N, L, K): each feature a bump at its own lag between the two, in one motif."""
    rng = np.random.default_rng(seed)
    W = np.zeros((N, L, K))
    for n, centre in enumerate(rng.uniform(first, last, N)):
        W[n, :, n % K] = np.exp(-0.5 * ((np.arange(L) - centre) / 1.5) ** 2)
    return W


def activations(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    return rng.exponential(1.0, (T, K)) * (rng.random((T, K)) < 0.3)


def problem(W: np.ndarray, H: np.ndarray, **changes):
    case = make_case([T], N=N, K=K, L=L, **changes)
    X = reference.reconstruct(W, H, [T])
    noise = np.random.default_rng(5).standard_normal(X.shape)
    return replace(case, X=np.maximum(X + 0.02 * noise, 0))


def sharpest(W: np.ndarray) -> np.ndarray:
    """Motifs of which the mean of two neighbouring copies is W, as far as nonnegative ones can."""
    narrow = np.zeros_like(W)
    for lag in range(L):
        before = narrow[:, lag - 1] if lag else 0
        narrow[:, lag] = np.maximum(2 * W[:, lag] - before, 0)
    return narrow


def loop_of(engine, solver=None, **rules) -> Loop:
    rules = {"tol": 1e-6, "acceleration": Acceleration(), **rules}
    return Loop(engine, solver or HALS(), Rules(**rules))


def state_at(loop: Loop, W, H, iteration: int) -> LoopState:
    return replace(loop.start(W, H), iteration=iteration)


def test_a_box_is_a_mean_of_moved_copies():
    motif = np.arange(1.0, 6.0)[None]
    np.testing.assert_allclose(Box(1, 2).of(motif), [[0, 0, 1, 2, 3]])
    np.testing.assert_allclose(Box(2, -1).of(motif), [[1.5, 2.5, 3.5, 4.5, 2.5]])
    np.testing.assert_allclose(Box(3, -1).of(motif), [[1, 2, 3, 4, 3]])
    assert [Box(1, 3).middle, Box(3, -1).middle, Box(3, 0).middle, Box(5, -4).middle] == [
        3,
        0,
        1,
        -2,
    ]
    assert Box(2, 0).of(motif.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("lengths", [[T], [150, 3, T - 153]], ids=str)
def test_neighbours_are_correlations_within_segments(lengths):
    case = make_case(lengths, N=N, K=K, L=L)
    with case.engine() as engine:
        found = engine.neighbours(case.W, case.H)
    mean = case.H.mean(axis=0)
    ends = np.cumsum(lengths)
    pairs = [np.arange(b - n, b - 1) for n, b in zip(lengths, ends, strict=True)]
    at = np.concatenate(pairs)
    expected = (case.H[at] * case.H[at + 1]).sum(axis=0) / T - mean**2
    np.testing.assert_allclose(found, expected / case.H.var(axis=0), atol=1e-10)


def test_activations_that_never_change_are_no_neighbours():
    case = make_case([T], N=N, K=K, L=L)
    constant = np.ones((T, K))
    constant[:, 1] = 0
    with case.engine() as engine:
        assert not engine.neighbours(case.W, constant)[1]


def test_what_is_split_and_over_how_many_bins():
    W = smooth(3, 8)
    assert split(W, np.array([0.0, 0.2]), np.arange(K)) == {}
    assert split(W, np.array([0.5, 0.66]), np.array([1])) == {1: Box(3, -1)}
    early = W.copy()
    early[:, :6] += 1  # there is no room before it
    assert split(early, np.array([0.5, 0.0]), np.arange(K)) == {0: Box(2, 0)}
    late = early[:, ::-1]
    assert split(late, np.array([0.5, 0.0]), np.arange(K)) == {0: Box(2, -1)}
    assert split(W, np.array([1.0, 0.0]), np.arange(K))[0].taps == 6  # half of its lags


def test_what_is_cut_off():
    whole = smooth(3, 8)
    assert cut_off(whole, np.arange(K)) == {}
    late = np.zeros_like(whole)
    late[:, 5:] = whole[:, : L - 5]
    found = cut_off(late, np.arange(K))
    assert set(found) == {0, 1}
    assert all(box.taps == 1 and box.first < -1 for box in found.values())
    assert set(cut_off(late, np.array([1]))) == {1}
    inside = np.zeros_like(whole)
    inside[:, 1:4] = 1  # off the middle, but nothing is cut off
    assert cut_off(inside, np.arange(K)) == {}


def test_split_activations_are_put_together():
    true, H = smooth(), activations()
    W, parts = sharpest(true), 0.5 * H
    parts[1:] += 0.5 * H[:-1]
    with problem(true, H).engine() as engine:
        loop, clock = loop_of(engine), Clock()
        state = state_at(loop, W, parts, 32)
        assert engine.neighbours(state.now.W, state.now.H).max() > 0.25
        new = reshaped(loop.descent, state, clock)
        assert new is not None
        assert new.iteration == 33
        for _ in range(30):
            state, new = (loop.descent.iterate(s, clock) for s in (state, new))
        assert engine.neighbours(new.now.W, new.now.H).max() < 0.25
        assert new.objective < 0.8 * state.objective


def test_a_motif_beyond_its_window_is_moved_back():
    true, H = smooth(2, 9), activations()
    W, moved = np.zeros_like(true), np.zeros_like(H)
    W[:, 5:], moved[:-5] = true[:, : L - 5], H[5:]
    with problem(true, H).engine() as engine:
        loop, clock = loop_of(engine), Clock()
        state = state_at(loop, W, moved, 8)
        new = reshaped(loop.descent, state, clock)
        assert new is not None
        assert new.iteration == 9
        assert new.objective < state.objective
        assert not cut_off(engine.motifs(new.now.W), np.arange(K))


def test_what_does_not_help_leaves_no_trace_and_is_not_tried_again():
    true, H = smooth(3, 8), activations()
    smoothed = H.copy()
    smoothed[1:] += H[:-1]  # activations that are alike in truth
    case = problem(true, smoothed)
    with case.engine() as engine:
        loop, clock = loop_of(engine), Clock()
        state = state_at(loop, true, smoothed, 0)
        for _ in range(32):
            state = loop.descent.iterate(state, clock).noted()
        assert engine.neighbours(state.now.W, state.now.H).max() > 0.25
        before = state.now.W.copy(), state.now.H.copy()
        new = reshaped(loop.descent, state, clock)
        assert new == replace(state, tries=new.tries)
        assert new.iteration == 32
        assert new.now is state.now
        np.testing.assert_array_equal(new.now.W, before[0])
        np.testing.assert_array_equal(new.now.H, before[1])
        assert new.tries.stuck == state.now.objective
        assert reshaped(loop.descent, new, clock) is None


@pytest.mark.parametrize("case", ["published", "mu", "switched off", "too early", "no time"])
def test_when_nothing_is_reshaped(case):
    true, H = smooth(2, 9), activations()
    W, moved = np.zeros_like(true), np.zeros_like(H)
    W[:, 5:], moved[:-5] = true[:, : L - 5], H[5:]
    rules = {"published": None, "switched off": Acceleration(reshape=False)}
    with problem(true, H).engine() as engine:
        acceleration = rules.get(case, Acceleration())
        solver = MU() if case == "mu" else HALS()
        loop = loop_of(engine, solver, acceleration=acceleration)
        state = state_at(loop, W, moved, 7 if case == "too early" else 8)
        clock = Clock(0) if case == "no time" else Clock()
        new = reshaped(loop.descent, state, clock)
        assert new is None or new.now is state.now


def test_fixed_motifs_stay_as_they_are():
    true, H = smooth(2, 9), activations()
    X = problem(true, H).X
    given = np.zeros((K, L, N))
    given[:, 5:] = true.transpose(2, 1, 0)[:, : L - 5]
    options = {"random_state": 0, "max_iter": 80, "tol": 1e-4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CNMF(K, L, fixed_components=[0], **options).fit(X, components_init=given)
    np.testing.assert_array_equal(model.components_[0], given[0])
    assert np.all(np.diff(model.history_.objective) <= 1e-9 * model.history_.objective[0])


@pytest.mark.parametrize(
    "settings",
    [{}, {"solver": "anls"}, {"l1_H": 0.02, "l2_W": 0.02, "x_ortho": 1e-3}, {"boundary": "valid"}],
    ids=str,
)
def test_j_never_rises_with_masks_and_segments(settings):
    rng = np.random.default_rng(3)
    X = problem(smooth(1, 10), activations()).X
    mask = rng.random(X.shape) > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CNMF(K, L, random_state=1, max_iter=70, tol=0, **settings)
        model.fit(X, mask=mask, lengths=[150, 30, T - 180])
    assert np.all(np.diff(model.history_.objective) <= 1e-9 * model.history_.objective[0])


def test_threads_change_no_bit_and_a_saved_state_goes_on_alike():
    X = problem(smooth(), activations()).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [CNMF(K, L, random_state=2, max_iter=70, tol=0, n_jobs=n).fit(X) for n in (1, 2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    np.testing.assert_array_equal(models[0].activations_, models[1].activations_)


def test_where_it_was_stuck_is_part_of_the_record():
    case = make_case([60], N=4, K=2, L=3)
    with case.engine() as engine:
        state = loop_of(engine).start(case.W, case.H)
    state = replace(state, tries=replace(state.tries, stuck=1.5))
    arrays = state.to_arrays()
    assert LoopState.from_arrays(arrays).tries == state.tries
    del arrays["stuck"]  # a file of an earlier version
    assert np.isinf(LoopState.from_arrays(arrays).tries.stuck)


def test_single_starts_reach_the_same_minimum():
    X = problem(smooth(), activations()).X
    options = {"tol": 1e-4, "max_iter": 500}
    losses = [CNMF(K, L, random_state=seed, **options).fit(X).loss_ for seed in range(4)]
    assert max(losses) < 1.03 * min(losses)
