"""One ``order=`` for all pictures: sorted, unless features have an order of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter1d
from sklearn.exceptions import NotFittedError

from motifold import CNMF, find_consensus, sort_features
from motifold.plots import (
    plot_consensus,
    plot_contributions,
    plot_factors,
    plot_match,
    plot_motifs,
    plot_raster,
    plot_reconstruction,
)

PICTURES = {
    "motifs": lambda model, X, **more: plot_motifs(model, **more),
    "match": lambda model, X, **more: plot_match(model, model, **more),
    "consensus": lambda model, X, **more: plot_consensus(find_consensus([model, model]), **more),
    "reconstruction": plot_reconstruction,
    "contributions": plot_contributions,
    "factors": plot_factors,
}


@pytest.fixture(scope="module")
def shuffled(X: np.ndarray) -> np.ndarray:
    """Neurons in no order."""
    return X[:, np.random.default_rng(0).permutation(40)]


@pytest.fixture(scope="module")
def of_shuffled(shuffled: np.ndarray) -> CNMF:
    return CNMF(3, 10, random_state=0, tol=0, max_iter=30).fit(shuffled)


def drawn(figure: Figure) -> tuple[np.ndarray, str, bool]:
    """An image of all features, what their axis says, and whether it runs upwards."""
    axes = (figure.subfigs[0] if figure.subfigs else figure).axes[0]
    bottom, top = axes.get_ylim()
    return np.asarray(axes.images[0].get_array()), axes.get_ylabel(), bottom < top


@pytest.mark.parametrize("picture", PICTURES)
def test_neurons_are_sorted_and_frequencies_are_not(picture, of_shuffled, shuffled):
    draw = PICTURES[picture]
    own, label, upwards = drawn(draw(of_shuffled, shuffled, order="own"))
    assert (label, upwards) == ("feature", False)
    expected = sort_features(of_shuffled).order
    if picture == "consensus":
        expected = sort_features(find_consensus([of_shuffled, of_shuffled]).components).order
    for options in ({}, {"order": "auto"}, {"order": "sorted"}, {"order": expected}):
        image, label, upwards = drawn(draw(of_shuffled, shuffled, **options))
        np.testing.assert_array_equal(image, own[expected])
        assert (label, upwards) == ("feature (sorted)", False)
    found = replace(sort_features(of_shuffled), order=np.arange(40)[::-1])
    np.testing.assert_array_equal(drawn(draw(of_shuffled, shuffled, order=found))[0], own[::-1])
    axis = {"feature_axis": np.linspace(100, 900, 40)}
    image, label, upwards = drawn(draw(of_shuffled, shuffled, **axis))
    np.testing.assert_array_equal(image, own)
    assert (label, upwards) == ("frequency (Hz)", True)
    with pytest.raises(ValueError, match="order must be"):
        draw(of_shuffled, shuffled, order="pretty")
    with pytest.raises(ValueError, match="each of the 40 features once"):
        draw(of_shuffled, shuffled, order=[0, 1, 2])


@pytest.mark.parametrize("picture", PICTURES)
def test_a_spectrogram_without_frequencies_is_not_sorted_and_right_side_up(picture, X):
    smooth = gaussian_filter1d(X, 3, axis=1)
    model = CNMF(3, 10, random_state=0, tol=0, max_iter=30).fit(smooth)
    _, label, upwards = drawn(PICTURES[picture](model, smooth))
    assert (label, upwards) == ("feature", True)


def test_a_sound_can_be_sorted(shuffled):
    """Also where its rows are octaves, of which there are others than features."""
    X = np.tile(shuffled, 5)
    model = CNMF(3, 10, random_state=0, tol=0, max_iter=5).fit(X)
    figure = plot_factors(model, X, feature_axis=np.linspace(0, 4000, 200), order="sorted")
    assert figure.axes[0].images[0].get_array().shape[0] == 200


def test_what_decided_before_decides_still(of_shuffled, shuffled):
    own, _, _ = drawn(plot_factors(of_shuffled, shuffled, sort_features=False))
    found, _, _ = drawn(plot_factors(of_shuffled, shuffled, sort_features=True))
    order = sort_features(of_shuffled).order
    np.testing.assert_array_equal(found, own[order])
    rasters = [
        plot_raster(of_shuffled, shuffled),
        plot_raster(shuffled, sort_features(of_shuffled)),
        plot_raster(shuffled, order=sort_features(of_shuffled)),
        plot_raster(X=shuffled, order=sort_features(of_shuffled)),
    ]
    for figure in rasters:
        data = next(axes for axes in figure.axes if axes.get_label() == "data")
        np.testing.assert_array_equal(data.images[0].get_array(), shuffled[:, order].T)
    with pytest.raises(TypeError, match=r"plot_raster\(model, X\)"):
        plot_raster(shuffled)


def test_a_model_that_is_none_or_not_fitted_is_told(model, X):
    with pytest.raises(TypeError, match="not of type ndarray: the model comes first"):
        plot_factors(X, model)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        plot_motifs(CNMF(2, 3))
