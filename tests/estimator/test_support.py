"""``activation_support``: no motif starts where it may not, whatever the solver."""

from __future__ import annotations

import numpy as np
import pytest
from reference import solve_H

from motifold import ANLS, CNMF, HALS, fit_with_checkpoint
from motifold.datasets import make_sequences

K, L, N = 3, 4, 6


def data(T=60, dtype=np.float64):
    return make_sequences(T, N, K, L, noise=0.2, random_state=0).X.astype(dtype)


def support_of(T, share=0.4, seed=1):
    return np.random.default_rng(seed).random((T, K)) < share


SOLVERS = ["hals", HALS("blocks"), HALS("tiles"), "anls", ANLS(h_passes="exact"), "mu"]


@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("background", [False, True])
def test_nothing_starts_where_it_may_not(solver, acceleration, background):
    X, support = data(), support_of(60)
    options = {"solver": solver, "acceleration": acceleration, "background": background}
    seen = []

    def callback(state):
        seen.append(np.asarray(state.activations)[:, :K][~support].any())
        return False

    model = CNMF(K, L, max_iter=40, tol=0, random_state=0, callback=callback, **options)
    model.fit(X, activation_support=support)
    assert not model.activations_[~support].any()
    assert model.activations_[support].any()
    assert len(seen) >= 40
    assert not any(seen)


@pytest.mark.parametrize("loss", ["kullback-leibler", "itakura-saito", 1.5])
@pytest.mark.parametrize("background", [False, True])
def test_other_losses(loss, background):
    X, support = data() + 0.01, support_of(60)
    model = CNMF(K, L, beta_loss=loss, background=background, max_iter=60, tol=0, random_state=0)
    H = model.fit_transform(X, activation_support=support)
    for found in (H, model.activations_, model.transform(X, activation_support=support)):
        assert not found[~support].any()
        assert found[support].any()
    assert np.all(np.diff(model.history_.objective) <= 1e-9 * model.history_.objective[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("masked", [False, True])
def test_transform_is_the_best_there_is(dtype, masked):
    """Against the dense problem over the entries that are allowed."""
    X, support = data(40, dtype), support_of(40)
    model = CNMF(K, L, tol=1e-3 if masked else 1e-6, random_state=0).fit(data(200))
    mask = None
    if masked:
        mask = np.ones(X.shape, bool)
        mask[10:14] = False
    found = model.transform(X, mask=mask, activation_support=support)
    assert not found[~support].any()
    if masked:
        other = model.transform(np.where(mask, X, 9), mask=mask, activation_support=support)
        np.testing.assert_array_equal(found, other)
        return
    W = model.components_.transpose(2, 1, 0)
    expected = solve_H(X.astype(float), W, support=support)
    np.testing.assert_allclose(found, expected, atol=2e-3 * expected.max())


def test_segments_penalties_and_the_boundary():
    X, support = data(60), support_of(60)
    parts, supports = [X[:25], X[25:]], [support[:25], support[25:]]
    options = {"x_ortho": 1e-3, "l1_H": 1e-3, "l2_W": 1e-3, "ortho_H": 1e-3, "boundary": "valid"}
    models = [
        CNMF(K, L, random_state=0, max_iter=30, tol=0, center=True, **options).fit(X, **given)
        for X, given in [
            (parts, {"activation_support": supports}),
            (X, {"activation_support": support, "lengths": [25, 35]}),
        ]
    ]
    np.testing.assert_array_equal(models[0].activations_, models[1].activations_)
    assert not models[0].activations_[~support].any()


def test_a_long_recording_many_starts_and_a_start_of_ones_own():
    """The start on a part, revived motifs, given activations that are not zero there."""
    X, support = data(6000), support_of(6000, 0.1)
    model = CNMF(K, L, n_init=3, random_state=0, tol=1e-2).fit(X, activation_support=support)
    assert not model.activations_[~support].any()
    given = CNMF(K, L, random_state=0, tol=1e-2).fit(
        X, activations_init=np.ones((6000, K)), activation_support=support
    )
    assert not given.activations_[~support].any()


def test_a_score_names_the_motifs():
    """Columns of the score are columns of the result, however much each explains."""
    made = make_sequences(400, 20, K, 8, random_state=3)
    support = made.activations > 0
    for order in ([0, 1, 2], [2, 0, 1]):
        model = CNMF(K, 8, random_state=0).fit(made.X, activation_support=support[:, order])
        for column, k in enumerate(order):
            found = model.activations_[:, column]
            assert np.corrcoef(found, made.activations[:, k])[0, 1] > 0.9
    given = support[:, order]
    assert not model.transform(made.X, activation_support=given)[~given].any()


def test_what_is_no_support():
    X = data()
    for support, told in [
        (np.ones((59, K)), "n_samples"),
        (np.ones((60, K + 1)), "n_components"),
        (np.full((60, K), 0.5), "True"),
        (np.zeros((60, K)), "False everywhere"),
        ([np.ones((30, K)), np.ones((30, K))], "segments have"),
    ]:
        with pytest.raises(ValueError, match=told):
            CNMF(K, L).fit(X, activation_support=support)


def test_a_checkpoint_knows_its_support(tmp_path):
    X, support = data(), support_of(60)

    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    path = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(
            CNMF(K, L, random_state=0, callback=interrupt), X, path, activation_support=support
        )
    with pytest.raises(ValueError, match="activation_support differs"):
        fit_with_checkpoint(CNMF(K, L, random_state=0), X, path)
    model = fit_with_checkpoint(CNMF(K, L, random_state=0), X, path, activation_support=support)
    whole = CNMF(K, L, random_state=0).fit(X, activation_support=support)
    np.testing.assert_array_equal(model.activations_, whole.activations_)
