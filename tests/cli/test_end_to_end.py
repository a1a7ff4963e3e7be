"""From a file to a report in one command, for each kind of file."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from commands import ok

import motifold
from motifold.datasets import make_sequences

X = make_sequences(400, 12, 2, 8, random_state=0).X


def fit_and_report(folder, *arguments):
    """The one command; the model and the text of the report."""
    model, report = folder / "model.npz", folder / "report.html"
    ok("fit", *arguments, "-o", model, "--report", report)
    text = report.read_text()
    assert text.count("<img") >= 5
    return motifold.load(model), text


def test_mapped_npy(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, X)
    model, _ = fit_and_report(tmp_path, path, "-k", 2, "-l", "0.4s", "--rate", 20)
    assert model.components_.shape == (2, 8, 12)


def test_report_and_events_read_as_the_fit_did(tmp_path):
    path, model, report = tmp_path / "a.npz", tmp_path / "model.npz", tmp_path / "report.html"
    np.savez(path, counts=X.T, other=X)
    options = ["--key", "counts", "--orientation", "features_first", "--rate", "20"]
    ok("fit", path, *options, "-k", 2, "-l", 8, "-o", model)
    ok("report", model, "--data", path, "-o", report)
    assert "20 s" in report.read_text()
    of_the_fit = ok("events", model).stdout
    assert of_the_fit.startswith("motif,segment,time,bin,strength,start,peak,observed,partial\n")
    rows = np.loadtxt(of_the_fit.splitlines()[1:], delimiter=",")
    np.testing.assert_allclose(rows[:, 2], rows[:, 3] / 20)
    assert set(rows[:, 0]) == {0, 1}
    anew = ok("events", model, "--data", path, "--threshold", 0.3).stdout.splitlines()
    np.testing.assert_array_equal(np.loadtxt(anew[1:], delimiter=",")[:, 3], rows[:, 3])
    ok("events", model, "-o", tmp_path / "e.csv")
    assert (tmp_path / "e.csv").read_text() == of_the_fit


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "a.zarr"
    array = zarr.open_group(str(path), mode="w").create_array("x", shape=X.shape, dtype="f4")
    array[:] = X
    model, text = fit_and_report(tmp_path, path, "-k", 2, "-l", "0.5s", "--rate", 16)
    assert model.components_.shape == (2, 8, 12)
    assert model.components_.dtype == np.float32
    assert "a.zarr" in text


def test_nwb(tmp_path):
    pynwb = pytest.importorskip("pynwb")
    file = pynwb.NWBFile("a test", "test-1", datetime(2020, 1, 1, tzinfo=UTC))
    rng = np.random.default_rng(0)
    starts = np.cumsum(rng.uniform(1.0, 2.0, 30))
    for unit in range(8):
        file.add_unit(spike_times=np.sort(starts + 0.05 * unit + rng.normal(0, 0.005, 30)))
    path = tmp_path / "a.nwb"
    with pynwb.NWBHDF5IO(path, "w") as writer:
        writer.write(file)
    model, text = fit_and_report(tmp_path, path, "--bin-size", 0.05, "-k", 1, "-l", "0.5s")
    assert model.components_.shape == (1, 10, 8)
    assert "unit 7" in text
    # The units fire one after the other: so they peak in the motif.
    assert np.all(np.diff(model.components_[0].argmax(axis=0)) >= 0)


@pytest.mark.slow
def test_songbird(tmp_path, data_file):
    path = data_file("MackeviciusData.mat")
    model, text = fit_and_report(
        tmp_path, path, "--key", "SONG", "--orientation", "features_first", "--rate", "SONGfs",
        "-k", 3, "-l", "0.25s", "--max-iter", 30, "--tol", 0.05,
    )  # fmt: skip
    assert model.components_.shape == (3, 50, 141)
    assert "22.2 s" in text


@pytest.mark.slow
def test_speech(tmp_path, data_file):
    pytest.importorskip("soundfile")
    path = data_file("spoken_digits_two_speakers_8k.wav")
    _, text = fit_and_report(
        tmp_path, path, "--hop", 256, "-k", 4, "-l", "0.3s", "--max-iter", 15, "--tol", 0.2
    )
    assert text.count("<audio") == 8
