"""DISSX from Grams equals DISSX from the reconstructions."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.data import Segments
from motifold.findings import dissimilarity
from motifold.findings.agreement import reconstruction_gram


def naive_parts(motifs: np.ndarray, H: np.ndarray, lengths: list[int]) -> np.ndarray:
    """(K, T·N): the reconstruction of each motif alone, lag by lag."""
    parts = np.zeros((len(motifs), len(H), motifs.shape[2]))
    start = 0
    for size in lengths:
        for k, motif in enumerate(motifs):
            for t in range(size):
                n = min(len(motif), size - t)
                parts[k, start + t : start + t + n] += H[start + t, k] * motif[:n]
        start += size
    return parts.reshape(len(motifs), -1)


@pytest.mark.parametrize("lengths", [[50], [30, 3, 17], [1, 2, 47]])
def test_gram_of_reconstructions(lengths, monkeypatch):
    monkeypatch.setattr("motifold.findings.agreement._ROWS", 13)
    rng = np.random.default_rng(0)
    motifs, H = rng.random((3, 6, 4)), rng.random((50, 3))
    parts = naive_parts(motifs, H, lengths)
    np.testing.assert_allclose(reconstruction_gram(motifs, H, Segments(lengths)), parts @ parts.T)


def test_gram_where_the_end_of_the_data_lets_activations_grow():
    rng = np.random.default_rng(0)
    motifs, H = rng.random((2, 6, 4)), rng.random((50, 2))
    motifs[0, 0] *= 1e-40  # in the last bin only lag 0 is left, and h makes up for it
    H[-1, 0] = 1e40
    parts = naive_parts(motifs, H, [50])
    np.testing.assert_allclose(reconstruction_gram(motifs, H, Segments([50])), parts @ parts.T)


def test_dissx_by_its_definition():
    X = np.random.default_rng(1).random((80, 5))
    options = {"tol": 0, "max_iter": 20}
    a = CNMF(3, 4, random_state=0, **options).fit(X, lengths=[30, 50])
    b = CNMF(3, 6, random_state=1, **options).fit(X, lengths=[30, 50])
    first, second = (naive_parts(fit.components_, fit.activations_, [30, 50]) for fit in (a, b))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    c = first @ second.T
    expected = (6 - c.max(axis=0).sum() - c.max(axis=1).sum()) / 6
    assert dissimilarity(a, b) == pytest.approx(expected, rel=1e-9)
    assert dissimilarity(a, a) == pytest.approx(0, abs=1e-12)


def test_fits_of_other_data_are_refused():
    rng = np.random.default_rng(1)
    a, b, c = (
        CNMF(2, 3, random_state=0, tol=0, max_iter=2).fit(rng.random(shape))
        for shape in [(30, 4), (31, 4), (30, 5)]
    )
    with pytest.raises(ValueError, match="same data"):
        dissimilarity(a, b)
    with pytest.raises(ValueError, match="features"):
        dissimilarity(a, c)
