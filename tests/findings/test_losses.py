"""What follows from a fit goes by the loss of the fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF, explained_power
from motifold.findings import find_consensus, sequenciness
from motifold.findings.choices import find_crossover
from motifold.findings.curves import find_holdout_curve, losses_of
from motifold.findings.decomposition import Contributions, Decomposition
from motifold.findings.facts import Facts
from motifold.findings.overlap import activations_of
from motifold.findings.splits import BlockTimeSeriesSplit, mark_junctions, observed_entries
from motifold.findings.table import Table
from motifold.findings.trial import Settings, SweepData, fold_error, run_trials
from motifold.io import Recording
from motifold.model.losses import Loss, loss_of

KL = "kullback-leibler"
T, N, L = 400, 12, 5


def counts(seed: int = 0, K: int = 2) -> np.ndarray:
    """Counts of K planted sequences, and a few spikes besides."""
    rng = np.random.default_rng(seed)
    W = np.zeros((N, L, K))
    for n in range(N):
        W[n, rng.integers(L), n % K] = 3.0
    H = (rng.random((T, K)) < 0.04).astype(float)
    return rng.poisson(reference.reconstruct(W, H) + 0.02).astype(float)


X = counts()


def fitted(data=X, beta_loss=KL, K=2, **settings) -> CNMF:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(K, L, beta_loss=beta_loss, random_state=0, **settings).fit(data)


@pytest.fixture(scope="module")
def model() -> CNMF:
    return fitted(n_init=3)


# --- the divergence of some entries ---------------------------------------------------------------


@pytest.mark.parametrize("beta", [-0.5, 0, 0.5, 1, 1.5, 2, 3])
def test_divergence_is_the_oracles(beta):
    rng = np.random.default_rng(0)
    x, y = rng.poisson(1.0, (30, 4)) + (0.1 if beta <= 0 else 0.0), rng.random((30, 4)) + 0.01
    expected = reference.beta_divergence(x, y, beta).sum()
    assert Loss(beta).divergence(x, y) == pytest.approx(expected, rel=1e-12)
    assert Loss(beta).divergence(x[x > 0], x[x > 0]) == pytest.approx(0, abs=1e-12)


def test_divergence_at_zero():
    zero, one = np.zeros(1), np.ones(1)
    for beta in (0.5, 1, 1.5, 3):
        assert Loss(beta).divergence(zero, zero) == 0
    assert Loss(1).divergence(one, zero) == Loss(0.5).divergence(one, zero) == np.inf
    assert np.isfinite(Loss(1.5).divergence(one, zero))


def test_words_and_shares():
    assert loss_of("frobenius").explained(0.5) == 0.75
    assert loss_of(KL).explained(0.5) == 0.5
    assert [loss_of(name).explains for name in ("frobenius", KL)] == ["power", "deviance"]
    titles = [loss_of(name).title for name in (2, 1, 0, 0.5)]
    assert titles == ["squared error", "Kullback-Leibler", "Itakura-Saito", "β = 0.5"]


# --- activations ----------------------------------------------------------------------------------


def test_activations_are_those_of_transform(model):
    mask = np.random.default_rng(1).random(X.shape) < 0.9
    for options in ({}, {"mask": mask}, {"lengths": [250, 150]}):
        found = activations_of(X, model.components_, model, scales=model.scales_, **options)
        np.testing.assert_array_equal(found, model.transform(X, **options))
    squared = clone(model).set_params(beta_loss="frobenius")
    other = activations_of(X, model.components_, squared, scales=model.scales_)
    assert np.abs(other - model.transform(X)).max() > 0.1


def test_a_consensus_goes_on_by_the_loss():
    fits = [fitted(max_iter=60).set_params(random_state=seed).fit(X) for seed in (0, 1)]
    final = find_consensus(fits, min_similarity=0.3).fit(X, fits[0])
    assert final.beta_loss == KL
    assert final.history_.objective[0] < 1.5 * final.history_.objective[-1], "it began far away"


# --- a recording taken apart ----------------------------------------------------------------------


def test_the_loss_of_a_recording_taken_apart(model):
    fit = Decomposition.of(model, X)
    assert fit.measured.loss == pytest.approx(model.loss_, rel=1e-6)
    assert fit.measured.explained == pytest.approx(1 - model.loss_, rel=1e-6)
    assert fit.measured.shares.sum() == pytest.approx(1 - model.loss_, rel=1e-6)
    assert (fit.measured.shares > 0).all()
    np.testing.assert_array_equal(fit.power.shares, explained_power(model, X, model.activations_))
    found = Contributions(fit)
    found.block(0, 150)
    found.block(150, T)
    np.testing.assert_allclose(found.shares, fit.measured.shares)
    assert found.explained == pytest.approx(fit.measured.explained)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_masks_and_dtypes(dtype, model):
    data = X.astype(dtype)
    mask = np.random.default_rng(1).random(X.shape) < 0.9 if dtype is np.float32 else None
    other = clone(model).set_params(n_init=1, max_iter=20, tol=0).fit(data, mask=mask)
    shown = data if mask is None else np.where(mask, data, np.nan)
    assert Decomposition.of(other, shown).measured.loss == pytest.approx(other.loss_, rel=1e-4)


def test_facts(model):
    facts = Facts.gather(model, Recording(X, "counts"))
    assert facts.is_training
    assert facts.loss == pytest.approx(model.loss_, rel=1e-6)
    assert facts.explained == pytest.approx(1 - model.loss_, rel=1e-6)
    assert facts.shares.sum() == pytest.approx(facts.explained)
    assert facts.overlaps is None
    new = Facts.gather(model, Recording(counts(3), "others"))
    assert not new.is_training
    assert -new.loss == pytest.approx(model.score(counts(3)), rel=1e-6)


def test_silence():
    zeros = np.zeros((300, 4))
    facts = Facts.gather(CNMF(2, 3, beta_loss=KL, random_state=0).fit(zeros), Recording(zeros, "-"))
    assert facts.is_training
    assert (facts.loss, facts.explained) == (0, 1)


def test_sequenciness_is_of_the_deviance():
    found = sequenciness(CNMF(2, L, beta_loss=KL, tol=1e-2), X, n_shuffles=1, random_state=0)
    seed = int(np.random.default_rng(0).integers(2**31 - 1))
    same = CNMF(2, L, beta_loss=KL, tol=1e-2, random_state=seed).fit(X)
    assert found.explained == pytest.approx(1 - same.loss_)
    assert found.score > 0.3


# --- the sweep ------------------------------------------------------------------------------------


def held_out_deviance(x, predicted, means) -> float:
    predicted = np.maximum(predicted, 0.01 * means)
    return (
        reference.beta_divergence(x, predicted, 1).sum()
        / reference.beta_divergence(x, means, 1).sum()
    )


def test_error_of_held_out_entries():
    data = SweepData.from_arrays([X])
    parameters = {"n_components": 2, "n_lags": L, "beta_loss": KL, "max_iter": 30, "tol": 0.0}
    (run,) = run_trials(data, parameters, [1], Settings("entries", 4, 0, 0.05))
    train, _ = list(BlockTimeSeriesSplit(4, gap=L).split(X))[1]
    shown = observed_entries((len(train), N), 0.1, np.random.default_rng([1, 4]))
    copy = CNMF(**parameters, random_state=1)
    segments = mark_junctions(train)
    copy.fit(X[train], segments=segments, mask=shown)
    X_hat = copy.inverse_transform(copy.activations_, segments=segments)
    means = np.nanmean(np.where(shown, X[train], np.nan), axis=0)
    everywhere = np.broadcast_to(means, shown.shape)
    expected = held_out_deviance(X[train][~shown], X_hat[~shown], everywhere[~shown])
    assert run.measures["test_error"] == pytest.approx(expected, rel=1e-6)
    assert run.measures["train_loss"] == pytest.approx(copy.loss_)
    assert run.measures["loss"] == pytest.approx(CNMF(**parameters, random_state=1).fit(X).loss_)
    explained = 1 - run.measures["loss"]
    assert sum(motif["share"] for motif in run.motifs) == pytest.approx(explained, rel=1e-6)


def test_true_motifs_predict_a_block_and_others_do_not(model):
    _, test = list(BlockTimeSeriesSplit(4, gap=L).split(X))[1]
    means = X.mean(axis=0)

    def error(motifs, beta_loss=KL):
        other = CNMF(2, L, beta_loss=beta_loss)
        other.components_, other.scales_ = motifs, model.scales_
        return fold_error(other, SweepData.from_arrays([X]), test, np.random.default_rng(0), means)

    right, wrong = error(model.components_), error(np.roll(model.components_, 1, axis=2))
    assert right < 0.8
    assert wrong > 1
    assert error(model.components_, "frobenius") != right


def test_a_feature_that_is_silent_in_training_does_not_make_it_infinite():
    data = X.copy()
    data[:, 3] = 0
    data[T // 4 + 20, 3] = 4.0  # in the second block alone
    for test in ("blocks", "entries"):
        (run,) = run_trials(
            SweepData.from_arrays([data]),
            {"n_components": 2, "n_lags": L, "beta_loss": KL, "max_iter": 5, "tol": 0.0},
            [1],
            Settings(test, 4, 0, 0.05),
        )
        assert np.isfinite(run.measures["test_error"])


def test_a_sweep_by_its_loss():
    found = motifold.sweep(
        X,
        n_components=[1, 2, 3],
        n_lags=L,
        beta_loss=KL,
        n_seeds=4,
        n_null=0,
        tol=1e-2,
        n_jobs=1,
        progress=False,
    )
    assert set(found.table["beta_loss"]) == {KL}
    assert losses_of(found.table) == {Loss(1.0)}
    assert found.suggested == {"n_components": 2}
    assert find_holdout_curve(found.table).mean.min() < 0.8


def test_errors_by_several_losses_are_not_compared():
    records = [
        {"n_components": k, "beta_loss": beta, "block": 0, "train_loss": 0.5, "test_error": 0.5}
        for k in (1, 2)
        for beta in (KL, 0.5)
    ]
    assert find_holdout_curve(Table(records)) is None
    assert find_holdout_curve(Table(records[::2])) is not None


def test_the_crossover_is_of_what_is_left_of_the_deviance():
    losses = np.array([0.2, 0.3, 0.8])
    records = [
        {"x_ortho": w, "loss": loss, "x_ortho_cost": cost, "beta_loss": KL}
        for w, loss, cost in zip((0.01, 0.1, 1.0), losses, (1.0, 0.5, 0.0), strict=True)
    ]
    np.testing.assert_allclose(find_crossover(Table(records)).reconstruction, (losses - 0.2) / 0.6)
    for record in records:
        del record["beta_loss"]
    squares = losses**2
    np.testing.assert_allclose(
        find_crossover(Table(records)).reconstruction, (squares - 0.04) / 0.6, atol=1e-12
    )


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_a_background_belongs_to_what_is_explained(beta_loss):
    """Loss, held-out error and parts are those with the constants, as the model's own are."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (300, 8)).astype(float)
    model = CNMF(1, 4, beta_loss=beta_loss, background=True, random_state=0, max_iter=30, tol=0)
    model.fit(X)
    fit = Decomposition.of(model, X)
    assert fit.measured.loss == pytest.approx(model.loss_, rel=1e-6)
    whole = fit.part(0, 10, 50) + model.background_
    np.testing.assert_allclose(whole, fit.rows(10, 50), rtol=1e-9)
    together = fit.measured.shares.sum() + fit.measured.background
    assert together == pytest.approx(fit.measured.explained, rel=1e-6)
    grid = {"n_lags": 4, "n_seeds": 1, "n_null": 0, "n_jobs": 1, "progress": False}
    settings = {"beta_loss": beta_loss, "max_iter": 30, "tol": 0, "test": "blocks"}
    errors = {
        background: motifold.sweep(X, n_components=1, background=background, **grid, **settings)
        for background in (False, True)
    }
    with_it, without = (errors[b].table["test_error"][0] for b in (True, False))
    assert with_it <= without * 1.02  # constants are all there is to know of this recording
