"""Consensus: planted groups of motifs are found, counted and averaged."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.findings import find_consensus
from motifold.matching import match_motifs


@pytest.fixture
def truth() -> np.ndarray:
    """Three motifs with three empty lags at either end, on features of their own."""
    rng = np.random.default_rng(0)
    motifs = np.zeros((3, 12, 9))
    for k in range(3):
        motifs[k, 3:9, 3 * k : 3 * k + 3] = rng.random((6, 3))
    return motifs


def test_groups_shifts_and_counts(truth):
    rng = np.random.default_rng(1)
    fits = []
    for i in range(8):
        copies = truth * rng.uniform(1, 5, (3, 1, 1)) + 0.01 * rng.random(truth.shape)
        copies = np.stack([np.roll(copy, rng.integers(-2, 3), axis=0) for copy in copies])
        if i % 2:
            copies[2] = rng.random(copies[2].shape)  # half of the fits miss the third
        if i == 3:
            copies[1] = 0  # and one the second: a dead motif
        fits.append(copies[rng.permutation(3)])
    consensus = find_consensus(fits, min_share=0.6, min_similarity=0.9)
    assert consensus.found[:3].tolist() == [8, 7, 4]
    assert consensus.stable.tolist() == [True, True] + [False] * (len(consensus.found) - 2)
    match = match_motifs(truth, consensus.components[:3])
    assert match.order.tolist() == [0, 1, 2]
    assert match.similarity.min() > 0.99
    assert consensus.similarity[:3].min() > 0.99
    for m in range(3):
        for fit, k in zip(fits, consensus.members[m], strict=True):
            if k >= 0:
                assert match_motifs(truth[m : m + 1], fit[k : k + 1]).similarity[0] > 0.9
    assert (consensus.members[1] >= 0).sum() == 7
    assert consensus.table["share"][0] == 1.0


def test_a_fit_from_the_consensus_keeps_its_motifs():
    rng = np.random.default_rng(2)
    truth = np.zeros((3, 12, 30))  # a lag for each feature: no blurred motif does as well
    for n in range(30):
        truth[n % 3, 3 + rng.integers(6), n] = 1.0
    H = rng.exponential(1, (600, 3)) * (rng.random((600, 3)) < 0.02)
    X = np.zeros((600, 30))
    for lag in range(12):
        X[lag:] += H[: 600 - lag] @ truth[:, lag]
    fits = [CNMF(3, 12, random_state=seed).fit(X) for seed in range(10)]
    consensus = find_consensus(fits, min_share=0.4)
    final = consensus.fit(X, fits[0])
    assert consensus.stable.sum() == 3
    assert final.loss_ < 0.05
    assert match_motifs(truth, final.components_).similarity.min() > 0.99


def test_bad_input():
    data = make_sequences(100, 6, 2, 5, random_state=0)
    with pytest.raises(ValueError, match="two fits"):
        find_consensus([data.components])
    with pytest.raises(ValueError, match=r"fits\[1\]"):
        find_consensus([data.components, data.components[:, :3]])
    single = np.eye(30).reshape(30, 5, 6)  # each one feature at one lag
    nothing = find_consensus([single[:1], single[17:18]], min_share=0.9)
    with pytest.raises(ValueError, match="No motif"):
        nothing.fit(data.X, CNMF(2, 5))
