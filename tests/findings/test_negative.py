"""Findings on data below zero: tests by shuffles, sweeps, events."""

from __future__ import annotations

import numpy as np
import pytest

import motifold
from motifold import CNMF
from motifold.findings import discover, sequenciness, significance

L = 6


def planted(T=600, noise=0.5, seed=0):
    """A sequence through six features, and noise around zero; and when it occurs."""
    rng = np.random.default_rng([24, seed])
    X = noise * rng.standard_normal((T, 6))
    starts = np.arange(5, T - L, 23)
    for start in starts:
        X[start + np.arange(L), np.arange(L)] += 2
    return X, starts


@pytest.fixture(scope="module")
def model():
    return CNMF(1, L, allow_negative=True, l1_H=0.5, l2_W=0.1, n_init=3, random_state=0).fit(
        planted()[0]
    )


def test_a_planted_sequence_is_significant_in_held_out_data(model):
    held_out, _ = planted(seed=1)
    assert significance(held_out, model, n_null=199, random_state=0).significant.all()
    upside_down = significance(-held_out, model, n_null=199, random_state=0)
    assert upside_down.p_value[0] > 0.5  # dips are no evidence for what is nonnegative


def test_the_level_holds_on_noise_around_zero(model):
    """Of twenty tests on noise without a motif, p-values are spread out."""
    noises = [np.random.default_rng([9, i]).standard_normal((300, 6)) for i in range(20)]
    p = [significance(X, model, n_null=99, random_state=0).p_value[0] for X in noises]
    assert np.mean(np.array(p) <= 0.05) <= 0.2
    assert 0.3 < np.mean(p) < 0.7


def test_motifs_alone_do_not_say_that_data_may_be_negative(model):
    with pytest.raises(ValueError, match="Negative values"):
        significance(planted()[0], model.components_)


def test_events_are_where_they_were_planted(model):
    X, starts = planted(seed=1)
    found = motifold.find_events(model, model.transform(X), threshold=0.4)
    shift = np.round(np.median([t - starts[np.abs(starts - t).argmin()] for t in found["bin"]]))
    hits = [np.abs(found["bin"] - shift - start).min() <= 1 for start in starts]
    assert np.mean(hits) > 0.95


def test_a_sweep_and_sequenciness_take_it():
    X, _ = planted(300)
    found = motifold.sweep(
        X, n_components=[1], n_lags=L, allow_negative=True, n_seeds=2, n_null=40, tol=1e-2,
        n_jobs=1, progress=False,
    )  # fmt: skip
    assert np.isfinite(found.table["test_error"]).all()
    with pytest.raises(ValueError, match="Negative values"):
        motifold.sweep(X, n_components=[1], n_lags=L, allow_negative=[True, False])
    score = sequenciness(CNMF(1, L, allow_negative=True, tol=1e-2), X, n_shuffles=2, random_state=0)
    assert score.score > 0.5


def test_events_at_a_false_discovery_rate(model):
    X, starts = planted(seed=1)
    found = motifold.find_events(model, X=X, fdr=0.1)
    assert len(found) > 0.8 * len(starts)
    assert (found["q_value"] <= 0.1).all()


def test_discover_refuses_it_by_name():
    X, _ = planted(100)
    told = r"Negative values in X, down to -1.*Only a fit with allow_negative=True"
    with pytest.raises(ValueError, match=told):
        discover(X, n_lags=L)
    with pytest.raises(ValueError, match="-999"):
        discover(np.where(X < -1, -999, np.abs(X)), n_lags=L)
