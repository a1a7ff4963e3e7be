"""Pictures of data below zero: colours on both sides, zero in the middle."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF, sort_features
from motifold.plots import plot_contributions, plot_factors, plot_raster, plot_reconstruction
from motifold.plots.decimate import pool
from motifold.plots.style import IMAGE_MAP, SIGNED_MAP, scale, shades

X = np.random.default_rng(0).standard_normal((80, 5))
X[::9] += 3


@pytest.fixture(scope="module")
def model():
    return CNMF(2, 4, allow_negative=True, random_state=0).fit(X)


def test_zero_is_white_and_darkness_grows_to_both_sides():
    white = SIGNED_MAP(0.5)
    assert min(white[:3]) > 0.98
    grey = SIGNED_MAP(np.linspace(0, 1, 101))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey[:50]) > -1e-6).all()
    assert (np.diff(grey[51:]) < 1e-6).all()
    assert SIGNED_MAP(1.0) == IMAGE_MAP(1.0)


def test_the_scale_reaches_as_far_below_as_above():
    norm = scale(np.array([-1.0, 0.0, 4.0, np.nan]))
    assert norm(0.0) == pytest.approx(0.5)
    assert shades(norm)["cmap"] is SIGNED_MAP
    assert shades(scale(np.array([0.0, 4.0])))["cmap"] is IMAGE_MAP


def test_pooling_keeps_dips():
    values = np.array([[0.5, -3.0], [1.0, 1.0], [np.nan, -1.0], [-2.0, np.nan]])
    assert pool(values, np.array([0, 2, 4])).tolist() == [[1.0, -3.0], [-2.0, -1.0]]


def test_every_picture_of_the_recording_has_it(model):
    pictures = {
        "data": [
            plot_factors(model, X),
            plot_reconstruction(X, model, residual=True),
            plot_contributions(model, X),
            plot_raster(X, sort_features(model.components_)),
        ]
    }
    for figure in pictures["data"]:
        axes = next(axes for axes in figure.axes if axes.get_label() == "data")
        image = axes.images[0]
        assert image.get_cmap() is SIGNED_MAP
        assert image.norm.vmin == -image.norm.vmax
