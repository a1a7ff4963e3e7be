"""``beta_loss`` on the public face: every parameter and method with a loss by ratios."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import reference
from cases import make_case
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from motifold import ANLS, CNMF, HALS, MU
from motifold.findings import BlockTimeSeriesSplit

KL = "kullback-leibler"
BETAS = [0, 0.5, 1, 1.5, 3]


def counts(T: int = 150, N: int = 6, seed: int = 0) -> np.ndarray:
    """Poisson counts of two planted motifs of four lags and a little noise."""
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(0.5, size=(N, 4, 2)), 2 * (rng.random((T, 2)) < 0.1)
    return rng.poisson(reference.reconstruct(W, H) + 0.05).astype(float)


X = counts()
POSITIVE = X + 0.1


def fitted(data=X, beta_loss=KL, K=2, L=4, **settings) -> CNMF:
    names = ("lengths", "segments", "mask", "components_init", "activations_init")
    arguments = {name: settings.pop(name) for name in names if name in settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings(
            "ignore", "All motifs are empty" if "components_init" in arguments else "-"
        )
        model = CNMF(K, L, beta_loss=beta_loss, **{"random_state": 0, **settings})
        return model.fit(data, **arguments)


def factors(model: CNMF) -> tuple[np.ndarray, np.ndarray]:
    """W (N, L, K) and H of the reference, in the scale of the fit."""
    scales = np.where(model.scales_ > 0, model.scales_, 1)
    return model.components_.transpose(2, 1, 0) * model.scales_, model.activations_ / scales


def divergence(data, model: CNMF, H=None, observed=True, lengths=None) -> float:
    """D(X | X̂) by the oracle, with the engine's floor."""
    W = model.components_.transpose(2, 1, 0)
    fit = reference.reconstruct(W, model.activations_ if H is None else H, lengths)
    observed = np.broadcast_to(observed, data.shape)
    floor = np.finfo(data.dtype).eps * np.where(observed, data, 0).mean()
    beta = {"kullback-leibler": 1, "itakura-saito": 0, "frobenius": 2}
    beta = beta.get(model.beta_loss, model.beta_loss)
    return reference.beta_divergence(data[observed], fit[observed] + floor, beta).sum()


# --- what is told -------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
def test_attributes_by_their_definitions(beta):
    """``loss_`` is D over that of the means, ``reconstruction_err_`` √(2D), J is D."""
    model = fitted(POSITIVE, beta, max_iter=20)
    D = divergence(POSITIVE, model)
    of_means = reference.beta_divergence(POSITIVE, POSITIVE.mean(axis=0), beta).sum()
    assert model.loss_ == pytest.approx(D / of_means, rel=1e-5)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * D), rel=1e-5)
    assert model.history_.objective[-1] == pytest.approx(D, rel=1e-5)
    assert model.history_.loss[-1] == model.loss_
    assert np.all(np.diff(model.history_.objective) <= 0)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=(1, 2)), 1, rtol=1e-6)
    made = [part.sum() for part in model.reconstruct_components()]
    assert made[0] >= made[1], "components come in the order of what they make of X̂"


@pytest.mark.parametrize(
    ("name", "beta"), [("frobenius", 2), ("kullback-leibler", 1), ("itakura-saito", 0)]
)
def test_a_name_is_its_number(name, beta):
    one, other = (fitted(POSITIVE, given, max_iter=5, tol=0) for given in (name, float(beta)))
    np.testing.assert_array_equal(one.components_, other.components_)
    assert one.loss_ == other.loss_


def test_the_loss_is_that_of_the_name():
    """Each fit is the best by its own loss."""
    models = {beta: fitted(POSITIVE, beta, n_init=3) for beta in (0, 1, 2)}
    for beta in models:
        by_this = {
            other: reference.beta_divergence(
                POSITIVE, np.maximum(model.inverse_transform(model.activations_), 1e-12), beta
            ).sum()
            for other, model in models.items()
        }
        assert min(by_this, key=by_this.get) == beta


@pytest.mark.parametrize(
    "beta_loss",
    ["poisson", np.nan, np.inf, None, True, "1", 1e200, -21, 5e-324, 1e-15, 1 - 1e-12, 10**400],
)
def test_no_such_loss(beta_loss):
    with pytest.raises((ValueError, TypeError), match="beta_loss"):
        CNMF(2, 4, beta_loss=beta_loss).fit(X)


@pytest.mark.parametrize("solver", ["hals", "anls", HALS(), ANLS()])
def test_solvers_that_need_grams_are_refused_by_name(solver):
    with pytest.raises(ValueError, match=r'is for squared error.*kullback-leibler.*solver="mu"'):
        CNMF(2, 4, solver=solver, beta_loss=KL).fit(X)


def test_auto_is_the_solver_of_the_loss():
    for beta_loss, solver in (("frobenius", "hals"), (KL, "mu"), (KL, MU())):
        auto = fitted(beta_loss=beta_loss, max_iter=5, tol=0)
        named = fitted(beta_loss=beta_loss, solver=solver, max_iter=5, tol=0)
        np.testing.assert_array_equal(auto.components_, named.components_)


@pytest.mark.parametrize("name", ["ortho_H", "ortho_W"])
def test_penalties_for_squared_error_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is for squared error.*x_ortho"):
        CNMF(2, 4, beta_loss=KL, **{name: 0.1}).fit(X)


# --- zeros --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", ["itakura-saito", 0.0, -0.5])
def test_zeros_are_refused_with_their_place(beta):
    data = POSITIVE.copy()
    data[17, 3] = 0
    with pytest.raises(ValueError, match=r"needs X > 0: .*row 17, column 3\. Set a floor"):
        CNMF(2, 4, beta_loss=beta).fit(data)
    mask = np.ones(data.shape, bool)
    mask[17, 3] = False  # what is hidden does not count
    assert np.isfinite(fitted(data, beta, mask=mask, max_iter=3, tol=0).loss_)
    model = fitted(POSITIVE, beta, max_iter=3, tol=0)
    with pytest.raises(ValueError, match="row 17, column 3"):
        model.transform(data)


@pytest.mark.parametrize("beta", [0.5, 1, 1.5, 3])
def test_a_fit_of_zero_where_there_is_data(beta):
    """X̂ = 0 < X: a motif that is nowhere, or without the feature that fires."""
    for W, H in (
        (np.zeros((2, 4, 6)), np.ones((150, 2))),
        (np.ones((2, 4, 6)), np.zeros((150, 2))),
        (np.ones((2, 4, 6)) * (np.arange(6) > 0), np.ones((150, 2))),
    ):
        model = fitted(beta_loss=beta, components_init=W, activations_init=H, max_iter=5, tol=0)
        for found in (model.loss_, model.history_.objective, model.components_, model.activations_):
            assert np.all(np.isfinite(found))
        assert np.isfinite(model.score(X))


@pytest.mark.parametrize("beta", [0.5, 1, 1.5, 3])
@pytest.mark.parametrize("acceleration", ["auto", None])
def test_nothing_and_one_spike(beta, acceleration):
    nothing, spike = np.zeros((40, 3)), np.zeros((40, 3))
    spike[20, 1] = 5
    model = fitted(nothing, beta, acceleration=acceleration)
    assert model.loss_ == 0
    assert not model.inverse_transform(model.activations_).any()
    assert not model.transform(nothing).any()
    assert model.score(nothing) == 0
    model = fitted(spike, beta, acceleration=acceleration)
    assert model.loss_ < 0.05
    fit = model.inverse_transform(model.activations_)
    assert fit[20, 1] == pytest.approx(5, rel=0.1)
    assert np.all(np.isfinite(model.transform(spike)))


@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.5, 3])
@pytest.mark.parametrize("value", [1.0, 0.1, 3.7])
def test_a_constant_recording_is_no_matter_of_rounding(beta, value):
    """The means explain all of it: whatever is left over is infinitely more."""
    constant = np.full((60, 4), value)
    model = fitted(constant, beta)
    assert model.loss_ == np.inf
    assert model.reconstruction_err_ < 0.02 * value ** (beta / 2)
    assert model.score(constant) == -np.inf


@pytest.mark.parametrize("factor", [1e-30, 1e-8, 1e8, 1e30])
@pytest.mark.parametrize("beta", [0, 1, 1.5])
def test_the_scale_of_the_data_does_not_matter(factor, beta):
    plain = fitted(POSITIVE, beta, max_iter=10, tol=0)
    scaled = fitted(POSITIVE * factor, beta, max_iter=10, tol=0)
    assert scaled.loss_ == pytest.approx(plain.loss_, rel=1e-6)
    np.testing.assert_allclose(scaled.components_, plain.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        scaled.activations_ / factor, plain.activations_, rtol=1e-3, atol=1e-5
    )
    assert scaled.history_.objective[-1] == pytest.approx(
        divergence(POSITIVE * factor, scaled), rel=1e-5
    )


# --- scikit-learn -------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.5, 3])
def test_one_lag_is_scikit_learns_nmf(beta):
    """The published updates, from the same start, for 50 iterations.

    There H (our motifs) comes after W (our activations), here before: with the roles exchanged,
    NMF of Xᵀ, the order is the same.
    """
    K = 3
    rng = np.random.default_rng(1)
    W, H = rng.random((X.shape[1], K)) + 0.1, rng.random((len(X), K)) + 0.1
    theirs = NMF(K, solver="mu", beta_loss=beta, init="custom", tol=0, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        motifs = theirs.fit_transform(POSITIVE.T, W=W.copy(), H=H.T.copy())
    ours = fitted(
        POSITIVE,
        beta,
        K,
        1,
        acceleration=None,
        max_iter=50,
        tol=0,
        normalize=False,
        components_init=W.T[:, None, :],
        activations_init=H,
    )
    np.testing.assert_allclose(ours.components_[:, 0], motifs.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.activations_, theirs.components_.T, rtol=1e-6, atol=1e-9)
    assert ours.reconstruction_err_ == pytest.approx(theirs.reconstruction_err_, rel=1e-6)


def test_clone_parameters_and_pickle():
    model = fitted(max_iter=5, tol=0)
    copy = clone(model)
    assert copy.get_params()["beta_loss"] == KL
    assert copy.set_params(beta_loss=0.5).beta_loss == 0.5
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert "beta_loss='kullback-leibler'" in repr(model)


def test_grid_search_over_losses():
    cv = BlockTimeSeriesSplit(2, gap=4)
    model = CNMF(2, 4, random_state=0, max_iter=5, tol=0)
    search = GridSearchCV(model, {"beta_loss": ["frobenius", KL, 0.5]}, cv=cv, error_score="raise")
    search.fit(X)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


# --- transform and score ------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1, 1.5])
def test_transform_is_no_worse_than_the_fit(beta):
    model = fitted(POSITIVE, beta, tol=1e-4, max_iter=3000)
    H = model.transform(POSITIVE)
    np.testing.assert_array_equal(H, model.transform(POSITIVE))
    D = divergence(POSITIVE, model)
    assert divergence(POSITIVE, model, H) <= D * (1 + 1e-3)
    # Where the activations are determined they agree.
    fit, found = (model.inverse_transform(h) for h in (model.activations_, H))
    assert np.abs(fit - found).max() <= 0.05 * fit.max()
    assert model.score(POSITIVE) == pytest.approx(-model.loss_, abs=2e-3)
    again = clone(model).set_params(max_iter=5, tol=0)
    np.testing.assert_array_equal(again.fit_transform(POSITIVE), again.transform(POSITIVE))


@pytest.mark.parametrize("beta", [0, 0.5, 3])
def test_transform_where_the_problem_is_not_convex(beta):
    model = fitted(POSITIVE, beta, max_iter=300)
    H = model.transform(POSITIVE)
    np.testing.assert_array_equal(H, model.transform(POSITIVE))
    assert np.all(np.isfinite(H))
    assert model.score(POSITIVE) < 0
    assert model.score(POSITIVE) >= -1.1 * model.loss_


def test_score_uses_the_loss():
    model = fitted()
    other = clone(model).set_params(beta_loss="frobenius").fit(X)
    assert model.score(X) == pytest.approx(-model.loss_, abs=5e-3)
    new = counts(seed=5)
    H = model.transform(new)
    of_means = reference.beta_divergence(new, new.mean(axis=0) + 1e-300, 1).sum()
    assert model.score(new) == pytest.approx(-divergence(new, model, H) / of_means, rel=1e-4)
    assert other.score(X) == pytest.approx(-other.loss_, abs=1e-3)


# --- all that a fit can be given ----------------------------------------------------------------


@pytest.mark.parametrize("beta", [0, 1, 1.5])
@pytest.mark.parametrize("garbage", [np.nan, -1.0, 1e9])
def test_what_is_hidden_does_not_matter(beta, garbage):
    mask = np.random.default_rng(0).random(X.shape) > 0.2
    zero, spoilt = (np.where(mask, POSITIVE, value) for value in (1.0, garbage))
    one, other = (fitted(data, beta, mask=mask, max_iter=10, tol=0) for data in (zero, spoilt))
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(
        one.transform(zero, mask=mask), other.transform(spoilt, mask=mask)
    )
    D = divergence(np.where(mask, POSITIVE, np.nan), one, observed=mask)
    assert one.history_.objective[-1] == pytest.approx(D, rel=1e-5)
    assert one.score(zero, mask=mask) == other.score(spoilt, mask=mask)


def test_segments():
    lengths = [70, 50, 30]
    ids = np.repeat([5, 2, 9], lengths)
    parts = np.split(X, np.cumsum(lengths)[:-1])
    stacked = fitted(lengths=lengths, max_iter=10, tol=0)
    for other in (fitted(segments=ids, max_iter=10, tol=0), fitted(parts, max_iter=10, tol=0)):
        np.testing.assert_array_equal(other.components_, stacked.components_)
    D = divergence(X, stacked, lengths=lengths)
    assert stacked.history_.objective[-1] == pytest.approx(D, rel=1e-5)


def test_boundaries():
    valid = fitted(boundary="valid", lengths=[100, 50])
    for end in (100, 150):
        assert not valid.activations_[end - 3 : end].any()
        assert not valid.transform(X, lengths=[100, 50])[end - 3 : end].any()
    assert fitted(lengths=[100, 50]).activations_[[99, 149]].any()


def test_fixed_motifs_stay():
    W = np.random.default_rng(0).random((3, 4, 6))
    model = fitted(K=3, components_init=W, fixed_components=[0, 2], max_iter=30)
    np.testing.assert_array_equal(model.components_[[0, 2]], W[[0, 2]])
    assert not np.array_equal(model.components_[1], W[1])
    assert np.all(np.diff(model.history_.objective) <= 0)


@pytest.mark.parametrize("beta", [0, 1])
def test_single_and_double_precision_agree(beta):
    double = fitted(POSITIVE, beta, max_iter=30, tol=0)
    single = fitted(POSITIVE.astype(np.float32), beta, max_iter=30, tol=0)
    assert (
        single.components_.dtype == single.transform(X.astype(np.float32) + 1).dtype == np.float32
    )
    assert single.loss_ == pytest.approx(double.loss_, rel=0.02)


def test_threads_change_nothing():
    data = counts(3000, 12)
    one, two = (fitted(data, n_jobs=n, max_iter=6, tol=0) for n in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(data), two.transform(data))


def test_warm_start_goes_on():
    model = fitted(max_iter=5, tol=0, warm_start=True)
    before = model.history_.objective[-1]
    model.fit(X)
    assert model.history_.objective[0] == pytest.approx(before, rel=1e-6)
    assert model.history_.objective[-1] <= before


def test_several_starts_keep_the_best():
    ended = []

    def callback(state):
        ended.append((state.iteration, state.loss))

    best = fitted(n_init=4, max_iter=15, tol=0, callback=callback)
    losses = [loss for iteration, loss in ended if iteration == 15]
    assert len(set(losses)) > 1
    assert best.loss_ == min(losses)


def test_callbacks_see_losses_that_fall():
    seen = []

    def callback(state):
        seen.append((state.loss, state.objective, state.components.shape))
        return len(seen) == 4

    model = fitted(callback=callback)
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 4
    assert [loss for loss, *_ in seen] == sorted((loss for loss, *_ in seen), reverse=True)
    assert seen[-1][0] == model.loss_


def test_limits():
    assert fitted(max_time=1e-9, tol=1e-12).stop_reason_ == "max_time"
    model = fitted(max_iter=2, tol=1e-12)
    assert (model.stop_reason_, model.n_iter_) == ("max_iter", 2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        CNMF(2, 4, beta_loss=KL, random_state=0, max_iter=2).fit(X)


def test_ctrl_c_keeps_the_best():
    def interrupt(state):
        if state.iteration == 6:
            raise KeyboardInterrupt

    model = CNMF(2, 4, beta_loss=KL, random_state=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.stop_reason_ == "interrupted"
    assert model.loss_ < 1
    assert divergence(X, model) == pytest.approx(0.5 * model.reconstruction_err_**2, rel=1e-5)


@pytest.mark.parametrize("beta", [0, 1, 1.5])
def test_centring_never_raises_the_objective(beta):
    model = fitted(POSITIVE, beta, L=8, center=True, max_iter=60)
    assert np.all(np.diff(model.history_.objective) <= 0)


@pytest.mark.parametrize("beta", [0, 1, 3])
def test_a_fit_that_has_converged_is_stationary(beta):
    """No entry can be changed so that J falls by more than a little."""
    case = make_case([30], 4, 2, 3, zeros=0.0, seed=2)
    data = case.X + 0.2
    model = fitted(data, beta, 2, 3, max_iter=5000)
    assert model.converged_, (model.stop_reason_, model.kkt_residual_)
    W, H = factors(model)
    J = reference.beta_objective(data, W, H, beta)
    for factor, step in ((0.999, -1), (1.001, 1)):
        assert reference.beta_objective(data, W * factor, H, beta) >= J * (1 - 1e-6), step
    rng = np.random.default_rng(0)
    for _ in range(20):
        W_near = np.maximum(W + 1e-3 * W.mean() * rng.normal(size=W.shape), 0)
        H_near = np.maximum(H + 1e-3 * H.mean() * rng.normal(size=H.shape), 0)
        assert reference.beta_objective(data, W_near, H_near, beta) >= J * (1 - 1e-4)
