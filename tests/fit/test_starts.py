"""Several starts: every one's final loss, and how many ended alike."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF, fit_with_checkpoint
from motifold.datasets import make_sequences
from motifold.findings import start_agreement
from motifold.fit.starts import agreement_of

X = make_sequences(300, 15, 2, 6, activation_probability=0.05, noise=0.1, random_state=0).X


def test_what_agreement_is():
    found = agreement_of([0.3, 0.3002, 0.32, np.nan, 0.3])
    assert (found.agreeing, found.given_up, found.n_starts) == (3, 1, 5)
    assert found.sentence == "3 of 5 starts agree (1 given up early)."
    assert not found.is_alone
    alone = agreement_of([0.3, 0.32])
    assert alone.is_alone
    assert alone.sentence.startswith("No other of 2 starts agrees with the best one. ")
    alone = agreement_of([0.3, 0.32, np.nan])
    assert alone.sentence.startswith("No other of 3 starts agrees with the best one (1 given up")
    assert not agreement_of([0.3]).is_alone
    assert agreement_of([np.nan, np.nan]).agreeing == 1  # stopped in the first
    assert agreement_of([1e-5, 1.5e-4, 0.1]).agreeing == 2  # of a perfect fit rounding is left
    assert agreement_of([0.174, 0.178, 0.19]).agreeing == 2  # squares: 3.0, 3.2 and 3.6 %
    assert agreement_of([0.9, 0.905]).agreeing == 1  # 81.0 and 81.9 %: as much as a motif may have
    assert agreement_of([0.9, 0.901], "kullback-leibler").agreeing == 2  # a share already


def test_the_same_motifs_a_lag_later_agree():
    rng = np.random.default_rng(0)
    events = 0.1 * rng.random((400, 4))
    for t in range(10, 380, 30):
        events[t + np.arange(4), np.arange(4)] += 1.0
    model = CNMF(1, 12, n_init=6, random_state=0).fit(events)  # in 12 lags there is room
    assert start_agreement(model).agreeing > 1


def test_each_start_leaves_its_loss():
    model = CNMF(2, 6, acceleration=None, n_init=3, random_state=0, max_iter=5, tol=0).fit(X)
    losses = model.start_losses_
    assert losses.shape == (3,)
    assert losses.min() == model.loss_
    assert len(np.unique(losses)) == 3  # as published none is given up
    single = CNMF(2, 6, random_state=0, max_iter=5, tol=0).fit(X)
    assert single.start_losses_.tolist() == [single.loss_]


def test_one_that_was_given_up_has_none():
    # Its starts are compared from iteration 16 on.
    model = CNMF(2, 6, n_init=12, random_state=0, solver="mu").fit(X)
    found = start_agreement(model)
    assert found.given_up == np.isnan(model.start_losses_).sum() > 0
    assert np.nanmin(model.start_losses_) == model.loss_


def test_a_callback_that_stops_leaves_the_rest_unknown():
    model = CNMF(2, 6, callback=lambda state: True, n_init=3, random_state=0, tol=0).fit(X)
    assert np.isnan(model.start_losses_).tolist() == [False, True, True]


def test_a_fit_that_goes_on_knows_the_starts_before(tmp_path):
    seen = []

    def interrupt(state):
        seen.append(state.iteration)
        if seen.count(3) == 3:  # in the third start
            raise KeyboardInterrupt

    path = tmp_path / "a.checkpoint"
    options = {"n_init": 5, "random_state": 0, "max_iter": 8, "tol": 0}
    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(CNMF(2, 6, callback=interrupt, **options), X, path, every=1e9)
    on = fit_with_checkpoint(CNMF(2, 6, **options), X, path)
    never = CNMF(2, 6, **options).fit(X)
    np.testing.assert_array_equal(on.start_losses_, never.start_losses_)
    assert not np.isnan(on.start_losses_[:2]).any()


def test_verbose_says_it(capsys):
    options = {"random_state": 0, "max_iter": 5, "tol": 0}
    CNMF(2, 6, verbose=1, n_init=2, **options).fit(X)
    assert "of 2 starts agree" in capsys.readouterr().err
    CNMF(2, 6, verbose=1, **options).fit(X)
    assert "agree" not in capsys.readouterr().err
    CNMF(2, 6, n_init=2, **options).fit(X)
    assert capsys.readouterr().err == ""
