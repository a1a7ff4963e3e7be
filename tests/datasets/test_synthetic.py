"""The generator of the paper's synthetic data: its presets and its parameters."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.datasets import make_sequences

SIZES = (2000, 60, 4, 10)


def noise_of(data) -> float:
    """Standard deviation of what was added, where the truth is too large for the cut at zero."""
    X_true = np.zeros_like(data.X)
    for lag in range(data.components.shape[1]):
        X_true[lag:] += data.activations[: len(X_true) - lag] @ data.components[:, lag]
    large = X_true > 5
    return float(np.std((data.X - X_true)[large]))


@pytest.mark.parametrize(("preset", "noise"), [("figures", 0.1), ("text", 1.0)])
def test_presets(preset, noise):
    data = make_sequences(*SIZES, preset=preset, random_state=0)
    assert np.mean(data.activations > 0) == pytest.approx(0.9, abs=0.02)
    assert noise_of(data) == pytest.approx(noise, rel=0.1)


def test_default_is_the_figures_preset():
    default = make_sequences(*SIZES, random_state=3).X
    np.testing.assert_array_equal(
        default, make_sequences(*SIZES, preset="figures", random_state=3).X
    )


def test_given_values_win_over_the_preset():
    data = make_sequences(
        *SIZES, preset="text", activation_probability=0.3, noise=0, random_state=0
    )
    assert np.mean(data.activations > 0) == pytest.approx(0.3, abs=0.02)
    assert noise_of(data) < 1e-12


def test_alpha_sets_how_many_motifs_share_a_feature():
    def largest_share(alpha: float) -> float:
        W = make_sequences(*SIZES, alpha=alpha, random_state=0).components
        peaks = W.max(axis=1)
        return float(np.median(peaks.max(axis=0) / peaks.sum(axis=0)))

    assert largest_share(0.01) > 0.95
    assert largest_share(100) < 0.6


def test_sigma_is_the_width_of_a_bump():
    W = make_sequences(100, 40, 3, 200, sigma=0.05, random_state=0).components
    bumps = W.transpose(0, 2, 1).reshape(-1, 200)
    peak = bumps.argmax(axis=1)
    bumps = bumps[(peak > 40) & (peak < 160)]
    above_half = (bumps > bumps.max(axis=1, keepdims=True) / 2).sum(axis=1)
    # Full width at half maximum is 2.355 sigma; one lag is 2/L.
    np.testing.assert_allclose(above_half, 2.355 * 0.05 / (2 / 200), atol=1.01)


def test_unknown_preset():
    with pytest.raises(ValueError, match="figures, text"):
        make_sequences(*SIZES, preset="sparse")
