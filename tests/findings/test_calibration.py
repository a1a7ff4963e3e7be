"""find_events with the recording at hand: as many events as shifted copies do not have."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF, find_events

L, N = 10, 10


def recording(noise, T=700, seed=0):
    rng = np.random.default_rng(seed)
    motif = np.exp(-0.5 * (np.arange(L)[:, None] - rng.permutation(N)) ** 2)
    starts = np.arange(5, T - L, 31)
    X = noise * np.abs(rng.standard_normal((T, N)))
    for t in starts:
        X[t : t + L] += motif
    return X, starts


def near(found, true):
    """Share of the found events that are true ones, wherever the motif lies in its window."""
    return max(
        (np.abs(found[:, None] + shift - true).min(axis=1) <= 1).mean() for shift in range(-9, 10)
    )


def test_small_peaks_of_noise_are_left_out_without_losing_events():
    X, starts = recording(noise=0.7)
    model = CNMF(1, L, random_state=0, n_init=3, center=True).fit(X)
    old, new = find_events(model, threshold=0.1), find_events(model, X=X, fdr=0.1)
    assert near(new["bin"], starts) > 0.9 > 0.7 > near(old["bin"], starts)
    assert 0.8 * len(starts) <= len(new) <= 1.25 * len(starts)
    assert new.columns == [*old.columns, "q_value"]
    assert new["q_value"].max() <= 0.1


def test_noise_has_hardly_any():
    X = np.random.default_rng(1).poisson(0.2, (500, N)).astype(float)
    model = CNMF(2, L, random_state=0).fit(X[:250])
    assert len(find_events(model, X=X[250:], fdr=0.1)) <= 2 < len(find_events(model)) // 4


def test_mask_and_segments_are_passed_on():
    X, _ = recording(noise=0.1)
    model = CNMF(1, L, random_state=0).fit(X)
    mask = np.random.default_rng(0).random(X.shape) < 0.9
    events = find_events(
        model, X=np.where(mask, X, np.nan), mask=mask, lengths=[300, 400], rate=10, fdr=0.1
    )
    assert set(events["segment"]) == {0, 1}
    assert len(events) >= 15


def test_says_what_it_cannot_take():
    X, _ = recording(noise=0.1, T=100)
    model = CNMF(1, L, random_state=0, tol=1e-1).fit(X)
    with pytest.raises(ValueError, match="fdr needs the recording"):
        find_events(model, model.activations_, X=X, fdr=0.1)
    with pytest.raises(ValueError, match="fdr must be"):
        find_events(model, X=X, fdr=2)
