"""Pictures of sparse recordings are those of arrays, and only what they show is made dense."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from motifold import CNMF, sort_features
from motifold.datasets import make_sequences
from motifold.findings.rows import RowsOnDemand
from motifold.plots import plot_contributions, plot_factors, plot_raster, plot_reconstruction

T = 300


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rates = make_sequences(T, 12, 2, 8, activation_probability=0.05, random_state=0).X
    return np.random.default_rng(1).poisson(rates).astype(float)


@pytest.fixture(scope="module")
def model(X) -> CNMF:
    return CNMF(2, 8, tol=1e-2, random_state=0).fit(X)


PICTURES = {
    "factors": lambda model, X, **options: plot_factors(model, X, **options),
    "contributions": lambda model, X, **options: plot_contributions(model, X, **options),
    "raster": lambda model, X, **options: plot_raster(X, sort_features(model), **options),
    "reconstruction": lambda model, X, **options: plot_reconstruction(X, model, **options),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(X, model, name, monkeypatch):
    asked = []
    rows = RowsOnDemand.__getitem__
    monkeypatch.setattr(
        RowsOnDemand, "__getitem__", lambda self, key: asked.append(key) or rows(self, key)
    )
    dense, entries = (
        PICTURES[name](model, given, time_range=(40, 90))
        for given in (X, [sparse.csr_array(X[:100]), sparse.coo_array(X[100:])])
    )
    images = [
        {axes.get_label(): axes.images[0].get_array() for axes in figure.axes if axes.images}
        for figure in (dense, entries)
    ]
    assert images[0].keys() == images[1].keys() != set()
    for label, image in images[0].items():
        np.testing.assert_allclose(images[1][label], image, err_msg=label)
    drawn = [key for key in asked if isinstance(key, slice)]
    assert any((key.start, key.stop) == (40, 90) for key in drawn)
