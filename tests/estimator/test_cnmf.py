"""The public face: every parameter, attribute and method of the contract."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import reference
from cases import PENALTIES, Case, cases, make_case
from hypothesis import given, settings
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from motifold import CNMF
from motifold.datasets import make_sequences


def fitted(X, K=2, L=4, **settings) -> CNMF:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        arguments = {k: settings.pop(k) for k in ("lengths", "segments") if k in settings}
        return CNMF(K, L, random_state=0, **settings).fit(X, **arguments)


def to_reference(model: CNMF):
    """The factors in the scale of the fit, in the reference's layout."""
    scales = np.where(model.scales_ > 0, model.scales_, 1)
    W = model.components_.transpose(2, 1, 0) * model.scales_
    return W, model.activations_ / scales


@pytest.fixture(scope="module")
def X():
    return make_case([120], N=6, K=2, L=4, zeros=0.6, seed=1).X


@settings(max_examples=60)
@given(case=cases())
def test_attributes_agree_with_the_oracle(case: Case):
    K, L = case.W.shape[2], case.W.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(case.X, K, L, lengths=case.lengths, boundary=case.boundary, **case.penalties)
    W, H = to_reference(model)
    T, N = case.X.shape
    assert model.components_.shape == (K, L, N)
    assert model.activations_.shape == (T, K)
    norm = np.linalg.norm(case.X)
    loss = reference.relative_loss(case.X, W, H, case.lengths) if norm else 0.0
    np.testing.assert_allclose(model.loss_, loss, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.reconstruction_err_, loss * norm, rtol=1e-4, atol=1e-5)
    expected = reference.objective(case.X, W, H, case.lengths, **case.penalties)
    np.testing.assert_allclose(model.history_.objective[-1], expected, rtol=1e-6, atol=1e-9)
    if loss > 1e-12:  # the slopes of a perfect fit are rounding
        residual = max(reference.kkt_residual(case.X, W, H, *case.arguments, **case.penalties))
        np.testing.assert_allclose(model.kkt_residual_, residual, rtol=1e-3, atol=1e-6)
    norms = np.linalg.norm(model.components_, axis=(1, 2))
    assert np.all(np.isclose(norms, 1) | (norms == 0))
    shares = reference.power_shares(case.X, W, H, case.lengths) if norm else np.zeros(K)
    assert np.all(np.diff(shares) <= 1e-9)
    assert not model.activations_[~reference.allowed(T, L, *case.arguments)].any()


@settings(max_examples=40)
@given(case=cases(max_length=8))
def test_transform_is_the_exact_convex_solution(case: Case):
    K, L = case.W.shape[2], case.W.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(
            case.X,
            K,
            L,
            lengths=case.lengths,
            boundary=case.boundary,
            tol=1e-6,
            max_iter=20,
            **case.penalties,
        )
        new = np.random.default_rng(1).random(case.X.shape)
        activations = model.transform(new, lengths=case.lengths)
    W, _ = to_reference(model)
    H = activations / np.where(model.scales_ > 0, model.scales_, 1)
    exact = reference.solve_H(new, W, *case.arguments, **case.penalties)
    ours = reference.objective(new, W, H, case.lengths, **case.penalties)
    best = reference.objective(new, W, exact, case.lengths, **case.penalties)
    assert ours <= best * (1 + 1e-6) + 1e-9


def test_transform_against_scipy_nnls(X):
    model = fitted(X, tol=1e-7, max_iter=5000)
    new = np.random.default_rng(3).random((40, 6))
    W = model.components_.transpose(2, 1, 0)
    design = reference.h_design(W, [40])
    expected = nnls(design, new.ravel())[0].reshape(40, 2)
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-6)
    residual = np.linalg.norm(new.ravel() - design @ expected.ravel())
    np.testing.assert_allclose(model.score(new), -residual / np.linalg.norm(new), rtol=1e-9)


@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.parametrize("penalties", PENALTIES[:2], ids=["plain", "penalised"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_transform_agrees_with_fit_then_transform(X, solver, acceleration, penalties, dtype):
    X = X.astype(dtype)
    model = CNMF(2, 4, solver=solver, acceleration=acceleration, random_state=0, **penalties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        together = clone(model).fit_transform(X)
        apart = model.fit(X).transform(X)
    assert together.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(together, apart, atol=tolerance * apart.max())
    if acceleration == "auto":
        np.testing.assert_allclose(model.activations_, apart, atol=tolerance * apart.max())


@pytest.mark.parametrize("penalties", PENALTIES[:2], ids=["plain", "penalised"])
def test_single_and_double_precision_agree(X, penalties):
    double = fitted(X, tol=1e-5, **penalties)
    single = fitted(X.astype(np.float32), tol=1e-5, **penalties)
    assert single.components_.dtype == single.activations_.dtype == np.float32
    np.testing.assert_allclose(single.loss_, double.loss_, rtol=1e-4)
    np.testing.assert_allclose(single.components_, double.components_, atol=2e-2)


def test_threads_change_nothing(X):
    models = [fitted(np.tile(X, (30, 1)), n_jobs=n, max_iter=20, tol=0) for n in (1, 2, None)]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].components_, other.components_)
        np.testing.assert_array_equal(models[0].activations_, other.activations_)


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_one_lag_is_nmf(solver):
    """Within 1 % of scikit-learn's NMF, best of several starts."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 4)) @ rng.random((4, 12)) + 0.2 * rng.random((80, 12))
    rivals = [
        NMF(4, init="random", random_state=seed, tol=1e-4, max_iter=5000).fit(X)
        for seed in range(5)
    ]
    best = min(rival.reconstruction_err_ for rival in rivals)
    ours = fitted(X, 4, 1, solver=solver, n_init=5, tol=1e-5, max_iter=2000)
    assert ours.reconstruction_err_ <= 1.01 * best
    W, H = to_reference(ours)
    np.testing.assert_allclose(H @ W[:, 0].T, ours.inverse_transform(ours.activations_))


def test_inverse_transform_and_components(X):
    model = fitted(X)
    W, H = to_reference(model)
    X_hat = model.inverse_transform(model.activations_)
    np.testing.assert_allclose(X_hat, reference.reconstruct(W, H, [120]), atol=1e-12)
    parts = list(model.reconstruct_components())
    assert len(parts) == 2
    np.testing.assert_allclose(sum(parts), X_hat, atol=1e-12)
    np.testing.assert_allclose(
        list(model.reconstruct_components(model.activations_[:30], lengths=[10, 20])),
        [reference.reconstruct(W[:, :, [k]], H[:30, [k]], [10, 20]) for k in range(2)],
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="one column per component: 2, not 3"):
        model.inverse_transform(np.zeros((5, 3)))


def test_the_three_ways_to_give_segments_agree(X):
    ids = np.repeat(["a", "b", "c"], [50, 40, 30])
    by_lengths = fitted(X, lengths=[50, 40, 30])
    by_list = fitted([X[:50], X[50:90], X[90:]])
    by_ids = fitted(X, segments=ids)
    one = fitted(X)
    for other in (by_list, by_ids):
        np.testing.assert_array_equal(by_lengths.components_, other.components_)
        np.testing.assert_array_equal(by_lengths.activations_, other.activations_)
    assert not np.array_equal(by_lengths.components_, one.components_)
    for method in ("transform", "score"):
        expected = getattr(by_lengths, method)(X, lengths=[50, 40, 30])
        np.testing.assert_array_equal(getattr(by_lengths, method)(X, segments=ids), expected)
        as_list = getattr(by_lengths, method)([X[:50], X[50:90], X[90:]])
        np.testing.assert_array_equal(as_list, expected)
    H = by_lengths.activations_
    np.testing.assert_array_equal(
        by_lengths.inverse_transform(H, segments=ids),
        by_lengths.inverse_transform([H[:50], H[50:90], H[90:]]),
    )


def test_motifs_never_reach_across_segments():
    """A segment's activations do not depend on what follows it."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((length, 5)) for length in (30, 47, 21))
    model = fitted([a, b], tol=1e-6)
    first = model.transform([a, b])[:30]
    second = model.transform([a, c])[:30]
    np.testing.assert_allclose(first, second, atol=1e-4)
    joined = model.transform(np.vstack([a, c]))[:30]
    assert np.abs(joined - first).max() > 1e-2


def test_given_starts(X):
    rng = np.random.default_rng(0)
    W0, H0 = rng.random((2, 4, 6)), rng.random((120, 2))
    published = {"acceleration": None, "max_iter": 1, "tol": 0, "normalize": False}
    model = CNMF(2, 4, **published).fit(X, components_init=W0, activations_init=H0)
    W, H = reference.hals_step(X, W0.transpose(2, 1, 0), H0)
    np.testing.assert_allclose(model.components_, W.transpose(2, 1, 0), atol=1e-12)
    np.testing.assert_allclose(model.activations_, H, atol=1e-12)
    one = CNMF(2, 4, random_state=0, **published).fit(X, components_init=W0)
    np.testing.assert_allclose(
        one.history_.loss[0],
        reference.relative_loss(X, W0.transpose(2, 1, 0), _best_scaled_random_H(X, W0)),
    )


def _best_scaled_random_H(X, W0):
    """The documented start: what is drawn is uniform, scaled by least squares."""
    seed = np.random.RandomState(0).randint(2**31 - 1, size=1)[0]
    rng = np.random.default_rng(seed)
    rng.random((6, 4, 2))
    H = rng.random((120, 2))
    X_hat = reference.reconstruct(W0.transpose(2, 1, 0), H, [120])
    return H * np.sum(X * X_hat) / np.sum(X_hat**2)


def test_given_motifs_keep_their_order(X):
    first = fitted(X)
    W0, H0 = first.components_[::-1], first.activations_[:, ::-1]
    model = CNMF(2, 4).fit(X, components_init=W0, activations_init=H0)
    similarity = np.einsum("klf,klf->k", model.components_, W0)
    assert similarity.min() > 0.99


def test_normalize_false_leaves_the_factors_alone(X):
    raw = fitted(X, normalize=False)
    unit = fitted(X)
    np.testing.assert_array_equal(raw.scales_, 1)
    np.testing.assert_allclose(
        raw.inverse_transform(raw.activations_), unit.inverse_transform(unit.activations_)
    )
    norms = np.linalg.norm(raw.components_, axis=(1, 2))
    np.testing.assert_allclose(np.sort(norms), np.sort(unit.scales_))


@pytest.mark.parametrize("normalize", [True, False])
def test_penalties_keep_their_meaning_after_normalisation(X, normalize):
    penalties = {"l1_W": 0.1, "l2_W": 0.1, "l1_H": 1.0, "l2_H": 0.5}
    model = fitted(X, normalize=normalize, tol=1e-6, max_iter=3000, **penalties)
    activations = model.transform(X)
    np.testing.assert_allclose(activations, model.activations_, atol=1e-8)
    W, H = to_reference(model)
    assert reference.kkt_residual(X, W, H, **penalties)[1] < 1e-6


def test_penalties_do_what_they_are_for(X):
    plain = fitted(X)
    sparse = fitted(X, l1_H=0.5, l2_W=0.5)
    assert np.mean(sparse.activations_ > 0) < np.mean(plain.activations_ > 0)


def test_a_one_sided_penalty_warns_with_the_remedy(X):
    with pytest.warns(UserWarning, match=r"activations \(H\) alone is ill-posed.*l2_W"):
        CNMF(2, 4, l1_H=0.1, random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"motifs \(W\) alone is ill-posed.*l2_H"):
        CNMF(2, 4, l2_W=0.1, random_state=0).fit(X)


def test_warm_start_goes_on(X):
    model = fitted(X, warm_start=True, max_iter=5, tol=1e-8)
    before = model.loss_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    np.testing.assert_allclose(model.history_.loss[0], before, rtol=1e-6)
    assert model.loss_ < before
    model.set_params(n_lags=5)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X)


@pytest.mark.parametrize(
    ("name", "value", "was"),
    [("n_components", 3, "2"), ("n_lags", 5, "4"), ("background", True, "False")],
)
def test_sizes_that_are_not_those_of_the_fit_any_more(X, name, value, was):
    model = fitted(X).set_params(**{name: value})
    for call in (model.transform, model.score):
        with pytest.raises(ValueError, match=f"{name} is {value} now, and was {was} in the fit"):
            call(X)
    model.fit(X).transform(X)


def test_repeatable_and_refitted_afresh(X):
    one, two = fitted(X), fitted(X)
    np.testing.assert_array_equal(one.components_, two.components_)
    again = one.fit(X)
    np.testing.assert_array_equal(again.components_, two.components_)
    other = CNMF(2, 4, random_state=1).fit(X)
    assert not np.array_equal(one.components_, other.components_)


def test_pickle_and_clone(X):
    model = fitted(X)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.transform(X), model.transform(X))
    assert clone(model).get_params() == model.get_params()


def test_an_unfitted_model_says_so(X):
    for call in (
        lambda m: m.transform(X),
        lambda m: m.inverse_transform(X),
        lambda m: m.reconstruct_components(),
        lambda m: m.score(X),
        lambda m: m.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError):
            call(CNMF(2, 4))


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_given_motifs_alone_are_where_the_fit_starts(solver):
    """The activations that go with them are found first: a random H would undo them."""
    data = make_sequences(800, 30, 3, 10, noise=0.05, random_state=1)
    model = CNMF(3, 10, solver=solver, random_state=0).fit(data.X, components_init=data.components)
    best = CNMF(3, 10, solver=solver, random_state=0).fit(
        data.X, components_init=data.components, activations_init=data.activations
    )
    assert model.loss_ <= 1.02 * best.loss_
    assert model.history_.loss[0] < 0.3


def test_mu_starts_from_activations_it_can_change():
    """It cannot leave zero, so that sparse activations would stay as they are."""
    data = make_sequences(300, 12, 2, 5, random_state=0)
    seen = []
    model = CNMF(2, 5, solver="mu", random_state=0, max_iter=1, tol=0)
    model.set_params(callback=lambda state: seen.append(state.activations.copy()))
    model.fit(data.X, components_init=data.components)
    assert np.all(seen[0][:-5] > 0)
