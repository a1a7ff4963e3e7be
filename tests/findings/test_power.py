"""Explained power against the reconstructions themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from motifold import CNMF, explained_power


def test_shares_by_their_definition():
    X = np.random.default_rng(0).random((60, 5))
    lengths = [25, 35]
    model = CNMF(3, 7, random_state=0, tol=0, max_iter=20).fit(X, lengths=lengths)
    expected = [
        max(0.0, float((2 * X * part - part**2).sum() / (X**2).sum()))
        for part in model.reconstruct_components()
    ]
    found = explained_power(X, model, model.activations_, lengths=lengths)
    np.testing.assert_allclose(found, expected)
    as_list = explained_power([X[:25], X[25:]], model, model.activations_)
    np.testing.assert_allclose(as_list, found)
    frame = pd.DataFrame(X).convert_dtypes()  # of pandas' own dtypes
    from_frame = explained_power(frame, model, model.activations_, lengths=lengths)
    np.testing.assert_allclose(from_frame, found)
    by_transform = explained_power(X, model, lengths=lengths)
    np.testing.assert_allclose(
        by_transform,
        explained_power(X, model, model.transform(X, lengths=lengths), lengths=lengths),
    )
    assert explained_power(np.zeros((30, 5)), model).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="n_components"):
        explained_power(X, model, np.zeros((60, 2)))
