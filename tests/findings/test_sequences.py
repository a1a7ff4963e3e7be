"""Order told from synchrony, on data that the motifs do not come from."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.findings import sequence_test
from motifold.findings.prepared import Prepared
from motifold.findings.sequences import (
    combined,
    forward_gains,
    p_of_gains,
    p_of_gains_in_turn,
    verdicts_of,
)

T, N, L = 900, 20, 15


def motif(seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(-0.5 * (np.arange(L)[:, None] - rng.uniform(2, 12, N)) ** 2)


def with_events(shape, n=24, seed=1, noise=0.3):
    """Noise, with the pattern at random times."""
    rng = np.random.default_rng(seed)
    X = noise * rng.random((T, N))
    for t in (np.arange(n) * (T - L) // n + rng.integers(0, 8, n)).tolist():
        X[t : t + L] += shape
    return X


def test_planted_sequence_is_one():
    found = sequence_test(with_events(motif()), motif()[None], random_state=0)
    assert found.verdicts == ["sequence"]
    assert found.n_events[0] >= 15
    assert found.table["verdict"].tolist() == ["sequence"]


def test_backwards_it_recurs_no_more_in_its_order():
    X = with_events(motif()[::-1])
    found = sequence_test(X, motif()[None], random_state=0)
    assert found.p_order[0] > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_shared_rate_is_synchrony_though_the_motif_has_lags(seed):
    rng = np.random.default_rng(seed)
    kicks = rng.exponential(1, T) * (rng.random(T) < 0.03)
    rate = np.convolve(kicks, np.exp(-np.arange(12) / 3))[:T]  # rises at once, decays: no mirror
    X = rng.poisson(0.6 * rate[:, None] * rng.uniform(0.5, 1.5, N))
    shape = np.exp(-np.arange(L) / 3)[:, None] * rng.uniform(0.2, 1, (L, N))
    found = sequence_test(X, shape[None], random_state=0)
    assert found.verdicts == ["synchrony"]


def test_features_on_their_own_are_not_significant():
    X = np.random.default_rng(0).poisson(0.1, (T, N))
    assert sequence_test(X, motif()[None], random_state=0).verdicts == ["not significant"]


def test_level_of_order_on_shared_rates():
    """Of many motifs with lags by chance, about as many as the level says are ordered."""
    rng = np.random.default_rng(3)
    white = rng.standard_normal(T + 30)
    rate = np.exp(2 * np.convolve(white, np.hanning(15) / 3, "same")[:T] / 1.0)
    X = rng.poisson(0.1 * np.minimum(rate, 20)[:, None] * np.ones(N))
    motifs = rng.random((40, L, N)) * np.hanning(L + 2)[1:-1, None]
    found = sequence_test(X, motifs, n_null=50, n_flips=500, alpha=0.9, random_state=0)
    assert (found.p_order <= 0.05).sum() <= 7  # of 40; 7 or more have a chance of 0.3 %


def test_segments_and_missing_entries_are_respected():
    X = with_events(motif())
    mask = np.random.default_rng(0).random(X.shape) < 0.9
    found = sequence_test(
        np.where(mask, X, np.nan), motif()[None], mask=mask, lengths=[400, 500], random_state=0
    )
    assert found.verdicts == ["sequence"]
    # A window across the border would see the first segment's end: there is nothing in either.
    halves = np.zeros((2 * L, N))
    halves[L - L // 2 : L - L // 2 + L] = motif()
    recording = Prepared.of(
        np.concatenate([0.01 * np.random.default_rng(0).random((200, N)), halves]),
        lengths=[200 + L, L],
    )
    whole = Prepared.of(recording.X)
    assert forward_gains(whole, motif()).max() > 2 * forward_gains(recording, motif()).max()


def test_motif_of_few_features_has_no_order():
    alone = np.zeros((1, L, N))
    alone[0, 3, :2] = 1
    found = sequence_test(with_events(motif()), alone, random_state=0)
    assert found.p_order[0] == 1
    assert found.n_events[0] == 0


def test_verdicts_ask_for_both_and_are_corrected():
    one = np.array([0.001, 0.001, 0.9])
    two = np.array([0.001, 0.9, 0.001])
    assert verdicts_of(one, two, 0.05) == ["sequence", "synchrony", "not significant"]
    barely = np.full(4, 0.04)
    assert set(verdicts_of(barely, barely, 0.05)) == {"not significant"}


def test_combined_p_values_are_as_small_as_their_parts_allow():
    p = combined(np.array([[0.01, 0.01, 0.99], [0.01, 1.0, 1.0]]))
    assert p[0] == pytest.approx(0.01)
    assert 0.01 < p[1] < 0.05
    assert p[2] >= 0.5


def test_parts_that_prove_nothing_alone_prove_it_together():
    rng = np.random.default_rng(0)
    parts = [np.array([1.0, 1.2, -0.3, 0.8]) for _ in range(4)]
    assert min(p_of_gains(part, 500, rng) for part in parts) > 0.05
    assert p_of_gains_in_turn(parts, 4000, rng) < 0.01


def test_level_of_order_in_turn_where_chance_leans_along_one_axis():
    """The hardest case: a sign learnt of three parts is tested on the fourth, in turn."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(1000):
        leans = rng.standard_normal((4, 8))  # of the places of each part
        sides = [np.sign(np.delete(leans, i, axis=0).sum()) for i in range(4)]
        parts = [side * lean for side, lean in zip(sides, leans, strict=True)]
        false += p_of_gains_in_turn(parts, 400, rng) <= 0.05
    assert false <= 65  # 50 are expected of a test at its level, with a deviation of 7


def test_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="same ones"):
        sequence_test(np.ones((100, N + 1)), motif()[None])
    with pytest.raises(ValueError, match="alpha must be"):
        sequence_test(np.ones((100, N)), motif()[None], alpha=2)
