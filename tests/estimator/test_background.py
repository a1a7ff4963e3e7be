"""A constant of every feature beside the motifs, in every loss and solver."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference
from cases import HIDDEN, cases, make_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from motifold import CNMF
from motifold.datasets import make_sequences

LEVELS = np.linspace(0, 2, 20)


@pytest.fixture(scope="module")
def X():
    data = make_sequences(800, 20, 2, 8, activation_probability=0.05, noise=0.0, random_state=0)
    return data.X + LEVELS


def quiet_fit(model: CNMF, *args, **kwargs) -> CNMF:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not converged, empty motifs
        return model.fit(*args, **kwargs)


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.parametrize("acceleration", ["auto", None])
def test_it_is_found(X, solver, acceleration):
    settings = {"max_iter": 150, "random_state": 1}
    model = CNMF(2, 8, solver=solver, acceleration=acceleration, background=True, **settings)
    quiet_fit(model, X)
    assert np.corrcoef(model.background_, LEVELS)[0, 1] > 0.97
    without = quiet_fit(CNMF(2, 8, solver=solver, acceleration=acceleration, **settings), X)
    assert model.loss_ < 0.6 * without.loss_


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.5])
def test_it_is_found_in_other_losses(X, beta):
    X = X + 0.1 * (beta == 0)
    settings = {"beta_loss": beta, "max_iter": 150, "random_state": 1}
    model = quiet_fit(CNMF(2, 8, background=True, **settings), X)
    without = quiet_fit(CNMF(2, 8, **settings), X)
    assert model.loss_ < 0.7 * without.loss_
    assert np.corrcoef(model.background_, LEVELS)[0, 1] > 0.9


@settings(max_examples=60, deadline=None)
@given(
    cases(max_length=9),
    st.sampled_from(["hals", "anls", "mu", "kl"]),
    st.sampled_from(["auto", None]),
    st.sampled_from(HIDDEN),
)
def test_odd_problems(case, solver, acceleration, hidden):
    """J never rises and is the oracle's, of X less the background, at the end."""
    observed = make_mask(hidden, case.X, case.lengths)
    K, L = case.W.shape[2], case.W.shape[1]
    loss = {"beta_loss": 1} if solver == "kl" else {"solver": solver}
    model = CNMF(
        K,
        L,
        background=True,
        boundary=case.boundary,
        acceleration=acceleration,
        max_iter=6,
        tol=0,
        normalize=False,
        random_state=0,
        **loss,
        **case.penalties,
    )
    quiet_fit(model, case.X, lengths=case.lengths, mask=observed)
    J = model.history_.objective
    assert np.all(np.diff(J) <= 1e-12 * J[0])
    assert model.background_.min() >= 0
    W, H = model.components_.transpose(2, 1, 0), model.activations_
    penalty = reference.objective(np.zeros_like(case.X), W, H, case.lengths, **case.penalties)
    penalty -= reference.objective(np.zeros_like(case.X), W, H, case.lengths)
    seen = np.ones(case.X.shape, bool) if observed is None else observed
    fit = reference.reconstruct(W, H, case.lengths) + model.background_
    if solver == "kl":
        scale = np.finfo(float).eps * max(1.0, case.X.max())
        misfit = reference.beta_divergence(case.X[seen], fit[seen] + scale, 1).sum()
        close = {"rtol": 1e-3, "atol": 1e-6}  # the floor of X̂ counts where it is all there is
    else:
        misfit, close = 0.5 * np.sum((case.X - fit)[seen] ** 2), {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(J[-1], misfit + penalty, **close)
    made = model.inverse_transform(H, lengths=case.lengths)
    np.testing.assert_allclose(made, fit, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("beta", [1, 2])
def test_transform_score_and_a_fit_agree(X, beta):
    X = X + np.random.default_rng(0).random(X.shape)
    model = quiet_fit(CNMF(2, 8, beta_loss=beta, background=True, random_state=0, tol=1e-4), X)
    assert -model.score(X) == pytest.approx(model.loss_, rel=1e-3)
    parts = np.sum(list(model.reconstruct_components()), axis=0) + model.background_
    np.testing.assert_allclose(parts, model.inverse_transform(model.activations_), rtol=1e-6)


def test_the_callback_and_warm_starts_see_motifs_alone(X):
    shapes = set()

    def note(state):
        shapes.add((state.components.shape, state.activations.shape))

    model = CNMF(2, 8, background=True, random_state=0, max_iter=3, callback=note, warm_start=True)
    quiet_fit(model, X)
    loss = model.loss_
    quiet_fit(model, X)
    assert shapes == {((2, 8, 20), (800, 2))}
    assert model.loss_ <= loss * (1 + 1e-9)


def test_fixed_motifs_and_sparse_data(X):
    motifs = np.random.default_rng(0).random((2, 8, 20))
    settings = {"background": True, "fixed_components": [0], "max_iter": 5, "random_state": 0}
    model = quiet_fit(CNMF(2, 8, **settings), X, components_init=motifs)
    np.testing.assert_array_equal(model.components_[0], motifs[0])
    counts = np.floor(X)
    dense = quiet_fit(CNMF(2, 8, **settings), counts, components_init=motifs)
    found = quiet_fit(CNMF(2, 8, **settings), sparse.csr_array(counts), components_init=motifs)
    np.testing.assert_allclose(found.background_, dense.background_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("beta", [1, 2])
def test_threads_change_nothing(X, beta):
    settings = {"beta_loss": beta, "background": True, "max_iter": 5, "random_state": 0}
    models = [quiet_fit(CNMF(2, 8, n_jobs=n, **settings), X) for n in (1, 3)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    np.testing.assert_array_equal(models[0].background_, models[1].background_)
