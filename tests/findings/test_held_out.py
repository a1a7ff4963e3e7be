"""Hold-out in one recording: what is cut, and that nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from motifold import CNMF, hold_out
from motifold.datasets import make_sequences
from motifold.findings.trial import SweepData
from motifold.findings.unseen import Unseen
from motifold.io import Recording
from motifold.prepare import Preparation, ScaleFeatures, Smooth

X = make_sequences(900, 10, 2, 6, activation_probability=0.04, random_state=0).X


@pytest.mark.parametrize("lengths", [None, [100, 500, 300], [30] * 30])
@pytest.mark.parametrize("n_blocks", [None, 1, 4])
def test_no_occurrence_of_a_motif_is_in_both_parts(lengths, n_blocks):
    split = hold_out(X, 0.3, gap=5, lengths=lengths, n_blocks=n_blocks)
    assert split.share == pytest.approx(0.3, abs=0.04)
    assert not set(split.train) & set(split.test)
    ids = np.repeat(np.arange(len(lengths or [900])), lengths or [900])
    for t in split.test:
        near = split.train[np.abs(split.train - t) <= 5]
        assert (ids[near] != ids[t]).all()
    for rows, marks in ((split.train, split.train_segments), (split.test, split.test_segments)):
        together = marks[1:] == marks[:-1]
        assert ((np.diff(rows) == 1) & (ids[rows][1:] == ids[rows][:-1]) == together).all()
    starts = np.array([a for a, _ in split.stretches])
    if n_blocks is None and lengths is None:
        assert starts[0] < 450 < starts[-1], "early and late times are both tested"


def test_trials_are_not_cut_where_it_can_be_helped():
    split = hold_out(X, 0.3, gap=5, lengths=[30] * 30)
    assert all(a % 30 == 0 and b % 30 == 0 for a, b in split.stretches)
    assert len(split.train) + len(split.test) == 900, "no gap is needed between segments"


def test_the_recording_is_known_again():
    split = hold_out(X, 0.3, gap=5)
    assert split.is_of(X)
    other = X.copy()
    other[5, 5] += 1e-9
    assert not split.is_of(other)
    assert not split.is_of(X[:-1])
    assert hold_out(csr_array(X), 0.3, gap=5).stretches == split.stretches


def test_mistakes_are_told():
    with pytest.raises(ValueError, match="fraction must be between 0 and 1, not 30"):
        hold_out(X, 30, gap=5)
    with pytest.raises(
        ValueError, match=r"to test on: too few for motifs of 101 lags. Hold out more"
    ):
        hold_out(X, 0.1, gap=100)
    with pytest.raises(ValueError, match=r"to fit: too few for motifs of 101 lags. Hold out less"):
        hold_out(X, 0.9, gap=100)
    with pytest.raises(TypeError, match="stack them"):
        hold_out([X, X], 0.3, gap=5)


def test_what_is_unseen_is_prepared_by_the_fit_and_not_across_borders():
    split = hold_out(X, 0.3, gap=5, n_blocks=2)
    preparation = Preparation([Smooth(2.0), ScaleFeatures()])
    train = preparation.fit_transform(X[split.train], segments=split.train_segments)
    model = CNMF(2, 6, random_state=0, tol=0.1).fit(train, segments=split.train_segments)
    model.preparation_, model.held_out_ = preparation, split
    unseen = Unseen.of(model, Recording(X, "x"))
    assert unseen.kind == "held out"
    changed = X.copy()
    changed[split.train] = 0  # what was fitted has no part in it
    expected = preparation.transform(changed[split.test], segments=split.test_segments)
    np.testing.assert_array_equal(unseen.X, expected)
    assert Unseen.of(model, Recording(X + 1, "x")).kind == "other"
    whole = CNMF(2, 6, random_state=0, tol=0.1).fit(X)
    assert Unseen.of(whole, Recording(X, "x")) is None


def test_a_sweep_learns_its_preparation_from_the_training_rows():
    preparation = Preparation([Smooth(1.0), ScaleFeatures()])
    train = np.r_[0:300, 400:900]
    data = SweepData.from_arrays([X], None, preparation)
    found = data.prepared(train)
    changed = X.copy()
    changed[300:400] *= 50
    again = SweepData.from_arrays([changed], None, preparation).prepared(train)
    np.testing.assert_array_equal(again.X[train], found.X[train])
    assert found.preparation is None
    mask = np.random.default_rng(0).random(X.shape) < 0.9
    some = SweepData.from_arrays([np.where(mask, X, 0)], [mask], preparation).prepared()
    hidden = np.where(mask, X, np.nan)
    np.testing.assert_allclose(some.X, np.nan_to_num(preparation.fit_transform(hidden)))
