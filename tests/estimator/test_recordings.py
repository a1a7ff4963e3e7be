"""Recordings, and pynapple's objects, in place of arrays: what they carry is used and kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.io import Recording, from_pynapple

X = make_sequences(200, 6, 2, 5, random_state=0).X


def new_model() -> CNMF:
    return CNMF(2, 5, random_state=0, tol=1e-2, max_iter=60)


@pytest.fixture
def recording() -> Recording:
    return Recording(
        X, "a", 20.0, tuple("abcdef"), (120, 80), starts=(3.0, 50.0), options={"key": "x"}
    )


def test_fit_transform_and_score(recording):
    by_hand = new_model().fit(X, lengths=[120, 80])
    model = new_model()
    H = model.fit_transform(recording)
    np.testing.assert_array_equal(model.components_, by_hand.components_)
    assert model.lengths_ == [120, 80]
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.origin_ == {
        "source": "a", "rate": 20.0, "options": {"key": "x"}, "starts": [3.0, 50.0]
    }  # fmt: skip
    np.testing.assert_array_equal(H, by_hand.fit_transform(X, lengths=[120, 80]))
    np.testing.assert_array_equal(
        model.transform(recording), by_hand.transform(X, lengths=[120, 80])
    )
    assert model.score(recording) == by_hand.score(X, lengths=[120, 80])
    assert by_hand.origin_ is None


def test_missing_entries_are_the_mask():
    holes = X.copy()
    holes[10:30, 2] = np.nan
    recording = Recording(holes, "a", missing="mask")
    mask = ~np.isnan(holes)
    found, by_hand = new_model().fit(recording), new_model().fit(holes, mask=mask)
    np.testing.assert_array_equal(found.components_, by_hand.components_)


def test_sparse(recording):
    few = np.where(X > 0.3, X, 0)
    model = new_model().fit(Recording(csr_array(few), "counts", 10.0))
    np.testing.assert_array_equal(model.components_, new_model().fit(csr_array(few)).components_)


def test_another_fit_forgets_the_last_one(recording):
    model = new_model().fit(recording)
    model.fit(X)
    assert model.origin_ is None
    assert not hasattr(model, "feature_names_in_")


def test_what_does_not_fit_together(recording):
    with pytest.raises(ValueError, match="the recording, which has its own segments"):
        new_model().fit(recording, lengths=[100, 100])
    model = new_model().fit(recording)
    other = Recording(X, "b", 20.0, tuple("abdcef"))
    with pytest.raises(ValueError, match="feature 2 is 'd', that of the model 'c'"):
        model.transform(other)


def test_pynapple():
    nap = pytest.importorskip("pynapple")
    times = np.r_[10 + np.arange(120) / 20, 40 + np.arange(80) / 20]
    epochs = nap.IntervalSet([10, 40], [16, 44])
    frame = nap.TsdFrame(t=times, d=X, columns=list("abcdef"), time_support=epochs)
    model = new_model().fit(frame)
    assert model.lengths_ == [120, 80]
    assert model.origin_["starts"] == [10, 40]
    assert model.origin_["rate"] == pytest.approx(20)
    np.testing.assert_array_equal(
        model.components_, new_model().fit(from_pynapple(frame)).components_
    )
    assert model.transform(frame).shape == (200, 2)
    with pytest.raises(ValueError, match="the TsdFrame, which has its own segments"):
        model.fit(frame, lengths=[200])
    group = nap.TsGroup({0: nap.Ts([0.1, 0.2]), 1: nap.Ts([0.3, 0.4])})
    with pytest.raises(TypeError, match=r"from_pynapple\(group, bin_size=0\.02\)"):
        new_model().fit(group)
    with pytest.raises(TypeError, match="not a Ts"):
        new_model().fit(nap.Ts([0.1, 0.2]))


def test_a_list_of_spikes_is_told_of():
    rng = np.random.default_rng(0)
    rows = np.c_[rng.integers(0, 9, 100), np.sort(rng.uniform(0, 20, 100))]
    with pytest.warns(UserWarning, match=r"X looks like a list of spikes.*from_spikes"):
        CNMF(1, 2, random_state=0, tol=1e-1).fit(rows)
