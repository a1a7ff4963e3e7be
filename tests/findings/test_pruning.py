"""Motifs that are others once more are given up, and only those."""

from __future__ import annotations

import numpy as np

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
