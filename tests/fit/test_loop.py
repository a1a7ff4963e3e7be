"""The loop: reasons to stop, history, certificate, extrapolation, Ctrl-C, save and go on."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
from cases import PENALTIES, Case, cases, full_cases, make_case
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.engines.cpu import CPUEngine
from motifold.fit import Acceleration, Clock, Loop, LoopState, Rules, SearchState, search
from motifold.solvers import HALS, find_solver

AUTO = Acceleration()


def run(case: Case, solver="hals", dtype=np.float64, **rules) -> LoopState:
    with case.engine(dtype) as engine:
        loop = Loop(engine, find_solver(solver), Rules(**rules))
        return search(loop, SearchState([0]), case.W, case.H)


@pytest.mark.parametrize("solver", ["hals", "anls"])
@pytest.mark.parametrize("acceleration", [None, AUTO], ids=["published", "auto"])
@pytest.mark.parametrize("boundary", ["zero", "valid"])
@pytest.mark.parametrize("penalties", PENALTIES, ids=lambda p: "+".join(p) or "none")
def test_kkt_residuals_go_to_zero(solver, acceleration, boundary, penalties):
    case = make_case([60, 40], N=6, K=2, L=4, boundary=boundary, penalties=penalties, zeros=0.5)
    state = run(case, solver, acceleration=acceleration, tol=1e-7, max_iter=20_000)
    assert state.stop_reason == "converged"
    W, H = state.now.W, state.now.H
    residuals = reference.kkt_residual(case.X, W, H, *case.arguments, **penalties)
    assert max(residuals) <= 1.01e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@settings(max_examples=40)
@given(case=cases())
def test_accelerated_fits_never_rise(solver, dtype, case: Case):
    state = run(case, solver, dtype, acceleration=AUTO, max_iter=25, tol=1e-6)
    objective = state.history.objective
    slack = 1e-6 * objective[:-1] + 50 * np.finfo(dtype).eps * (1 + np.sum(case.X**2))
    assert np.all(np.diff(objective) <= slack)
    for factor in (state.now.W, state.now.H):
        assert np.isfinite(factor).all()
        assert factor.min() >= 0
    expected = reference.objective(
        case.X, state.now.W.astype(float), state.now.H.astype(float), case.lengths, **case.penalties
    )
    np.testing.assert_allclose(state.objective, expected, rtol=1e-3, atol=slack.max())


@pytest.mark.parametrize("acceleration", [None, AUTO], ids=["published", "auto"])
@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@settings(max_examples=40)
@given(case=full_cases(), center=st.booleans())
def test_fits_never_rise_whatever_is_asked(solver, acceleration, case: Case, center: bool):
    """Missing entries, fixed and centred motifs, all penalties: the objective is the oracle's."""
    state = run(case, solver, acceleration=acceleration, max_iter=25, tol=1e-6, center=center)
    objective = state.history.objective
    slack = 1e-6 * objective[:-1] + 1e-13 * (1 + np.sum(case.X**2))
    assert np.all(np.diff(objective) <= slack)
    expected = case.objective(state.now.W, state.now.H)
    np.testing.assert_allclose(state.objective, expected, rtol=1e-6, atol=slack.max())
    if case.fixed is not None:
        np.testing.assert_array_equal(state.now.W[:, :, case.fixed], case.W[:, :, case.fixed])


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_published_history_equals_the_naive_one(solver):
    case = make_case([50, 20], N=5, K=2, L=4, penalties=PENALTIES[1])
    state = run(case, solver, acceleration=None, tol=0, max_iter=10)
    step = getattr(reference, f"{solver}_step")
    W, H = case.W, case.H
    for i in range(11):
        expected = reference.objective(case.X, W, H, case.lengths, **case.penalties)
        loss = reference.relative_loss(case.X, W, H, case.lengths)
        np.testing.assert_allclose(state.history.objective[i], expected, rtol=1e-9)
        np.testing.assert_allclose(state.history.loss[i], loss, rtol=1e-9)
        W, H = step(case.X, W, H, *case.arguments, **case.penalties)
    assert state.history.iteration.tolist() == list(range(11))
    assert np.all(np.diff(state.history.seconds) > 0)


def test_extrapolation_helps():
    """Accelerated HALS reaches in far fewer iterations what plain HALS needs."""
    case = make_case([400], N=20, K=3, L=8, zeros=0.7)
    plain = run(case, acceleration=None, tol=1e-4, max_iter=5000)
    fast = run(case, acceleration=AUTO, tol=1e-4, max_iter=5000)
    assert plain.stop_reason == fast.stop_reason == "converged"
    assert fast.iteration < 0.5 * plain.iteration


@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("acceleration", [None, AUTO], ids=["published", "auto"])
def test_a_saved_state_goes_on_as_if_nothing_had_happened(acceleration, missing, center):
    case = make_case([80, 30], N=5, K=2, L=4)
    if missing:
        observed = np.random.default_rng(0).random(case.X.shape) >= missing
        case = replace(case, observed=observed)
    rules = {"acceleration": acceleration, "tol": 1e-5, "center": center}
    whole = run(case, max_iter=40, **rules)
    with case.engine() as engine:
        first = Loop(engine, HALS(), Rules(max_iter=40, **rules))
        record = SearchState([0])
        saved = io.BytesIO()

        def save_in_the_middle(state):
            record.current = state
            if state.iteration == 11:
                np.savez(saved, **record.to_arrays())
            return False

        first.callback = save_in_the_middle
        search(first, record, case.W, case.H)
        saved.seek(0)
        restored = SearchState.from_arrays(dict(np.load(saved, allow_pickle=False)))
        assert restored.current is not None
        assert restored.current.iteration == 11
        second = Loop(engine, HALS(), Rules(max_iter=40, **rules))
        resumed = search(second, restored, case.W, case.H)
    np.testing.assert_array_equal(resumed.now.W, whole.now.W)
    np.testing.assert_array_equal(resumed.now.H, whole.now.H)
    np.testing.assert_array_equal(resumed.history.loss, whole.history.loss)
    assert resumed.stop_reason == whole.stop_reason


def test_a_saved_search_keeps_the_best_start_and_the_seeds():
    case = make_case([50], N=4, K=2, L=3)
    with case.engine() as engine:
        loop = Loop(engine, HALS(), Rules(max_iter=5, tol=0))
        record = SearchState([1, 2, 3])
        whole = search(loop, record)
        halfway = SearchState([1, 2, 3])
        one = Loop(engine, HALS(), Rules(max_iter=5, tol=0))
        only_first = SearchState([1])
        search(one, only_first)
        halfway.index, halfway.best, halfway.current = 1, only_first.best, None
        restored = SearchState.from_arrays(halfway.to_arrays())
        resumed = search(loop, restored)
    np.testing.assert_array_equal(resumed.now.W, whole.now.W)


def interrupted_after(n):
    def callback(state):
        if state.iteration == n:
            raise KeyboardInterrupt
        return False

    return callback


@pytest.mark.parametrize("acceleration", ["auto", None])
def test_ctrl_c_leaves_the_best_iterate_and_is_raised(acceleration):
    X = make_case([80], N=5, K=2, L=4).X
    model = CNMF(
        2, 4, random_state=0, tol=0, acceleration=acceleration, callback=interrupted_after(7)
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.stop_reason_ == "interrupted"
    assert not model.converged_
    # The callback of iteration 7 was interrupted: the last whole iterate is the sixth.
    assert model.n_iter_ == 6
    assert len(model.history_.loss) == 7
    loss = np.linalg.norm(X - model.inverse_transform(model.activations_)) / np.linalg.norm(X)
    np.testing.assert_allclose(model.loss_, loss)
    assert model.transform(X).shape == (80, 2)


def test_ctrl_c_in_a_later_start_keeps_the_better_one():
    X = make_case([80], N=5, K=2, L=4).X
    calls = []

    def callback(state):
        calls.append(state.iteration)
        if calls.count(1) == 2 and state.iteration == 2:
            raise KeyboardInterrupt
        return False

    model = CNMF(2, 4, random_state=0, n_init=2, tol=1e-6, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    first = CNMF(2, 4, random_state=0, tol=1e-6).fit(X)
    np.testing.assert_allclose(model.loss_, first.loss_, rtol=1e-3)


class Idle:
    """A solver that makes no progress."""

    def update_W(self, W, statistics, penalties, inner):
        pass

    def update_H(self, H, statistics, penalties, inner):
        pass


def fit(X, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(2, 4, random_state=0, **settings).fit(X)


def test_reasons_to_stop():
    X = make_case([200], N=6, K=2, L=4).X
    assert fit(X).stop_reason_ == "converged"
    assert fit(X, max_iter=2, tol=1e-9).stop_reason_ == "max_iter"
    assert fit(X, max_time=1e-9, tol=1e-9).stop_reason_ == "max_time"
    assert fit(X, callback=lambda state: state.iteration == 3, tol=0).stop_reason_ == "callback"
    assert fit(X, solver=Idle()).stop_reason_ == "stalled"


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"max_iter": 2, "tol": 1e-9}, "max_iter"),
        ({"max_time": 1e-9, "tol": 1e-9}, "max_time"),
        ({"solver": Idle()}, "stalled"),
    ],
)
def test_a_fit_that_did_not_converge_warns_with_the_remedy(settings, remedy):
    X = make_case([200], N=6, K=2, L=4).X
    with pytest.warns(ConvergenceWarning, match=rf"\({remedy}\): after \d+ iterations the KKT"):
        model = CNMF(2, 4, random_state=0, **settings).fit(X)
    assert not model.converged_


def test_the_callback_sees_the_state():
    X = make_case([60], N=5, K=2, L=4).X
    seen = []

    def callback(state):
        seen.append((state.iteration, state.loss, state.objective, state.seconds))
        assert state.components.shape == (2, 4, 5)
        assert state.activations.shape == (60, 2)
        fitted = np.zeros_like(X)
        for lag in range(4):
            fitted[lag:] += state.activations[: 60 - lag] @ state.components[:, lag]
        np.testing.assert_allclose(
            np.linalg.norm(X - fitted) / np.linalg.norm(X), state.loss, rtol=1e-9
        )

    model = fit(X, callback=callback, max_iter=6, tol=0)
    assert [entry[0] for entry in seen] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([entry[1] for entry in seen[:-1]], model.history_.loss[1:-1])


class Ticks:
    """A time that passes by one second for every look at it."""

    def __init__(self):
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


def test_max_time_is_shared_by_all_starts():
    case = make_case([60], N=4, K=2, L=3)
    ended = []

    def callback(state):
        ended.append((record.index, state.seconds))
        return False

    with case.engine() as engine:
        rules = Rules(max_iter=10**6, tol=0)
        loop, record = Loop(engine, HALS(), rules, callback), SearchState([0, 1, 2])
        best = search(loop, record, clock=Clock(600.0, now=Ticks()))
    assert best.stop_reason == "max_time"
    ends = [max(seconds for index, seconds in ended if index == i) for i in range(3)]
    assert 195 <= ends[0] <= 230
    assert 390 <= ends[1] <= 440
    assert 590 <= ends[2] <= 640


def test_the_clock_runs_from_the_moment_the_fit_is_entered():
    """The start counts: one that takes all the time leaves none for iterations."""
    case = make_case([60], N=4, K=2, L=3)
    ticks = Ticks()

    class Slow(CPUEngine):
        def draw(self, *args):
            ticks.looks += 100
            return super().draw(*args)

    with case.engine() as engine:
        loop = Loop(Slow(engine.problem, engine.workers), HALS(), Rules(tol=0, acceleration=None))
        state = search(loop, SearchState([0]), clock=Clock(50.0, now=ticks))
    assert state.stop_reason == "max_time"
    assert state.iteration == 1
    assert state.history.seconds[0] > 100


def test_history_ends_with_the_reported_loss():
    X = make_case([100], N=6, K=2, L=4).X
    for acceleration in ("auto", None):
        model = fit(X, acceleration=acceleration)
        assert model.history_.loss[-1] == model.loss_
        lengths = {len(column) for column in vars(model.history_).values()}
        assert lengths == {model.n_iter_ + 1}


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_more_starts_are_never_worse(seed):
    X = make_case([60], N=5, K=2, L=4, seed=seed).X
    one = CNMF(2, 4, random_state=3, tol=0, max_iter=10).fit(X)
    four = CNMF(2, 4, random_state=3, tol=0, max_iter=10, n_init=4).fit(X)
    assert four.history_.objective[-1] <= one.history_.objective[-1] * (1 + 1e-12)


def test_a_progress_bar_is_shown_on_demand(capsys):
    X = make_case([60], N=5, K=2, L=4).X
    fit(X)
    assert capsys.readouterr() == ("", "")
    fit(X, verbose=1, n_init=2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "CNMF 1/2" in shown.err
    assert "CNMF 2/2" in shown.err
    assert "loss" in shown.err
