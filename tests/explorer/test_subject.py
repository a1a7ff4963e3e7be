"""What is explored: any recording, of the fit or not, and none of it read whole."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from motifold import CNMF
from motifold.explorer.picture import View, placed, recording_pixels
from motifold.explorer.session import Session
from motifold.explorer.subject import Subject
from motifold.findings.annotations import recording_key
from motifold.io import Recording, read
from motifold.prepare import Preparation, SquareRoot


def test_the_recording_of_the_fit_has_its_activations(subject, model):
    assert subject.is_training
    assert subject.fit.H is model.activations_


def test_another_recording_has_its_own(model, X):
    other = Subject.of(model, X[::-1].copy())
    assert not other.is_training
    np.testing.assert_allclose(other.fit.H, model.transform(X[::-1]))


def test_a_sparse_recording(model, X):
    sparse = Subject.of(model, csr_array(np.where(X > 0.5, X, 0)), 50.0)
    assert sparse.fit.shape == X.shape
    np.testing.assert_array_equal(np.asarray(sparse.X.rows[5:9]), np.where(X > 0.5, X, 0)[5:9])


def test_wrong_features_are_told(model, X):
    with pytest.raises(ValueError, match="has 29 features, the model 30"):
        Subject.of(model, X[:, 1:])


def test_missing_entries_hide_events(model, X):
    holes = X.copy()
    event = int(model.activations_[:, 0].argmax())
    holes[event : event + 12] = np.nan
    found = Subject.of(model, holes)
    assert found.X.has_nan
    assert found.activations[event, 0] == 0


def test_a_mapped_recording_stays_on_disk(model, X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    found = Subject.of(model, read(tmp_path / "x.npy", rate=50.0))
    assert isinstance(found.X.rows, np.memmap)
    assert found.is_training
    assert found.name == "x.npy"


def test_lazily_read_data_is_asked_for_rows_alone(model, X, tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    from motifold.io.matrices import LazyMatrix

    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(500, 30))
    recording = read(tmp_path / "x.zarr")
    assert isinstance(recording.X, LazyMatrix)

    def refuse(self, dtype=None):
        raise AssertionError("read whole")

    monkeypatch.setattr(LazyMatrix, "load", refuse)
    found = Subject.of(model, recording)
    assert found.is_training
    assert found.darkest > 0
    assert len(found.key) == 32
    assert found.sorted_order.shape == (30,)
    assert not found.has_own_order
    np.testing.assert_array_equal(found.X.columns(10, 20, 100).values, X[10:20])


def test_the_clock_is_the_recordings(model, X):
    found = Subject.of(model, Recording(X, "x", 50.0, starts=(7200.0,)))
    assert found.clock.told(0) == "2:00:00.00"


def test_a_few_very_dark_entries_do_not_pale_the_rest(model, X):
    spiked = X.copy()
    spiked[7, 3] = 1e6
    assert Subject.of(model, spiked).darkest < 10 * X.max()


def test_data_below_zero(X, tmp_path):
    """It is white there: what motifs make is above."""
    data = X[:600] - 0.2
    below = CNMF(2, 12, allow_negative=True, random_state=0, tol=1e-2).fit(data)
    found = Subject.of(below, data)
    assert found.is_training
    assert found.darkest > 0
    assert not Subject.of(below, data[:300]).is_training
    session = Session(found, tmp_path / "model.npz.explore.json")
    pixels, _ = recording_pixels(session, View.of(found, (0, 50), None), "data")
    upwards = data[:50][:, placed(found, None)].T[::-1]
    assert (pixels[upwards <= 0] == 255).all()
    assert (pixels[upwards > 0.5] < 255).any()


def test_a_recording_is_prepared_as_that_of_the_fit(X):
    """And notes know it by its own values, as the commands do."""
    fitted = CNMF(2, 8, max_iter=5, tol=0, random_state=0).fit(np.sqrt(X))
    fitted.preparation_ = Preparation([SquareRoot()]).fit(X)
    found = Subject.of(fitted, Recording(X, "x.npy", 50.0))
    assert found.is_training
    np.testing.assert_allclose(np.asarray(found.X.rows[:50]), np.sqrt(X[:50]))
    assert found.key == recording_key(X)
    assert not Subject.of(fitted, X).is_training  # as it is
