"""What is exported is read back with the other program's own reader."""

import csv

import numpy as np
import pytest
import scipy.io

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.exports import export_csv, export_mat, export_npz, fit_seqnmf


@pytest.fixture(scope="module")
def model():
    X = make_sequences(120, 7, 2, 5, random_state=0).X
    model = CNMF(2, 5, random_state=0, max_iter=20, tol=0, background=True)
    model.fit(X, lengths=[50, 70])
    model.origin_ = {"source": "x.npy", "rate": 10.0, "options": {}, "starts": [100.0, 200.0]}
    model.feature_names_in_ = np.array([f"unit {n}" for n in range(7)], object)
    return model


def seqnmf_reconstruct(W, H, bounds):
    """seqNMF's helper.reconstruct, of each segment."""
    N, _, L = W.shape
    X_hat = np.zeros((N, H.shape[1]))
    for start, stop in bounds:
        for lag in range(L):
            X_hat[:, start + lag : stop] += W[:, :, lag] @ H[:, start : stop - lag]
    return X_hat


def test_mat_is_in_the_layout_of_seqnmf(model, tmp_path):
    export_mat(model, tmp_path / "m.mat")
    found = scipy.io.loadmat(tmp_path / "m.mat")
    assert found["W"].shape == (7, 2, 5)
    assert found["H"].shape == (2, 120)
    X_hat = seqnmf_reconstruct(found["W"], found["H"], [(0, 50), (50, 120)]) + found["background"]
    expected = model.inverse_transform(model.activations_, lengths=[50, 70])
    np.testing.assert_allclose(X_hat.T, expected, atol=1e-12)
    assert found["lengths"].tolist() == [[50, 70]]
    assert found["rate"] == 10
    assert [str(name[0]) for name in found["features"].ravel()] == [f"unit {n}" for n in range(7)]
    assert found["loss"] == model.loss_


def test_npz_needs_no_pickle(model, tmp_path):
    export_npz(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["components"], model.components_)
        np.testing.assert_array_equal(found["activations"], model.activations_)
        assert found["features"].tolist() == [f"unit {n}" for n in range(7)]
        assert found["times"][[0, 49, 50]].tolist() == [100.0, 104.9, 200.0]
        np.testing.assert_allclose(found["lags"], [0, 0.1, 0.2, 0.3, 0.4])


def test_tables_hold_every_number(model, tmp_path):
    export_csv(model, tmp_path / "new" / "folder")
    with open(tmp_path / "new" / "folder" / "motifs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    components = np.zeros_like(model.components_)
    for row in rows:
        n = int(row["feature"].split()[1])
        components[int(row["motif"]), int(row["lag"]), n] = float(row["value"])
    np.testing.assert_allclose(components, model.components_, rtol=1e-8)
    with open(tmp_path / "new" / "folder" / "activations.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    H = np.array([[float(row["motif0"]), float(row["motif1"])] for row in rows])
    np.testing.assert_allclose(H, model.activations_, rtol=1e-8)
    assert (rows[50]["segment"], rows[50]["time"]) == ("1", "200")


def test_a_file_that_cannot_be_written_leaves_the_old_one(model, tmp_path, monkeypatch):
    (tmp_path / "m.mat").write_text("mine")

    def fail(*args, **options):
        raise OSError("no room")

    monkeypatch.setattr("motifold.exports.factors.savemat", fail)
    with pytest.raises(OSError, match="no room"):
        export_mat(model, tmp_path / "m.mat")
    assert (tmp_path / "m.mat").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["m.mat"]


def test_matlabs_doubles_are_whole_numbers():
    X = make_sequences(80, 6, 2, 4, random_state=1).X
    found = fit_seqnmf(np.asfortranarray(X.T), 2.0, 4.0, random_state=3.0, max_iter=15.0, tol=0.0)
    model = CNMF(2, 4, random_state=3, max_iter=15, tol=0).fit(X)
    np.testing.assert_array_equal(found["W"], model.components_.transpose(2, 0, 1))
    np.testing.assert_allclose(found["X_hat"], model.inverse_transform(model.activations_).T)
    assert found["loss"] == model.loss_
    with pytest.raises(ValueError, match="features by time"):
        fit_seqnmf(np.ones(5), 1, 2)
    with pytest.raises(TypeError, match="lambda_"):
        fit_seqnmf(X.T, 1, 2, lambda_=0.1)
