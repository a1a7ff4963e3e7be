"""J never rises, loss and certificate are those of the iterate: the cases that once broke it."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from motifold import ANLS, CNMF, HALS, MU

# Fits of odd problems seldom converge within the few iterations they get here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def observed_loss(X, mask, components, activations) -> float:
    """‖X − X̂‖ / ‖X‖ over the observed entries, by the oracle."""
    W, H = components.transpose(2, 1, 0).astype(float), activations.astype(float)
    left = np.where(mask, X.astype(float) - reference.reconstruct(W, H), 0)
    return float(np.linalg.norm(left) / np.linalg.norm(np.where(mask, X, 0).astype(float)))


def assert_falls(model, X, mask, true=()) -> None:
    """The course of J, told and true, and the loss that is told."""
    power = 0.5 * float(np.sum(np.where(mask, X, 0).astype(float) ** 2))
    for J in (model.history_.objective / power, np.asarray(true)):
        assert not (np.diff(J) > 1e-5 * J[:-1] + 1e-6).any()
    loss = observed_loss(X, mask, model.components_, model.activations_)
    assert model.loss_ == pytest.approx(loss, rel=1e-3, abs=1e-5)


def fit_and_watch(X, mask, K, L, solver, seed, **given):
    """A plain fit, and its true J in units of ½‖X‖² after every iteration."""
    true = []

    def note(state) -> None:
        true.append(observed_loss(X, mask, state.components, state.activations) ** 2)

    model = CNMF(
        K,
        L,
        solver=solver,
        acceleration=None,
        tol=0,
        max_iter=60,
        random_state=seed,
        callback=note,
    )
    return model.fit(X, mask=None if mask.all() else mask, **given), true


def sparse_problem():
    """Twelve bins, three of them missing."""
    X = np.zeros((12, 3), np.float32)
    X[[0, 1, 3, 4, 6, 8, 9], [2, 1, 0, 1, 0, 0, 1]] = np.float32(
        [0.055875007, 0.070600867, 0.06273877, 0.074160434, 0.06934349, 0.59924215, 0.12961775]
    )
    mask = np.ones(X.shape, bool)
    mask[1:4] = False
    return X, mask


def small_problem(seed):
    rng = np.random.default_rng([3, seed])
    T, N = int(rng.integers(5, 40)), int(rng.integers(1, 8))
    K, L = int(rng.integers(1, 5)), int(rng.integers(2, 10))
    if rng.integers(2) == 0:
        X = rng.random((T, N))
    else:
        X = rng.exponential(size=(T, N)) * (rng.random((T, N)) < 0.4)
    mask = rng.random((T, N)) >= rng.choice([0.03, 0.1, 0.2, 0.4])
    return X.astype(np.float32), mask, K, L


def test_motifs_that_live_on_what_the_end_cuts_off_keep_it():
    """Their tiny entries were dropped as rounding, although activations made up for them."""
    X, mask = sparse_problem()
    assert_falls(*_in_order(fit_and_watch(X, mask, 4, 10, HALS(), 157), X, mask))


@pytest.mark.parametrize(
    ("seed", "masked"),
    [(355, True), (840, True), (1655, True), (1245, False), (1251, False), (1294, False)],
)
def test_plain_anls_in_single_precision(seed, masked):
    X, mask, K, L = small_problem(seed)
    mask = mask if masked else np.ones_like(mask)
    assert_falls(*_in_order(fit_and_watch(X, mask, K, L, ANLS(), seed), X, mask))


def _in_order(fitted, X, mask):
    model, true = fitted
    return model, X, mask, true


def start_in_another_unit(seed):
    """Data of about 1, and a start in units of 1e-6 to 1e6."""
    rng = np.random.default_rng([5, seed])
    T, N = int(rng.integers(20, 120)), int(rng.integers(2, 12))
    K, L = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    X = rng.random((T, N))
    mask = rng.random((T, N)) >= rng.choice([0.05, 0.3, 0.6])
    W = rng.random((K, L, N)) * 10.0 ** rng.choice([-6, -3, 0, 3, 6])
    H = rng.random((T, K)) * 10.0 ** rng.choice([-6, -3, 0, 3, 6])
    dtype = [np.float32, np.float64][rng.integers(2)]
    return X.astype(dtype), mask, K, L, [HALS(), MU(), ANLS()][rng.integers(3)], W, H


@pytest.mark.parametrize("seed", [91, 116, 190, 302, 337, 595])
def test_missing_entries_and_a_start_in_another_unit(seed):
    """X̂ at the missing entries is far above the data: much cancels, and steps are short."""
    X, mask, K, L, solver, W, H = start_in_another_unit(seed)
    model = CNMF(K, L, solver=solver, acceleration=None, max_iter=60, random_state=seed)
    model.fit(X, mask=mask, components_init=W, activations_init=H)
    assert_falls(model, X, mask)
    # Zero would leave no more than all of X: what leaves more is not stationary.
    assert not (model.converged_ and model.loss_ > 1.05)


def varied_problem(seed):
    """Features and bins of different scale, several patterns of what is missing."""
    rng = np.random.default_rng([2, seed])
    T, N = int(rng.integers(5, 80)), int(rng.integers(1, 10))
    K, L = int(rng.integers(1, 5)), int(rng.integers(1, 10))
    kind = rng.integers(3)
    if kind == 0:
        X = rng.random((T, N))
    elif kind == 1:
        X = rng.exponential(size=(T, N)) * (rng.random((T, N)) < 0.3)
    else:
        W = rng.random((K, L, N))
        H = rng.exponential(size=(T, K)) * (rng.random((T, K)) < 0.15)
        X = reference.reconstruct(W.transpose(2, 1, 0), H) + 0.1 * rng.random((T, N))
    if rng.random() < 0.5:
        X = X * 10.0 ** rng.uniform(-2, 2, size=N)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-1, 1, size=(T, 1))
    how, share = rng.integers(4), rng.choice([0.1, 0.3, 0.6, 0.9])
    if how == 1:
        mask = np.ones((T, N), bool)
        first = int(rng.integers(0, T))
        mask[first : first + max(1, int(share * T))] = False
        mask |= rng.random((T, N)) < 0.05
    else:
        shape = {0: (), 2: (N,), 3: (T, 1)}[int(how)]
        draw = rng.random((T, N))
        mask = draw >= (share if how == 0 else rng.random(shape))
    solver = [HALS(), MU(), HALS(), HALS("blocks")][rng.integers(4)]
    boundary = ["zero", "valid"][rng.integers(2)]
    rng = np.random.default_rng(seed)
    acceleration = [None, "auto"][rng.integers(2)]
    dtype = np.float64 if rng.random() < 0.5 else np.float32
    parameters = {"solver": solver, "boundary": boundary, "acceleration": acceleration}
    return X.astype(np.float32).astype(dtype), mask, K, L, parameters


@pytest.mark.parametrize("seed", [9, 114, 204, 318, 431, 657])
def test_transform_of_the_training_data_is_no_worse(seed):
    """Momentum went astray; and beside huge activations that hardly matter all seemed solved."""
    X, mask, K, L, parameters = varied_problem(seed)
    model = CNMF(K, L, max_iter=300, random_state=seed, **parameters).fit(X, mask=mask)
    own = observed_loss(X, mask, model.components_, model.activations_)
    again = observed_loss(X, mask, model.components_, model.transform(X, mask=mask))
    assert again <= 1.1 * own + 0.005


def test_a_tolerance_that_anything_meets():
    X = np.random.default_rng(0).random((30, 4))
    model = CNMF(1, 2, tol=1e200, random_state=0).fit(X)
    assert model.converged_
    assert np.isfinite(model.loss_)
