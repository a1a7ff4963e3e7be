"""What a fit allocates beside X: what docs/how-to/large.md promises, in arrays of T × K numbers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from motifold import CNMF

# Long and thin: there the activations are no small part of X.
T, N, K, L = 60_000, 12, 10, 2
# Blocks, statistics, and what the interpreter does meanwhile.
OTHER = 6 * 2**20

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def arrays_taken(dtype, act, **parameters) -> float:
    """The peak of what ``act(model, X)`` allocates, in arrays of T × K numbers of that type."""
    X = np.random.default_rng(0).random((T, N)).astype(dtype)
    model = CNMF(K, L, tol=0, max_iter=3, random_state=0, n_jobs=1, **parameters)
    model.fit(X[:2000])  # compiles, and lets transform be asked
    tracemalloc.start()
    try:
        act(model, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return (peak - OTHER) / (T * K * np.dtype(dtype).itemsize)


@pytest.mark.parametrize(
    ("dtype", "acceleration", "most"),
    [
        (np.float32, None, 7),
        (np.float64, None, 7),
        (np.float32, "auto", 15),
        (np.float64, "auto", 11),
    ],
)
def test_a_fit_takes_no_more_arrays_than_promised(dtype, acceleration, most):
    def fit(model, X) -> None:
        model.fit(X)

    assert arrays_taken(dtype, fit, acceleration=acceleration) <= most


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 12), (np.float64, 8)])
def test_transform_takes_no_more_arrays_than_promised(dtype, most):
    def transform(model, X) -> None:
        model.transform(X)

    assert arrays_taken(dtype, transform) <= most
