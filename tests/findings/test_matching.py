"""Matching of motifs: against brute force, and where the answer is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motifold.matching import match_motifs


def moved(motif: np.ndarray, shift: int, length: int) -> np.ndarray:
    """The motif ``shift`` lags later, on a canvas of ``length`` lags."""
    canvas = np.zeros((length, motif.shape[1]))
    for lag, row in enumerate(motif):
        if 0 <= lag + shift < length:
            canvas[lag + shift] = row
    return canvas


def similarity(a: np.ndarray, b: np.ndarray, max_shift: int) -> float:
    """Largest cosine over the shifts, by trying each."""
    if not a.any() or not b.any():
        return 0.0
    best = -np.inf
    for shift in range(-max_shift, max_shift + 1):
        product = np.sum(a * moved(b, shift, len(a)))
        best = max(best, product / np.linalg.norm(a) / np.linalg.norm(b))
    return best


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_against_brute_force(seed, K, L_a, L_b):
    rng = np.random.default_rng(seed)
    a = rng.random((K, L_a, 3)) * (rng.random((K, L_a, 3)) < 0.5)
    b = rng.random((K, L_b, 3)) * (rng.random((K, L_b, 3)) < 0.5)
    max_shift = int(rng.integers(0, 8))
    table = np.array([[similarity(x, y, max_shift) for y in b] for x in a])
    best = max(sum(table[k, p[k]] for k in range(K)) for p in permutations(range(K)))
    match = match_motifs(a, b, max_shift=max_shift)
    assert sorted(match.order) == list(range(K))
    assert np.abs(match.shift).max() <= max_shift
    assert match.similarity.sum() == pytest.approx(best)
    np.testing.assert_allclose(match.similarity, table[np.arange(K), match.order])
    for k in range(K):  # the shift is one at which that similarity is had
        at_shift = moved(b[match.order[k]], match.shift[k], L_a)
        norms = np.linalg.norm(a[k]) * np.linalg.norm(b[match.order[k]])
        product = np.sum(a[k] * at_shift)
        assert product == pytest.approx(match.similarity[k] * norms)


def test_the_best_total_is_not_the_greedy_one():
    a = np.array([[[1.0, 0.0]], [[0.8, 0.6]]])
    b = np.array([[[0.9, 0.1]], [[1.0, 0.0]]])
    match = match_motifs(a, b)
    # a[0] alone would take b[1]; then a[1] gets b[0], and so it is best here too.
    assert match.order.tolist() == [1, 0]
    b = np.array([[[0.0, 1.0]], [[1.0, 0.05]]])
    a = np.array([[[1.0, 0.06]], [[1.0, 0.05]]])
    # Both prefer b[1]; a[0], which is nearer to b[0], gives way.
    assert match_motifs(a, b).order.tolist() == [0, 1]


def test_align_undoes_order_and_shift():
    rng = np.random.default_rng(1)
    a = np.zeros((4, 20, 6))
    a[:, 6:14] = rng.random((4, 8, 6))
    shifts, order = [3, -4, 0, 5], [2, 0, 3, 1]
    b = np.stack([np.roll(a[k], shifts[k], axis=0) for k in order])
    match = match_motifs(a, b)
    assert match.order.tolist() == [order.index(k) for k in range(4)]
    assert match.shift.tolist() == [-shift for shift in shifts]
    np.testing.assert_allclose(match.align(b), a)


def test_align_cuts_off_and_fills_in():
    b = np.arange(1.0, 5)[None, :, None]
    for shift, expected in [(1, [0, 1, 2, 3]), (-2, [3, 4, 0, 0]), (0, [1, 2, 3, 4])]:
        match = match_motifs(b, b)
        match = type(match)(match.order, np.array([shift]), match.similarity)
        assert match.align(b)[0, :, 0].tolist() == expected


@pytest.mark.parametrize(("K_a", "K_b"), [(5, 3), (3, 5)])
def test_sets_of_different_size(K_a, K_b):
    motifs = np.random.default_rng(0).random((5, 4, 30)) ** 8
    match = match_motifs(motifs[:K_a], motifs[:K_b])
    known = min(K_a, K_b)
    assert match.order[:known].tolist() == list(range(known))
    np.testing.assert_allclose(match.similarity[:known], 1)
    assert (match.order[known:] == -1).all()
    assert (match.similarity[known:] == 0).all()
    assert match.align(motifs[:K_b]).shape == (K_a, 4, 30)
    assert not match.align(motifs[:K_b])[known:].any()


def test_scale_does_not_matter_and_dead_motifs_are_like_none():
    a = np.random.default_rng(0).random((2, 3, 4))
    np.testing.assert_allclose(match_motifs(a * 1e-200, a * 1e200).similarity, 1)
    a[1] = 0
    assert match_motifs(a, a).similarity.tolist() == pytest.approx([1, 0])


def test_of_equal_shifts_the_smallest():
    a = np.ones((1, 1, 2))
    b = np.zeros((1, 5, 2))
    b[0, [1, 2]] = 1
    assert match_motifs(a, b).shift.tolist() == [-1]


def test_errors():
    good = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match="same features; a has 4, b has 5"):
        match_motifs(good, np.ones((2, 3, 5)))
    with pytest.raises(ValueError, match=r"b must be .* its shape is \(3, 4\)"):
        match_motifs(good, good[0])
    with pytest.raises(ValueError, match="a must be finite"):
        match_motifs(good * np.nan, good)
    with pytest.raises(ValueError, match="max_shift"):
        match_motifs(good, good, max_shift=-1)
