"""find_events with the recording at hand: as many events as shifted copies do not have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from motifold import CNMF, find_events
from motifold.data import Segments
from motifold.findings.shifting import random_shifts, shifted

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
    assert {*new.columns} == {*old.columns, "explained", "q_value"}
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


@pytest.fixture(scope="module")
def clean():
    X, starts = recording(noise=0.1)
    return X, starts, CNMF(1, L, random_state=0, n_init=3, center=True).fit(X)


def test_is_the_rule_wherever_the_recording_is_at_hand(clean):
    X, _, model = clean
    told = find_events(model, X=X)
    assert told.records == find_events(model, X=X, fdr=0.1).records
    assert "q_value" in told.columns
    for old in (find_events(model), find_events(model, X=X, threshold=0.3)):
        assert "q_value" not in old.columns
    assert find_events(model).records == find_events(model, threshold=0.3).records


def test_activations_that_are_known_are_not_found_again(clean):
    X, starts, model = clean
    H = model.transform(X)
    found = find_events(model, H, X=X)
    assert len(found) == len(starts)
    assert found.records == find_events(model, X=X).records
    H[: len(H) // 2] = 0  # what is given is what counts
    assert find_events(model, H, X=X)["bin"].min() >= len(H) // 2
    assert find_events(model, np.split(H, [300]), X=np.split(X, [300]))["segment"].max() == 1


def test_sparse_and_missing_entries(clean):
    X, _, model = clean
    X = np.where(X > 0.3, X, 0)
    expected = find_events(model, X=X)
    found = find_events(model, X=csr_array(X))
    for name in ("motif", "bin", "q_value"):
        assert found[name].tolist() == pytest.approx(expected[name].tolist())
    mask = np.random.default_rng(0).random(X.shape) < 0.9
    assert (
        find_events(model, X=np.where(mask, X, np.nan)).records
        == find_events(model, X=X, mask=mask).records
    )


def test_what_the_end_cuts_off_is_compared_with_its_like(clean):
    X, starts, model = clean
    huge = find_events(model, X=X, partial=True)
    assert huge.where(partial=False).records == find_events(model, X=X).records
    assert len(huge.where(partial=False)) == len(starts)


def test_features_are_moved_around_their_segments():
    rng = np.random.default_rng(0)
    X, segments = rng.random((12, 3)), Segments([5, 7])
    shifts = random_shifts(segments, 3, rng)
    moved = shifted(X, segments, shifts)
    for i, (a, b) in enumerate(segments):
        for n in range(3):
            np.testing.assert_array_equal(moved[a:b, n], np.roll(X[a:b, n], shifts[i, n]))
    np.testing.assert_array_equal(shifted(csr_array(X), segments, shifts).toarray(), moved)


def test_says_what_it_cannot_take():
    X, _ = recording(noise=0.1, T=100)
    model = CNMF(1, L, random_state=0, tol=1e-1).fit(X)
    with pytest.raises(ValueError, match="fdr needs the recording"):
        find_events(model, fdr=0.1)
    with pytest.raises(ValueError, match="two rules"):
        find_events(model, X=X, fdr=0.1, threshold=0.3)
    with pytest.raises(ValueError, match="fdr must be"):
        find_events(model, X=X, fdr=2)
    with pytest.raises(ValueError, match="threshold must be"):
        find_events(model, threshold=-1)
