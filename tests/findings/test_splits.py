"""Blocks of time with gaps: nothing leaks, junctions are marked, scikit-learn passes them on."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate

from motifold import CNMF, BlockTimeSeriesSplit, mark_junctions
from motifold.findings.splits import observed_entries


def test_blocks_cover_everything_once_and_keep_their_distance():
    X = np.zeros((103, 2))
    cv = BlockTimeSeriesSplit(4, gap=7)
    tests = []
    for train, test in cv.split(X):
        tests += test.tolist()
        distance = np.abs(train[:, None] - test).min(axis=1)
        assert distance.min() == 8
        # Nothing more than the gap is left out.
        left_out = np.setdiff1d(np.arange(103), np.r_[train, test])
        assert np.abs(left_out[:, None] - test).min(axis=1).max() == 7
    assert tests == list(range(103))
    assert cv.get_n_splits(X) == 4


def test_every_junction_is_marked():
    X = np.zeros((60, 1))
    own = np.repeat([0, 1], [25, 35])
    cv = BlockTimeSeriesSplit(3, gap=5)
    ids = cv.segments(X, own)
    assert (np.flatnonzero(np.diff(ids)) + 1).tolist() == [20, 25, 40]
    for train, _ in cv.split(X):
        jumps = np.flatnonzero(np.diff(train) != 1)
        assert (np.diff(ids[train])[jumps] != 0).all()
        exact = mark_junctions(train, own)
        expected = (np.diff(train) != 1) | (np.diff(own[train]) != 0)
        np.testing.assert_array_equal(np.diff(exact) != 0, expected)


def test_scikit_learn_passes_the_segments_to_fit(monkeypatch):
    X = np.random.default_rng(0).random((60, 3))
    cv = BlockTimeSeriesSplit(3, gap=5)
    seen = []
    original = CNMF.fit

    def fit(self, X, y=None, *, segments=None, **options):
        seen.append(segments)
        return original(self, X, y, segments=segments, **options)

    monkeypatch.setattr(CNMF, "fit", fit)
    with sklearn.config_context(enable_metadata_routing=True):
        model = CNMF(1, 5, random_state=0, tol=0, max_iter=2)
        model.set_fit_request(segments=True).set_score_request(segments=True)
        result = cross_validate(model, X, cv=cv, params={"segments": cv.segments(X)})
    assert len(result["test_score"]) == 3
    assert [len(np.unique(ids)) for ids in seen] == [2, 2, 2]
    assert seen[1].tolist() == [0] * 15 + [2] * 15


def test_bad_splits():
    with pytest.raises(ValueError, match="n_splits"):
        BlockTimeSeriesSplit(1)
    with pytest.raises(ValueError, match="gap must"):
        BlockTimeSeriesSplit(gap=-1)
    with pytest.raises(ValueError, match="nothing"):
        list(BlockTimeSeriesSplit(2, gap=9).split(np.zeros((10, 1))))
    with pytest.raises(ValueError, match="blocks"):
        list(BlockTimeSeriesSplit(20).split(np.zeros((10, 1))))


def test_a_share_of_the_entries_is_hidden():
    mask = observed_entries((30, 20), 0.1, np.random.default_rng(0))
    assert (mask.shape, int((~mask).sum())) == ((30, 20), 60)
