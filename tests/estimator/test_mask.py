"""Missing entries through the estimator: what is hidden counts nowhere."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from cases import HIDDEN, make_case, make_mask
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.datasets import make_sequences

LENGTHS = [60, 25, 35]
SOLVERS = ["hals", "anls", "mu"]


@pytest.fixture(scope="module")
def X():
    return make_sequences(120, 12, 2, 4, activation_probability=0.2, noise=0.1, random_state=0).X


def fitted(X, **settings):
    arguments = {name: settings.pop(name) for name in ("mask", "lengths") if name in settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(2, 4, random_state=0, n_jobs=1, **settings).fit(X, **arguments)


@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_mask_that_hides_nothing_changes_nothing(X, solver, acceleration):
    settings = {"solver": solver, "acceleration": acceleration, "max_iter": 30}
    plain, masked = fitted(X, **settings), fitted(X, mask=np.ones(X.shape, bool), **settings)
    np.testing.assert_array_equal(plain.components_, masked.components_)
    np.testing.assert_array_equal(plain.activations_, masked.activations_)
    np.testing.assert_array_equal(plain.history_.objective, masked.history_.objective)
    np.testing.assert_array_equal(
        plain.transform(X), masked.transform(X, mask=np.full(X.shape, 1 > 0))
    )


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -5.0, 1e30, 0.0])
def test_what_is_hidden_does_not_matter(X, garbage):
    mask = make_mask("few", X, LENGTHS)
    model = fitted(X, mask=mask, lengths=LENGTHS)
    spoilt = np.where(mask, X, garbage)
    kept = spoilt.copy()
    other = fitted(spoilt, mask=mask, lengths=LENGTHS)
    np.testing.assert_array_equal(spoilt, kept)
    np.testing.assert_array_equal(model.components_, other.components_)
    np.testing.assert_array_equal(model.transform(X, mask=mask), other.transform(spoilt, mask=mask))
    assert model.score(X, mask=mask) == other.score(spoilt, mask=mask)


@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("hidden", HIDDEN[1:])
@pytest.mark.parametrize("solver", SOLVERS)
def test_everything_reported_is_of_the_observed_entries(X, solver, hidden, acceleration):
    mask = make_mask(hidden, X, LENGTHS)
    settings = {"solver": solver, "acceleration": acceleration, "tol": 1e-4, "max_iter": 60}
    model = fitted(np.where(mask, X, np.nan), mask=mask, lengths=LENGTHS, **settings)
    X_hat = model.inverse_transform(model.activations_, lengths=LENGTHS)
    error = np.linalg.norm((X - X_hat)[mask])
    np.testing.assert_allclose(model.reconstruction_err_, error, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.loss_, error / np.linalg.norm(X[mask]), rtol=1e-7, atol=1e-9)
    slack = 1e-6 * model.history_.objective[:-1] + 1e-13 * np.sum(X**2)
    assert np.all(np.diff(model.history_.objective) <= slack)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        score = model.score(X, lengths=LENGTHS, mask=mask)
        activations = model.transform(X, lengths=LENGTHS, mask=mask)
    error = (X - model.inverse_transform(activations, lengths=LENGTHS))[mask]
    np.testing.assert_allclose(score, -np.linalg.norm(error) / np.linalg.norm(X[mask]), rtol=1e-7)
    assert score >= -1.001 * model.loss_


def test_order_by_the_observed_power(X):
    """The motif that explains more of what is observed comes first."""
    mask = make_mask("half", X, LENGTHS)
    model = fitted(X, mask=mask)
    parts = model.reconstruct_components()
    shares = [np.sum((2 * X * part - part**2)[mask]) for part in parts]
    assert shares[0] >= shares[1]


@pytest.mark.parametrize("hidden", ["few", "columns"])
def test_a_masked_fit_converges_to_a_stationary_point(hidden):
    case = make_case([60, 40], N=12, K=2, L=4, zeros=0.5)
    mask = make_mask(hidden, case.X, case.lengths)
    model = fitted(case.X, mask=mask, lengths=case.lengths, tol=1e-6, max_iter=20_000)
    assert model.converged_
    W, H = model.components_.transpose(2, 1, 0), model.activations_

    def objective(W, H):
        return reference.full_objective(case.X, W, H, *case.arguments, mask)

    of_W = reference.finite_difference(lambda W: objective(W, H), W)
    of_H = reference.finite_difference(lambda H: objective(W, H), H)
    assert np.abs(np.minimum(W, of_W)).max() < 1e-3
    assert np.abs(np.minimum(H, of_H)).max() < 1e-3


def test_hidden_entries_are_predicted():
    """Sequences without noise: what is hidden follows from what is observed."""
    X = make_sequences(400, 10, 2, 6, noise=0, random_state=1).X
    rng = np.random.default_rng(0)
    mask = rng.random(X.shape) >= 0.2
    model = CNMF(2, 6, random_state=0, tol=1e-4, max_iter=3000, n_init=3, n_jobs=1)
    model.fit(np.where(mask, X, np.nan), mask=mask)
    error = (X - model.inverse_transform(model.activations_))[~mask]
    assert np.linalg.norm(error) < 0.2 * np.linalg.norm(X[~mask])


def test_what_was_never_observed_is_zero(X):
    mask = np.ones(X.shape, bool)
    mask[:, 2] = False
    mask[50:90] = False
    for acceleration in ("auto", None):
        model = fitted(X, mask=mask, acceleration=acceleration)
        assert not model.components_[:, :, 2].any()
        assert not model.activations_[50:87].any()


def test_masks_come_in_the_shapes_that_recordings_do(X):
    mask = make_mask("few", X, LENGTHS)
    stops = np.cumsum(LENGTHS)[:-1]
    expected = fitted(X, mask=mask, lengths=LENGTHS)
    in_parts = fitted(np.split(X, stops), mask=np.split(mask, stops))
    stacked = fitted(np.split(X, stops), mask=mask)
    frame = fitted(pd.DataFrame(X), mask=pd.DataFrame(mask), lengths=LENGTHS)
    for model in (in_parts, stacked, frame):
        np.testing.assert_array_equal(model.components_, expected.components_)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (np.ones((120, 5), bool), ValueError, r"shape of X, \(120, 12\), not \(120, 5\)"),
        (np.ones((120, 12)), TypeError, "mask must be boolean.*float64"),
        (np.zeros((120, 12), bool), ValueError, "hides every entry"),
        ([np.ones((60, 12), bool)] * 3, ValueError, "cut like the recording"),
    ],
)
def test_bad_masks_are_refused(X, mask, error, message):
    with pytest.raises(error, match=message):
        CNMF(2, 4).fit(X, mask=mask, lengths=LENGTHS)


def test_bad_values_that_are_observed_are_refused(X):
    mask = np.ones(X.shape, bool)
    mask[3, 2] = False
    spoilt = X.copy()
    spoilt[3, 2] = np.nan
    spoilt[70, 1] = np.nan
    with pytest.raises(ValueError, match="NaN, first at row 70, column 1"):
        CNMF(2, 4).fit(spoilt, mask=mask, lengths=LENGTHS)
