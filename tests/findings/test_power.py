"""Explained power against the reconstructions themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from motifold import CNMF, explained_power
from motifold.findings.decomposition import Decomposition


def test_shares_by_their_definition():
    X = np.random.default_rng(0).random((60, 5))
    lengths = [25, 35]
    model = CNMF(3, 7, random_state=0, tol=0, max_iter=20).fit(X, lengths=lengths)
    parts = np.stack(list(model.reconstruct_components()))
    X_hat, power = parts.sum(axis=0), (X**2).sum()
    expected = [float(((2 * X - X_hat) * part).sum() / power) for part in parts]
    found = explained_power(model, X, model.activations_, lengths=lengths)
    np.testing.assert_allclose(found, expected)
    assert found.sum() == pytest.approx(1 - model.loss_**2)
    alone = explained_power(model, X, model.activations_, lengths=lengths, kind="alone")
    np.testing.assert_allclose(
        alone, [max(0.0, float((2 * X * part - part**2).sum() / power)) for part in parts]
    )
    unique = explained_power(model, X, model.activations_, lengths=lengths, kind="unique")
    without = [1 - ((X - X_hat + part) ** 2).sum() / power for part in parts]
    np.testing.assert_allclose(unique, 1 - model.loss_**2 - np.array(without))
    with pytest.raises(ValueError, match="kind"):
        explained_power(model, X, model.activations_, lengths=lengths, kind="all")
    as_list = explained_power(model, [X[:25], X[25:]], model.activations_)
    np.testing.assert_allclose(as_list, found)
    frame = pd.DataFrame(X).convert_dtypes()  # of pandas' own dtypes
    from_frame = explained_power(model, frame, model.activations_, lengths=lengths)
    np.testing.assert_allclose(from_frame, found)
    by_transform = explained_power(model, X, lengths=lengths)
    np.testing.assert_allclose(
        by_transform,
        explained_power(model, X, model.transform(X, lengths=lengths), lengths=lengths),
    )
    assert explained_power(model, np.zeros((30, 5))).tolist() == [0, 0, 0]
    with pytest.warns(FutureWarning, match=r"is explained_power\(model, X\) now"):
        of_old = explained_power(X, model, model.activations_, lengths=lengths)
    np.testing.assert_array_equal(of_old, found)
    with pytest.raises(ValueError, match="n_components"):
        explained_power(model, X, np.zeros((60, 2)))


def test_shares_of_signed_data_and_of_what_is_missing():
    """They add up where data is below zero, in single precision and beside missing entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)).astype(np.float32)
    X[20:28] += 3
    X[90:98] += 3
    mask = rng.random(X.shape) > 0.2
    model = CNMF(2, 8, allow_negative=True, random_state=0, max_iter=50, tol=0).fit(X, mask=mask)
    measured = Decomposition.of(model, np.where(mask, X, np.nan)).measured
    assert measured.explained == pytest.approx(1 - model.loss_**2, rel=1e-4)
    assert measured.shares.sum() == pytest.approx(measured.explained, rel=1e-4)
    assert (measured.shares > 0).all()
    assert (measured.overlaps >= -1e-7).all()
