"""The test of motifs against shuffled copies, and what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.findings import sequenciness, significance
from motifold.findings.overlap import overlap, x_ortho_cost
from motifold.findings.shuffles import null_skewness


def naive_overlap(segments: list[np.ndarray], motif: np.ndarray) -> np.ndarray:
    """(T,): the sum over lags and features, one bin at a time, in a circle."""
    found = []
    for X in segments:
        for t in range(len(X)):
            rows = (t + np.arange(len(motif))) % len(X)
            found.append(float((motif * X[rows]).sum()))
    return np.array(found)


@pytest.fixture
def planted():
    return make_sequences(
        400, 15, 2, 9, activation_probability=0.02, noise=0.1, sigma=0.3, random_state=3
    )


def test_statistic_is_the_skewness_of_the_overlap(planted):
    segments = [planted.X[:150], planted.X[150:]]
    result = significance(segments, planted.components, n_null=50, random_state=0)
    expected = [skew(naive_overlap(segments, motif)) for motif in planted.components]
    np.testing.assert_allclose(result.statistic, expected)


def test_nulls_are_motifs_with_shifted_features(planted, monkeypatch):
    monkeypatch.setattr("motifold.findings.shuffles._BLOCK_BYTES", 1)  # several blocks of rows
    motif = planted.components[0].copy()
    motif[:, [2, 7]] = 0  # features without part draw no shift
    segments = [planted.X[:150], planted.X[150:]]
    found = null_skewness(segments, motif, 0.3, 20, np.random.default_rng(5))
    shifts = np.random.default_rng(5).integers(len(motif), size=(20, 13))
    used = np.delete(np.arange(15), [2, 7])
    expected = []
    for row in shifts:
        copy = np.zeros_like(motif)
        for n, s in zip(used, row, strict=True):
            copy[:, n] = np.roll(motif[:, n], s)
        expected.append(skew(naive_overlap(segments, copy)))
    np.testing.assert_allclose(found, expected)


def test_p_values_count_nulls_and_the_observed(planted):
    result = significance(planted.X, planted.components, n_null=99, random_state=0)
    for k in range(2):
        count = sum(null >= result.statistic[k] for null in result.null[k])
        assert result.p_value[k] == (1 + count) / 100


def test_copies_that_are_the_motif_but_for_a_common_shift_count_as_ties():
    rng = np.random.default_rng(0)
    X = 0.1 * rng.random((400, 2))
    for t in np.flatnonzero(rng.random(390) < 0.05):  # the second feature follows a bin later
        X[t, 0] += 1.3
        X[t + 1, 1] += 0.7
    motif = np.zeros((1, 4, 2))
    motif[0, 1, 0], motif[0, 2, 1] = 0.9, 0.3
    result = significance(X, motif, n_null=4000, random_state=0)
    # Of the 16 pairs of lags, 3 have the second one lag after the first.
    assert result.p_value[0] == pytest.approx(3 / 16, abs=0.02)


def test_empty_and_single_feature_motifs_are_not_tested(planted):
    motifs = np.concatenate([planted.components, np.zeros((3, 9, 15))])
    motifs[3, 4, 6] = 1.0
    motifs[4, :, 2] = 1.0
    motifs[4, 0, 3] = 0.02  # 4e-4 of 9 in power
    result = significance(planted.X, motifs, n_null=50, random_state=0)
    assert result.tested.tolist() == [True, True, False, False, False]
    assert np.isnan(result.p_value[2:]).all()
    assert not result.holm[2:].any()
    # Two motifs are tested, not five: p = 1/51 is significant.
    assert result.bonferroni[:2].all()
    assert result.table.columns[0] == "motif"
    assert len(result.to_pandas()) == 5


def test_x_ortho_cost_does_not_cancel():
    """A huge activation that is far away, of a motif that meets nothing there, leaves no trace."""
    rng = np.random.default_rng(0)
    X, motifs, H = rng.random((60, 4)), rng.random((2, 3, 4)), rng.random((60, 2))
    X[:10] = 0
    expected = x_ortho_cost([X], motifs, H)
    H[2] += 1e17
    assert x_ortho_cost([X], motifs, H) == pytest.approx(expected, rel=1e-9)


def test_holm_finds_what_bonferroni_does_not():
    from motifold.findings.shuffles import holm

    p = np.array([0.04, 0.01, np.nan, 0.02])
    tested = np.array([True, True, False, True])
    assert holm(p, tested, 0.05).tolist() == [True, True, False, True]
    assert holm(np.array([0.04, 0.02, np.nan, 0.03]), tested, 0.05).tolist() == [False] * 4


def test_too_few_nulls_are_refused(planted):
    with pytest.raises(ValueError, match="raise n_null to at least 40"):
        significance(planted.X, planted.components, n_null=20)
    with pytest.raises(ValueError, match="features"):
        significance(planted.X[:, :5], planted.components)


def test_shuffled_data_is_not_significant_and_planted_is(planted):
    rng = np.random.default_rng(0)
    shuffled = np.stack([np.roll(x, rng.integers(400)) for x in planted.X.T], axis=1)
    assert significance(planted.X, planted.components, random_state=0).significant.all()
    assert not significance(shuffled, planted.components, random_state=0).significant.any()


def test_p_values_are_uniform_where_features_are_unrelated():
    rng = np.random.default_rng(0)
    lags = np.arange(10)[:, None]
    p_values = []
    for seed in range(150):  # bumps, whose copies the ends of the lags cut, and smooth data
        noise = rng.exponential(size=(200, 12)) ** 2
        X = (noise + 2 * np.roll(noise, 1, axis=0) + np.roll(noise, 2, axis=0)) / 4
        places = rng.uniform(2, 8, (2, 1, 12))
        motifs = rng.random((2, 1, 12)) * np.exp(-((lags - places) ** 2) / 2)
        p_values += significance(X, motifs, n_null=99, random_state=seed).p_value.tolist()
    shares = [np.mean(np.array(p_values) <= level) for level in (0.05, 0.25, 0.5, 0.75)]
    np.testing.assert_allclose(shares, [0.05, 0.25, 0.5, 0.75], atol=0.06)
    assert shares[0] < 0.08


def test_x_ortho_cost_by_its_definition(planted):
    rng = np.random.default_rng(1)
    H = rng.random((400, 2))
    segments = [planted.X[:130], planted.X[130:]]
    C = overlap(segments, planted.components)
    expected = 0.0
    for a, b in [(0, 130), (130, 400)]:
        for t in range(a, b):
            for s in range(max(a, t - 8), min(b, t + 9)):
                expected += C[t, 0] * H[s, 1] + C[t, 1] * H[s, 0]
    np.testing.assert_allclose(x_ortho_cost(segments, planted.components, H), expected)


def test_sequenciness_tells_sequences_from_synchrony():
    planted = make_sequences(
        500, 20, 2, 10, sigma=0.1, activation_probability=0.02, noise=0.05, random_state=0
    )
    together = np.zeros((500, 20))  # the same features fire, each motif's all at once
    for k, motif in enumerate(planted.components):
        together += np.outer(planted.activations[:, k], motif.sum(axis=0))
    model = CNMF(2, 10, tol=1e-2, max_iter=2000)
    options = {"n_shuffles": 3, "random_state": 0}
    assert sequenciness(model, planted.X, **options).score > 0.6
    assert sequenciness(model, together, **options).score < 0.2


def test_sequenciness_of_noise_is_none():
    noise = np.random.default_rng(0).random((400, 15))
    result = sequenciness(CNMF(2, 8, tol=1e-2), noise, n_shuffles=8, random_state=0)
    assert result.explained <= result.explained_features.max()
    assert np.isnan(result.score)


def test_sequenciness_in_the_order_of_0_1():
    """X and the model are told apart, with a warning."""
    X = np.random.default_rng(0).random((100, 5))
    model, options = CNMF(1, 4, tol=1e-2), {"n_shuffles": 1, "random_state": 0}
    with pytest.warns(FutureWarning, match=r"is sequenciness\(model, X\) now") as told:
        found = sequenciness(X, model, **options)
    assert told[0].filename == __file__
    assert found.explained == sequenciness(model, X, **options).explained
