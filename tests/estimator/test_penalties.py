"""Fixed motifs and the penalties between components, through the estimator."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences

LENGTHS = [60, 25, 35]
SOLVERS = ["hals", "anls", "mu"]
DATA = make_sequences(120, 12, 3, 4, activation_probability=0.2, noise=0.1, random_state=0)
X = DATA.X
GIVEN = np.random.default_rng(0).random((3, 4, 12))


def fitted(data=X, *, components_init=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning))
        model = CNMF(3, 4, random_state=0, n_jobs=1, **settings)
        return model.fit(data, lengths=LENGTHS, components_init=components_init)


@pytest.mark.parametrize("fixed", [[0, 2], [True, False, True], np.array([0, -1])], ids=repr)
@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_fixed_motifs_stay_and_the_others_are_learnt(solver, acceleration, fixed):
    settings = {"solver": solver, "acceleration": acceleration, "max_iter": 20}
    model = fitted(components_init=GIVEN, fixed_components=fixed, **settings)
    np.testing.assert_array_equal(model.components_[[0, 2]], GIVEN[[0, 2]])
    np.testing.assert_allclose(np.linalg.norm(model.components_[1]), 1)
    np.testing.assert_array_equal(model.scales_[[0, 2]], 1)
    assert np.all(np.diff(model.history_.objective) <= 1e-6 * model.history_.objective[0])
    X_hat = model.inverse_transform(model.activations_, lengths=LENGTHS)
    np.testing.assert_allclose(np.linalg.norm(X - X_hat), model.reconstruction_err_, rtol=1e-7)


def test_true_motifs_held_fixed_help_to_find_the_last():
    truth = DATA.components
    start = np.concatenate([truth[:2], GIVEN[2:]])
    model = fitted(components_init=start, fixed_components=[0, 1], tol=1e-5, max_iter=3000)
    found = model.components_.transpose(2, 1, 0)
    assert reference.best_match(truth.transpose(2, 1, 0), found).min() > 0.9


def test_all_motifs_fixed_is_a_transform():
    model = fitted(components_init=GIVEN, fixed_components=[0, 1, 2])
    np.testing.assert_array_equal(model.components_, GIVEN)
    assert model.converged_
    expected = reference.solve_H(X, GIVEN.transpose(2, 1, 0), LENGTHS)
    J = reference.objective(X, GIVEN.transpose(2, 1, 0), expected, LENGTHS)
    assert model.history_.objective[-1] <= J * (1 + 1e-6)


@pytest.mark.parametrize(
    ("fixed", "given", "error", "message"),
    [
        ([0], None, ValueError, "components_init"),
        ([3], GIVEN, ValueError, "index 3; there are 3 motifs"),
        ([True, False], GIVEN, ValueError, "one per motif"),
        ([0.5], GIVEN, TypeError, "indices or of booleans"),
        ([[0, 1]], GIVEN, TypeError, "indices or of booleans"),
    ],
)
def test_bad_fixed_components_are_refused(fixed, given, error, message):
    with pytest.raises(error, match=message):
        fitted(components_init=given, fixed_components=fixed)


def test_none_fixed_is_the_plain_fit():
    plain = fitted(components_init=GIVEN)
    other = fitted(components_init=GIVEN, fixed_components=[])
    np.testing.assert_array_equal(plain.components_, other.components_)


@pytest.mark.parametrize("fixed", [[0, 2], np.array([True, False, True]), None], ids=repr)
def test_new_parameters_survive_clone_and_save(fixed, tmp_path):
    settings = {"x_ortho": 0.01, "ortho_H": 0.1, "ortho_W": 0.2, "l2_W": 0.1, "max_iter": 5}
    model = fitted(components_init=GIVEN, fixed_components=fixed, **settings)
    assert clone(model).x_ortho == 0.01
    model.save(tmp_path / "model.npz")
    loaded = motifold.load(tmp_path / "model.npz")
    if fixed is None:
        assert loaded.fixed_components is None
    else:
        np.testing.assert_array_equal(loaded.fixed_components, fixed)
    assert loaded.ortho_W == 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


@pytest.mark.parametrize("name", ["x_ortho", "ortho_H", "ortho_W"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_vanishing_penalty_gives_the_plain_fit(solver, name):
    plain = fitted(solver=solver, max_iter=30, acceleration=None, tol=0)
    other = fitted(solver=solver, max_iter=30, acceleration=None, tol=0, **{name: 1e-12})
    np.testing.assert_allclose(other.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(other.history_.objective, plain.history_.objective, rtol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1.0, 1e100], ids=["plain", "huge"])
def test_the_objective_of_a_penalised_fit_is_the_formula(solver, scale):
    """Also in the working scale, and after normalisation through ``scales_``."""
    penalties = {"x_ortho": 0.02, "ortho_H": 0.3, "ortho_W": 0.1 * scale**2, "l2_H": 0.1}
    model = fitted(X * scale, solver=solver, max_iter=15, tol=0, **penalties)
    W = model.components_.transpose(2, 1, 0) * model.scales_
    H = model.activations_ / np.where(model.scales_ > 0, model.scales_, 1)
    penalties["ortho_W"] = 0.1
    J = reference.full_objective(X, W, H / scale, LENGTHS, **penalties)
    np.testing.assert_allclose(model.history_.objective[-1] / scale / scale, J, rtol=1e-6)


@pytest.mark.parametrize("name", ["ortho_H", "ortho_W"])
def test_one_sided_penalties_warn(name):
    with pytest.warns(UserWarning, match="ill-posed"):
        CNMF(2, 4, **{name: 0.1}, max_iter=2, tol=0).fit(X)


def test_x_ortho_parts_motifs_that_explain_the_same():
    """More motifs than there are: the penalty lowers what it measures, and J stays one function."""
    settings = {"acceleration": "auto", "max_iter": 100}

    def overlap(model):
        W = model.components_.transpose(2, 1, 0)
        H = model.activations_
        parts = reference.full_objective(X, W, H, LENGTHS, x_ortho=1.0)
        return (parts - reference.objective(X, W, H, LENGTHS)) / np.linalg.norm(X) ** 2

    plain, parted = fitted(**settings), fitted(x_ortho=0.05, **settings)
    assert overlap(parted) < 0.7 * overlap(plain)


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_a_penalty_does_not_empty_a_random_start(solver):
    """Begun at the full weight, all motifs would be emptied by the first sweep."""
    rng = np.random.default_rng(3)
    lags, active = 2 + rng.integers(6, size=30), rng.random((600, 3)) < 0.02
    sequences = 0.1 * rng.random((600, 30))
    for feature, lag in enumerate(lags):
        sequences[lag:, feature] += active[: 600 - lag, feature % 3]
    options = {"solver": solver, "x_ortho": 0.05, "max_iter": 200, "n_jobs": 1}
    published = CNMF(4, 10, random_state=0, acceleration=None, **options)
    with pytest.warns(UserWarning, match="All motifs are empty"):
        published.fit(sequences)
    fits = [CNMF(4, 10, random_state=seed, **options).fit(sequences) for seed in range(3)]
    for model in fits:
        assert model.loss_ < 0.6
        assert np.all(np.diff(model.history_.objective) <= 1e-9)
    # Motifs that were emptied and revived would be the same whatever the start.
    assert len({round(model.loss_, 6) for model in fits}) > 1


def test_motifs_that_are_not_active_may_be_coupled():
    """ANLS divided by their curvatures, which are zero, and warned of an overflow."""
    rng = np.random.default_rng(0)
    motifs, activations = rng.random((3, 2, 3)), rng.random((30, 3)) * [1, 0, 0]
    options = {"solver": "anls", "ortho_W": 30, "l1_H": 0.1, "acceleration": None, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a motif is empty
        model = CNMF(3, 2, max_iter=5, **options).fit(
            rng.random((30, 3)), components_init=motifs, activations_init=activations
        )
    assert np.all(np.diff(model.history_.objective) <= 0)
    assert np.isfinite(model.components_).all()
