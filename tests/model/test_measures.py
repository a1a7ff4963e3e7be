"""Loss and shares by their definitions, and one answer for silence."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from motifold import CNMF, explained_power
from motifold.io import Recording
from motifold.model.losses import SQUARED, Loss
from motifold.model.measures import Deviance, Power


def test_shares_and_loss_by_their_definitions():
    rng = np.random.default_rng(0)
    X, parts, constant = rng.random((20, 3)), rng.random((2, 20, 3)) / 3, rng.random(3) / 3
    X[4:7, 1] = np.nan
    X_hat = parts.sum(axis=0) + constant
    power = Power(2)
    for a, b in ((0, 6), (6, 12), (12, 20)):
        power.add(X[a:b], X_hat[a:b], parts[:, a:b], constant)
    seen = ~np.isnan(X)
    total = (X[seen] ** 2).sum()

    def gain(fit):
        """What a fit explains."""
        return 1 - ((X - fit)[seen] ** 2).sum() / total

    assert power.explained == pytest.approx(gain(X_hat))
    assert power.loss == pytest.approx(np.sqrt(1 - power.explained))
    # The mean of what each adds, over all orders in which the three may be added.
    players = [*parts, np.broadcast_to(constant, X.shape)]
    added = np.zeros(3)
    for order in permutations(range(3)):
        for i, k in enumerate(order):
            before = sum((players[j] for j in order[:i]), np.zeros(X.shape))
            added[k] += (gain(before + players[k]) - gain(before)) / 6
    np.testing.assert_allclose([*power.shares, power.background], added)
    np.testing.assert_allclose(power.alone, [gain(part) for part in parts])
    without = [gain(X_hat) - gain(X_hat - part) for part in parts]
    np.testing.assert_allclose(power.shares - power.overlaps, without)


@pytest.mark.parametrize("beta", [2, 1, 0, 0.5, 1.5, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shares_add_up_for_every_loss(beta, dtype):
    """With a background and beside missing entries: to what all explain together."""
    rng = np.random.default_rng(1)
    parts, constant = rng.gamma(0.5, size=(2, 200, 4)).astype(dtype), np.full(4, 0.3, dtype)
    X_hat = parts.sum(axis=0) + constant
    X = (X_hat * rng.gamma(3, 1 / 3, X_hat.shape)).astype(dtype)
    X[50:60, 1] = np.nan
    if beta == 1:
        X[rng.random(X.shape) < 0.3] = 0
    means = np.nanmean(X, axis=0, dtype=np.float64)
    made = np.stack([*parts.sum(axis=1, dtype=np.float64), 200.0 * constant])
    measure = Power(2) if beta == 2 else Deviance(Loss(beta), means * made / made.sum(axis=0))
    for a in range(0, 200, 40):
        measure.add(X[a : a + 40], X_hat[a : a + 40], parts[:, a : a + 40], constant)
    assert measure.shares.shape == (2,)
    together = measure.shares.sum() + measure.background
    assert together == pytest.approx(measure.explained, rel=1e-5)
    assert together > 0.1


def test_a_motif_gains_by_when_it_comes():
    """One that is there all the time is a constant, and explains no deviance; the other has all."""
    X = np.array([[1.0, 1.0], [9.0, 1.0], [1.0, 9.0], [1.0, 1.0]])
    ever, burst = np.ones((4, 2)), X - 1
    means = np.array([ever.mean(axis=0), burst.mean(axis=0), np.zeros(2)])
    measure = Deviance(Loss(1.0), means)
    measure.add(X, X, [ever, burst])
    np.testing.assert_allclose(measure.shares, [0, 1], atol=1e-12)


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
    assert explained_power(model, zeros).tolist() == [0]
