"""Loss and shares by their definitions, and one answer for silence."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF, explained_power
from motifold.io import Recording
from motifold.model.losses import SQUARED
from motifold.model.measures import Power


def test_shares_and_loss_by_their_definitions():
    rng = np.random.default_rng(0)
    X, parts = rng.random((20, 3)), rng.random((2, 20, 3))
    X[4:7, 1] = np.nan
    power = Power(2)
    for a in (0, 6, 12):
        b = min(a + 6, 20) if a < 12 else 20
        power.add(X[a:b], parts[:, a:b])
    seen = ~np.isnan(X)
    shares = [(2 * X * part - part**2)[seen].sum() / (X[seen] ** 2).sum() for part in parts]
    np.testing.assert_allclose(power.shares, np.maximum(shares, 0))
    left = (X - parts.sum(axis=0))[seen]
    assert power.loss == pytest.approx(np.linalg.norm(left) / np.linalg.norm(X[seen]))
    assert power.explained == pytest.approx(1 - power.loss**2)


def test_silence_has_one_answer():
    """As ``loss_`` and ``score``: 0 where nothing is left, infinite where something is."""
    zeros, ones = np.zeros((5, 2)), np.ones((5, 2))
    assert SQUARED.relative(0.0, 0.0) == 0.0
    assert SQUARED.relative(1.0, 0.0) == np.inf
    silence = Recording(zeros, "silence")
    assert silence.relative_loss(zeros) == 0.0
    assert silence.relative_loss(ones) == np.inf
    model = CNMF(1, 2, random_state=0).fit(zeros)
    assert model.loss_ == 0.0 == -model.score(zeros)
    assert explained_power(zeros, model).tolist() == [0]
