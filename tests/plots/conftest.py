"""One small fit for all pictures, and ways to look into a figure."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.datasets import make_sequences


@pytest.fixture(scope="session")
def X() -> np.ndarray:
    return make_sequences(200, 40, 3, 10, random_state=0).X


@pytest.fixture(scope="session")
def model(X: np.ndarray) -> CNMF:
    return CNMF(3, 10, random_state=0, tol=0, max_iter=30).fit(X)


@pytest.fixture(scope="session")
def long_model() -> CNMF:
    """A model whose recording has a million bins: a small fit that was given long activations."""
    rng = np.random.default_rng(0)
    model = CNMF(2, 4, random_state=0, tol=0, max_iter=3).fit(rng.random((50, 3)))
    model.activations_ = np.zeros((10**6, 2))
    model.activations_[123_456, 0] = 1.0
    model.lengths_ = [10**6]
    return model
