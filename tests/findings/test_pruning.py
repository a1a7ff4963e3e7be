"""Motifs that are others once more are given up, and only those."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.findings import pruning
from motifold.findings.prepared import Prepared
from motifold.findings.pruning import pruned

L, N, T = 12, 12, 600


def bumps(lags, features):
    motif = np.zeros((L, N))
    motif[:, features] = np.exp(-0.5 * (np.arange(L)[:, None] - lags) ** 2)
    return motif


FIRST = bumps(np.arange(2, 8), slice(0, 6))
SECOND = bumps(np.arange(8, 2, -1), slice(6, 12))


def recording(seed=0):
    rng = np.random.default_rng(seed)
    X = 0.15 * np.abs(rng.standard_normal((T, N)))
    for t in range(5, T - 2 * L, 31):
        X[t : t + L] += FIRST
    for t in range(14, T - 2 * L, 43):
        X[t : t + L] += SECOND
    return Prepared.of(X)


def names(found):
    """Which of the two each motif is, by its features."""
    first = found.motifs[:, :, :6].sum(axis=(1, 2))
    second = found.motifs[:, :, 6:].sum(axis=(1, 2))
    return sorted(np.where(first > second, "first", "second").tolist())


def kept_of(*motifs):
    return pruned(recording(), np.stack(motifs), fdr=0.1, random_state=0)


def test_two_that_differ_are_kept():
    assert names(kept_of(FIRST, SECOND)) == ["first", "second"]


def test_a_copy_is_given_up_and_its_events_are_taken_over():
    found = kept_of(FIRST, np.roll(FIRST, 1, axis=0), SECOND)
    assert names(found) == ["first", "second"]
    n_first = len(range(5, T - 2 * L, 31))
    assert n_first - 1 <= found.train.counts(2).max() <= n_first + 2


def test_a_part_that_comes_with_another_is_given_up():
    early, late = bumps(np.arange(2, 5), slice(0, 3)), bumps(np.arange(5, 8), slice(3, 6))
    assert names(kept_of(early, late, SECOND)) == ["first", "second"]


def test_a_motif_of_noise_is_given_up():
    nothing = np.random.default_rng(1).random((L, N)) ** 8
    assert names(kept_of(FIRST, nothing, SECOND)) == ["first", "second"]
    X = np.random.default_rng(2).poisson(0.05, (T, N))
    assert pruned(Prepared.of(X), nothing[None], fdr=0.1, random_state=0) is None


def halves_of_one_motif(seed):
    """Spikes with one motif, and its mean over the even and over the odd events, noise and all."""
    rng = np.random.default_rng(seed)
    n_features, n_bins = 24, 1000
    motif = np.exp(-0.5 * (np.arange(L)[:, None] - rng.uniform(2, 9, n_features)) ** 2)
    bins = np.arange(20, n_bins - 2 * L, 38)
    rate = np.full((n_bins, n_features), 0.12)
    for t in bins:
        rate[t : t + L] += 0.35 * motif
    X = rng.poisson(rate).astype(float)
    windows = np.stack([X[t : t + L] for t in bins]) - X.mean(axis=0)
    halves = np.stack([windows[::2].mean(axis=0), windows[1::2].mean(axis=0)])
    return Prepared.of(X), np.maximum(halves, 0), len(bins)


@pytest.mark.parametrize("seed", range(3))
def test_a_motif_in_two_halves_of_its_events_is_joined(seed, monkeypatch):
    spikes, halves, n_events = halves_of_one_motif(seed)
    with monkeypatch.context() as patched:  # the rule that looks at one motif in another's place
        patched.setattr(pruning, "_has_twin", lambda *_: False)
        found = pruned(spikes, halves, fdr=0.1, random_state=0)
    assert len(found.motifs) == 1
    assert n_events - 5 <= len(found.train) <= n_events + 3


def test_two_that_share_half_of_their_features_are_not_joined(monkeypatch):
    """They are alike enough to be tried as one, which explains less."""
    other = bumps(np.array([2, 3, 4, 10, 9, 8]), [0, 1, 2, 6, 7, 8])
    rng = np.random.default_rng(0)
    X = 0.15 * np.abs(rng.standard_normal((T, N)))
    for t in range(5, T - 2 * L, 31):
        X[t : t + L] += FIRST
    for t in range(14, T - 2 * L, 43):
        X[t : t + L] += other
    tried = []
    joined = pruning._joined
    monkeypatch.setattr(pruning, "_joined", lambda *a: tried.append(a) or joined(*a))
    found = pruned(Prepared.of(X), np.stack([FIRST, other]), fdr=0.1, random_state=0)
    assert len(tried) == 1
    assert len(found.motifs) == 2
