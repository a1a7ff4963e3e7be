"""The table of features: which motif each belongs to, and when it peaks there."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.findings import feature_table


def test_a_row_for_each_feature():
    motifs = np.zeros((2, 4, 4))
    motifs[1, 3, 0] = 0.5
    motifs[0, 1, 0] = 0.1
    motifs[0, 2, 1] = 0.7
    motifs[0, 0, 3] = 0.2
    table = feature_table(motifs, rate=20, names=["u7", "u3", "u1", "u9"])
    assert table["name"].tolist() == ["u9", "u3", "u7", "u1"]  # by motif and lag; in none: last
    assert table["feature"].tolist() == [3, 1, 0, 2]
    assert table["motif"].tolist() == [0, 0, 1, -1]
    assert table["lag"].tolist() == [0, 2, 3, -1]
    np.testing.assert_allclose(table["lag_seconds"], [0, 0.1, 0.15, np.nan])
    assert table["weight"].tolist() == [0.2, 0.7, 0.5, 0.0]
    np.testing.assert_allclose(table["share"], [1, 1, 0.25 / 0.26, 0])
    assert "lag_seconds" not in feature_table(motifs).columns
    assert feature_table(motifs)["name"].tolist() == ["3", "1", "0", "2"]
    with pytest.raises(ValueError, match="names"):
        feature_table(motifs, names=["a"])
    with pytest.raises(ValueError, match="rate"):
        feature_table(motifs, rate=0)


def test_a_model_lends_its_names():
    X = np.random.default_rng(0).random((9, 2))
    model = CNMF(1, 2, random_state=0, max_iter=2, tol=0).fit(X)
    model.feature_names_in_ = np.array(["left", "right"], dtype=object)
    assert sorted(feature_table(model)["name"]) == ["left", "right"]
