"""Events one by one, their q-values, and motifs made of them."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.data import Segments
from motifold.findings import refit_events
from motifold.findings.calibration import q_values
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import Standardised, Train, match, pursue, without
from motifold.findings.sharpen import motifs_at

L, N = 12, 8


def smooth_motif(shift=0.0):
    """A bump of each feature, one bin later than that of the feature before."""
    return np.exp(-0.5 * (np.arange(L)[:, None] - np.arange(2, 2 + N) - shift) ** 2)


def recording(starts, T=600, noise=0.2, seed=0, strengths=None):
    rng = np.random.default_rng(seed)
    X = 0.3 + rng.uniform(0, noise, (T, N))
    for i, start in enumerate(starts):
        X[start : start + L] += smooth_motif() * (1 if strengths is None else strengths[i])
    return X


def standardised(Y, lengths=None, observed=None):
    return Standardised(Y, Segments(lengths or [len(Y)]), observed)


def naive_match(Y, motifs):
    padded = np.pad(Y, ((0, motifs.shape[1]), (0, 0)))
    return np.array([[(padded[t : t + len(m)] * m).sum() for m in motifs] for t in range(len(Y))])


def test_match_is_the_inner_product_from_each_bin_on():
    rng = np.random.default_rng(0)
    Y, motifs = rng.standard_normal((40, 5)), rng.standard_normal((3, 6, 5))
    np.testing.assert_allclose(match(Y, motifs), naive_match(Y, motifs), atol=1e-12)


def test_events_that_do_not_overlap_are_found_with_their_amplitudes():
    Y = np.zeros((200, N))
    for start, amplitude in ((10, 1.0), (60, 2.0), (120, 0.5)):
        Y[start : start + L] += amplitude * smooth_motif()
    train = pursue(standardised(Y), smooth_motif()[None], gap=6)
    assert train.bins[:3].tolist() == [60, 10, 120]  # strongest first
    np.testing.assert_allclose(train.amplitudes[:3], [2.0, 1.0, 0.5], rtol=1e-6)
    assert np.abs(without(standardised(Y), smooth_motif()[None], train).Y).max() < 1e-6


def test_missing_entries_give_the_same_events_as_the_kernel_where_nothing_is_missing():
    rng = np.random.default_rng(1)
    Y, motifs = rng.standard_normal((300, N)), rng.random((2, L, N))
    plain = pursue(standardised(Y, [180, 120]), motifs, gap=5)
    masked = pursue(standardised(Y, [180, 120], np.ones(Y.shape, bool)), motifs, gap=5)
    assert plain.bins.tolist() == masked.bins.tolist()
    assert plain.motifs.tolist() == masked.motifs.tolist()
    np.testing.assert_allclose(plain.amplitudes, masked.amplitudes, rtol=1e-9)


def test_no_event_reaches_across_segments_and_none_is_nearer_than_the_gap():
    rng = np.random.default_rng(2)
    data = standardised(rng.standard_normal((400, N)), [150, 250])
    train = pursue(data, rng.random((1, L, N)), gap=9)
    assert len(train) > 10
    ends = np.where(train.bins < 150, 150, 400)
    assert (train.bins + L <= ends).all()
    assert np.diff(np.sort(train.bins)).min() > 9


def test_an_event_that_is_half_hidden_keeps_its_amplitude():
    Y = np.zeros((100, N))
    Y[30 : 30 + L] = 2 * smooth_motif()
    observed = np.ones(Y.shape, bool)
    observed[:, ::2] = False
    observed[:, 0] = True
    train = pursue(standardised(np.where(observed, Y, 0), None, observed), smooth_motif()[None], 6)
    assert train.bins[0] == 30
    np.testing.assert_allclose(train.amplitudes[0], 2.0, rtol=1e-6)


def test_shifted_features_stay_in_their_segments_with_their_masks():
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((90, 4))
    data = standardised(Y, [30, 60], Y > -1)
    moved = data.shifted(rng)
    assert not np.array_equal(moved.Y, Y)
    for a, b in ((0, 30), (30, 90)):
        np.testing.assert_array_equal(np.sort(moved.Y[a:b], axis=0), np.sort(Y[a:b], axis=0))
    np.testing.assert_array_equal(moved.observed, moved.Y > -1)


def test_q_values_rise_as_events_get_weaker_and_know_the_null():
    strengths = np.array([9.0, 1.0, 5.0, 8.0, 3.0])
    q = q_values(strengths, np.array([0.5, 1.5, 2.0, 4.0]), n_null=4)
    assert (np.diff(q[np.argsort(-strengths)]) >= 0).all()
    assert q[0] == pytest.approx(1 / 4 / 3)  # as that of the third strongest: no null event yet
    assert (q_values(strengths, np.full(400, 100.0), n_null=4) == 1).all()
    assert len(q_values(np.zeros(0), np.ones(3), 4)) == 0


def test_motifs_at_true_events_are_least_squares_with_a_background():
    starts = np.arange(5, 580, 23)
    X = recording(starts, noise=0.0)
    train = Train(starts, np.zeros(len(starts), int), np.ones(len(starts)), np.ones(len(starts)))
    motifs, background, left = motifs_at(Prepared.of(X), train, 1, L, ridge=1e-9)
    np.testing.assert_allclose(motifs[0], smooth_motif(), atol=1e-6)
    np.testing.assert_allclose(background, 0.3, atol=1e-6)
    assert left < 1e-9
    mask = np.random.default_rng(0).random(X.shape) < 0.8
    hidden = Prepared.of(np.where(mask, X, np.nan), mask=mask)
    np.testing.assert_allclose(
        motifs_at(hidden, train, 1, L, ridge=1e-9)[0][0], smooth_motif(), atol=1e-6
    )


def test_refit_sharpens_a_blurred_motif_and_finds_its_events():
    starts = list(range(7, 580, 27))
    X = recording(starts)
    blurred = np.convolve(np.ones(5) / 5, np.ones(1))[:, None]
    wide = np.stack([np.convolve(f, blurred[:, 0], "same") for f in smooth_motif().T], axis=1)
    fit = refit_events(wide[None], X, rate=10, random_state=0)
    assert np.abs(fit.events["bin"] - starts).max() <= 1
    np.testing.assert_allclose(fit.events["time"], fit.events["bin"] / 10)
    assert (fit.events["centre"] > fit.events["time"]).all()
    assert (fit.events["q_value"] <= 0.1).all()

    def cosine(motif):
        best = max(np.vdot(np.roll(motif, s, axis=0), smooth_motif()) for s in range(-2, 3))
        return best / np.linalg.norm(motif) / np.linalg.norm(smooth_motif())

    assert cosine(fit.motifs[0]) > 0.98 > 0.95 > cosine(wide)
    assert fit.variance[-1] < 0.3


def test_refit_of_noise_keeps_next_to_nothing():
    X = np.random.default_rng(5).poisson(0.1, (800, N))
    fit = refit_events(smooth_motif()[None], X, random_state=0)
    assert len(fit.events) <= 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fdr": 0}, "fdr must be between"),
        ({"rate": -1}, "rate must be positive"),
        ({"rounds": 0}, "rounds must be 1"),
        ({"smooth": -1}, "smooth must be"),
    ],
)
def test_refit_says_what_it_cannot_take(options, told):
    with pytest.raises(ValueError, match=told):
        refit_events(smooth_motif()[None], np.ones((100, N)), **options)
    with pytest.raises(ValueError, match="same ones"):
        refit_events(smooth_motif()[None], np.ones((100, N + 1)))
