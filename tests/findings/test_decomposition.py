"""A recording taken apart: blocks leave no seams, and what is cut off or hidden does not count."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.findings import decomposition
from motifold.findings.decomposition import Contributions, Decomposition

L = 6
LENGTHS = [70, 50]


@pytest.fixture
def model() -> CNMF:
    """Two motifs of six lags, two segments; activations are set by hand."""
    X = np.random.default_rng(0).random((120, 4))
    model = CNMF(2, L, random_state=0, tol=0, max_iter=2).fit(X, lengths=LENGTHS)
    model.activations_ = np.zeros((120, 2))
    return model


def test_blocks_are_those_of_the_whole(model, monkeypatch):
    monkeypatch.setattr(decomposition, "ROWS", 17)
    rng = np.random.default_rng(1)
    X, H = rng.random((120, 4)), rng.random((120, 2))
    X[30:40, 1] = np.nan
    fit = Decomposition.of(model, X, H, LENGTHS)
    X_hat = model.inverse_transform(H, lengths=LENGTHS)
    parts = list(model.reconstruct_components(H, lengths=LENGTHS))
    for a, b in [(0, 120), (3, 50), (65, 90), (70, 71)]:
        np.testing.assert_allclose(fit.rows(a, b), X_hat[a:b])
        for k in range(2):
            np.testing.assert_allclose(fit.part(k, a, b), parts[k][a:b])
    seen = ~np.isnan(X)
    shares = [((2 * X - X_hat) * part)[seen].sum() / (X[seen] ** 2).sum() for part in parts]
    np.testing.assert_allclose(fit.power.shares, shares)
    found = Contributions(fit)
    found.block(0, 50)
    found.block(50, 120)
    np.testing.assert_allclose(found.shares, fit.power.shares)
    assert Contributions(Decomposition.of(model, None, H, LENGTHS)).explained == 0.0  # nothing yet


@pytest.mark.parametrize("end", [69, 119])
def test_what_an_end_cuts_off_is_neither_busy_nor_strong(model, end):
    H = model.activations_
    H[[10, 14, 18], [0, 1, 0]] = [1.0, 1.0, 1.5]
    H[end] = 1000.0
    fit = Decomposition.of(model)
    start, stop = fit.busiest(20)
    assert start <= 10
    assert stop > 18
    assert fit.strongest(0, 7) == (18, 25)  # half of the motif is added: its middle is bin 21
    assert fit.ceiling(0, 120) == 1.5
    H[[10, 14, 18]] = 0  # nothing else is there: better that than nothing
    assert Decomposition.of(model).strongest(0, 7) == (end, min(end + 7, 120))


def test_what_missing_entries_hide_is_neither_busy_nor_strong(model, monkeypatch):
    monkeypatch.setattr(decomposition, "ROWS", 23)
    H = model.activations_
    H[[10, 14, 18], [0, 1, 0]] = [1.0, 1.0, 1.5]
    H[92] = 1000.0
    X = np.ones((120, 4))
    X[92:97] = np.nan
    fit = Decomposition.of(model, X)
    assert fit.busiest(20)[0] <= 10
    assert fit.strongest(0, 7) == (18, 25)
    assert fit.ceiling(80, 120) == 1000.0  # of all, where none counts
    assert fit.ceiling(0, 120) == 1.5
    assert np.flatnonzero(fit.known.any(axis=1)).tolist() == [10, 14, 18]
    with pytest.raises(ValueError, match=r"activations=model\.transform"):
        Decomposition.of(model, X[1:])


def test_a_silent_motif_has_no_strongest_event(model):
    assert Decomposition.of(model).strongest(1, 7) is None
