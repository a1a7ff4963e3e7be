"""Data below zero: ``allow_negative=True`` takes X as it is, factors stay nonnegative."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import motifold
from motifold import ANLS, CNMF, HALS, MU
from motifold.io import Recording

# Fits of odd problems seldom converge within the few iterations they get here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:All motifs are empty"
)


def around_zero(T=60, N=6, seed=0, dtype=np.float64):
    """Two motifs of four lags, and noise on both sides of zero."""
    rng = np.random.default_rng([24, seed])
    X = 0.4 * rng.standard_normal((T, N))
    for start in range(3, T - 4, 9):
        for lag in range(4):
            X[start + lag, (lag + 3 * (start % 2)) % N] += 2
    return X.astype(dtype)


def layout(model):
    """W (N, L, K) and H of a fitted model, in float64."""
    return model.components_.transpose(2, 1, 0).astype(float), model.activations_.astype(float)


def assert_true(model, X, rel=1e-6):
    """J never rose; loss and certificate are those of the oracle; nothing is below zero."""
    W, H = layout(model)
    assert W.min() >= 0
    assert H.min() >= 0
    J = model.history_.objective
    assert (np.diff(J) <= 1e-6 * J[:-1]).all()
    assert model.loss_ == pytest.approx(reference.relative_loss(X.astype(float), W, H), rel=rel)


@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize(
    "solver", [HALS(), HALS("blocks"), HALS("tiles"), ANLS(), ANLS(h_passes="exact")], ids=repr
)
def test_j_never_rises_and_the_certificate_goes_to_zero(solver, acceleration):
    X = around_zero()
    model = CNMF(
        2, 4, solver=solver, acceleration=acceleration, allow_negative=True, random_state=1,
        tol=1e-6, max_iter=3000,
    ).fit(X)  # fmt: skip
    assert_true(model, X)
    assert model.converged_
    assert model.loss_ < 0.7
    assert max(reference.kkt_residual(X, *layout(model))) <= 2e-6


@pytest.mark.parametrize("order", ["entries", "blocks"])
def test_iterations_are_those_of_the_paper(order):
    X, rng = around_zero(30), np.random.default_rng(5)
    W, H = rng.random((6, 4, 2)), rng.random((30, 2))
    given = {"components_init": W.transpose(2, 1, 0), "activations_init": H}
    model = CNMF(
        2, 4, solver=HALS(order), acceleration=None, normalize=False, max_iter=3, tol=0,
        allow_negative=True,
    ).fit(X, **given)  # fmt: skip
    for _ in range(3):
        W, H = reference.hals_step(X, W, H, order=order)
    np.testing.assert_allclose(model.components_, W.transpose(2, 1, 0), atol=1e-9)
    np.testing.assert_allclose(model.activations_, H, atol=1e-9)


def projected_gradient_nmf(X, H, W, n_steps=4000):
    """min ½‖X − HW‖² over H, W ≥ 0 for X of either sign, a step of 1/Lipschitz for each in turn."""
    for _ in range(n_steps):
        H = np.maximum(0, H - (H @ W - X) @ W.T / np.linalg.norm(W @ W.T, 2))
        W = np.maximum(0, W - H.T @ (H @ W - X) / np.linalg.norm(H.T @ H, 2))
    return H, W


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_one_lag_is_nmf_of_signed_data(solver):
    """As good as projected gradients; and where it ends they stay."""
    rng = np.random.default_rng(3)
    X = rng.random((25, 2)) @ rng.random((2, 7)) + 0.3 * rng.standard_normal((25, 7))
    model = CNMF(
        2, 1, solver=solver, allow_negative=True, n_init=3, random_state=0, tol=1e-7, max_iter=5000
    ).fit(X)
    H, W = model.activations_, model.components_[:, 0]
    stay = projected_gradient_nmf(X, H, W, 200)
    np.testing.assert_allclose(stay[0] @ stay[1], H @ W, atol=1e-5)
    starts = [(rng.random((25, 2)), rng.random((2, 7))) for _ in range(3)]
    found = [np.linalg.norm(X - np.matmul(*projected_gradient_nmf(X, *start))) for start in starts]
    assert model.reconstruction_err_ == pytest.approx(min(found), rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, n) for n in (14, 4, 3, 6))),
    seed=st.integers(0, 10**6),
    shift=st.sampled_from([-3.0, 0.0, 0.5]),
    solver=st.sampled_from(["hals", "anls"]),
    acceleration=st.sampled_from(["auto", None]),
    boundary=st.sampled_from(["zero", "valid"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_odd_sizes(sizes, seed, shift, solver, acceleration, boundary, dtype):
    T, N, K, L = sizes
    X = (np.random.default_rng(seed).standard_normal((T, N)) + shift).astype(dtype)
    model = CNMF(
        K, L, solver=solver, acceleration=acceleration, boundary=boundary, allow_negative=True,
        random_state=seed, max_iter=40,
    ).fit(X)  # fmt: skip
    W, H = layout(model)
    assert W.min() >= 0
    assert H.min() >= 0
    assert model.loss_ <= 1 + 1e-6
    J = model.history_.objective
    # The last solve may reach the same minimum from elsewhere: ``fit.step`` allows it 1e-6.
    eps = 1e-4 if dtype == np.float32 else 1e-6
    assert (np.diff(J) <= eps * (J[:-1] + 0.5 * float(np.sum(X.astype(float) ** 2)))).all()
    told = reference.relative_loss(X.astype(float), W, H, boundary=boundary)
    assert model.loss_ == pytest.approx(told, abs=1e-3 if dtype == np.float32 else 1e-6)


def test_transform_and_score_are_those_of_the_oracle():
    X, new = around_zero(), around_zero(20, seed=1)
    model = CNMF(2, 4, allow_negative=True, random_state=0, tol=1e-6, max_iter=3000).fit(X)
    W, _ = layout(model)
    H = reference.solve_H(new, W)
    np.testing.assert_allclose(model.transform(new), H, atol=1e-4)
    assert model.score(new) == pytest.approx(-reference.relative_loss(new, W, H), rel=1e-6)
    shares = motifold.explained_power(model, X, kind="alone")
    np.testing.assert_allclose(shares, reference.power_shares(X, *layout(model)), atol=1e-6)
    assert (np.diff(shares) <= 1e-9).all()  # components are sorted by them


def test_missing_entries_segments_and_sparse_matrices():
    X = around_zero()
    X[np.abs(X) < 0.3] = 0
    mask = np.random.default_rng(0).random(X.shape) > 0.1
    mask[:, 0] = True
    settings = {"allow_negative": True, "random_state": 0}
    dense = CNMF(2, 4, **settings).fit(np.where(mask, X, np.nan), mask=mask, lengths=[25, 35])
    listed = CNMF(2, 4, **settings).fit(sparse.csr_array(X), mask=mask, lengths=[25, 35])
    assert dense.converged_
    assert dense.loss_ == pytest.approx(listed.loss_, rel=1e-3)
    left = np.where(mask, X - dense.inverse_transform(dense.activations_, lengths=[25, 35]), 0)
    told = np.linalg.norm(left) / np.linalg.norm(np.where(mask, X, 0))
    assert dense.loss_ == pytest.approx(told, rel=1e-5)


def test_an_empty_motif_is_revived_by_what_lies_above_zero():
    X = around_zero()
    start = np.zeros((2, 4, 6))
    start[0] = np.random.default_rng(0).random((4, 6))
    model = CNMF(2, 4, allow_negative=True, random_state=0).fit(X, components_init=start)
    assert model.components_.any(axis=(1, 2)).all()
    assert_true(model, X)


def test_a_start_on_data_far_below_zero():
    """Random factors overlap with it by less than nothing, and are still a start."""
    X = around_zero(200) - 0.8
    model = CNMF(2, 4, allow_negative=True, random_state=0).fit(X)
    assert model.converged_
    assert model.components_.any(axis=(1, 2)).all()
    assert model.loss_ < 0.99


def test_a_background_may_be_negative(tmp_path):
    """z-scores: silence lies below zero, and the constant finds it."""
    X = around_zero(300)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = CNMF(2, 4, allow_negative=True, background=True, random_state=0, tol=1e-5).fit(Z)
    assert model.converged_
    assert model.background_.max() < 0
    assert model.loss_ < CNMF(2, 4, allow_negative=True, random_state=0).fit(Z).loss_
    left = Z - model.inverse_transform(model.activations_)
    assert np.abs(left.mean(axis=0)).max() < 1e-3  # its gradient
    model.save(tmp_path / "model.npz")
    loaded = motifold.load(tmp_path / "model.npz")
    assert loaded.allow_negative
    assert (loaded.background_ == model.background_).all()
    assert (loaded.transform(Z) == model.transform(Z)).all()


def test_nothing_above_zero_is_told():
    with pytest.warns(UserWarning, match=r"nothing that recurs in X lies above zero.*-X"):
        model = CNMF(2, 3, allow_negative=True, random_state=0).fit(-np.ones((20, 3)))
    assert model.loss_ == 1
    assert not model.components_.any()
    assert model.kkt_residual_ == 0


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"solver": "mu"}, r"solver='mu' is for data that is nowhere below zero.*\"hals\""),
        ({"solver": MU()}, r"solver=MU.*nowhere below zero"),
        ({"beta_loss": "kullback-leibler"}, r"beta_loss=\"kullback-leibler\" .*ratio"),
        ({"beta_loss": 0.5}, r"beta_loss=\"0.5\" .*ratio"),
        ({"x_ortho": 0.1}, r"x_ortho .*would reward.*ortho_H"),
    ],
)
def test_what_has_no_meaning_below_zero_is_refused_by_name(parameters, told):
    with pytest.raises(ValueError, match=told):
        CNMF(2, 4, allow_negative=True, **parameters).fit(around_zero())


def test_without_it_the_error_says_what_to_do():
    with pytest.raises(ValueError, match=r"Negative values.*allow_negative=True.*Do not raise"):
        CNMF(2, 4).fit(around_zero())
    X = around_zero()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first at row 3, column 2"):
        CNMF(2, 4, allow_negative=True).fit(X)


def test_nonnegative_data_is_fitted_as_before():
    """On data that is nowhere below zero it changes nothing but the least scale of a start."""
    X = np.maximum(around_zero(), 0)
    plain, signed = (CNMF(2, 4, allow_negative=a, random_state=0).fit(X) for a in (False, True))
    np.testing.assert_array_equal(plain.components_, signed.components_)


def test_tags_say_so():
    assert CNMF(2, 4).__sklearn_tags__().input_tags.positive_only
    assert not CNMF(2, 4, allow_negative=True).__sklearn_tags__().input_tags.positive_only


def test_a_gpu_refuses_it_by_name():
    X = around_zero()
    with pytest.raises(ValueError, match="allow_negative=True runs on the CPU, not on a GPU"):
        CNMF(2, 4, allow_negative=True, device="cuda:twin").fit(X)


def test_a_recording_is_taken_as_it_is():
    """Whether it was read with negatives="keep" or not: the model says what is meant."""
    X = around_zero()
    options = {"allow_negative": True, "random_state": 0, "max_iter": 20}
    expected = CNMF(2, 4, **options).fit(X)
    model = CNMF(2, 4, **options).fit(Recording(X, "x"))
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(Recording(X, "x")), expected.transform(X))
    with pytest.raises(ValueError, match="Negative values"):
        CNMF(2, 4).fit(Recording(X, "x", signed=True))
