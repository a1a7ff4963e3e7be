"""``--negatives keep``, from the file to the report."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold import CNMF
from motifold.io import Recording, RecordingError, read
from motifold.report import write_report

X = 0.3 * np.random.default_rng(0).standard_normal((200, 4))
for start in range(4, 190, 17):
    X[start + np.arange(4), np.arange(4)] += 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("negative")
    np.save(folder / "x.npy", X)
    fit = ("fit", folder / "x.npy", "-k", 1, "-l", 4, "-o", folder / "model.npz")
    ok(*fit, "--negatives", "keep", "--report", folder / "report.html")
    return folder


def test_a_fit_refuses_and_names_the_option(folder, tmp_path):
    answer = run("fit", folder / "x.npy", "-k", 1, "-l", 4, "-o", tmp_path / "m.npz")
    assert answer.exit_code == 3
    assert "--negatives keep" in answer.output


def test_a_fit_keeps_them(folder):
    model = motifold.load(folder / "model.npz")
    assert model.allow_negative
    assert model.origin_["options"]["negatives"] == "keep"
    assert model.loss_ == pytest.approx(
        CNMF(1, 4, allow_negative=True, random_state=0).fit(X).loss_
    )
    assert "<h2>Motifs</h2>" in (folder / "report.html").read_text(encoding="utf-8")


def test_commands_on_the_model_read_as_it_takes_them(folder, tmp_path):
    ok("transform", folder / "model.npz", folder / "x.npy", "-o", tmp_path / "h.npy")
    assert np.load(tmp_path / "h.npy").shape == (200, 1)
    events = ok("events", folder / "model.npz", "--data", folder / "x.npy", "--json").stdout
    assert len(json.loads(events)["events"]) >= 11
    swept = ("sweep", folder / "x.npy", "-k", "1", "-l", 4, "--seeds", 1, "--tol", 0.1)
    ok(*swept, "--negatives", "keep", "--n-null", 40, "-o", tmp_path / "sweep.csv")
    assert "allow_negative" in (tmp_path / "sweep.csv").read_text()


def test_a_model_that_does_not_take_them_refuses(folder, tmp_path):
    CNMF(1, 4, random_state=0).fit(np.abs(X)).save(tmp_path / "m.npz")
    asked = ("transform", tmp_path / "m.npz", folder / "x.npy", "--negatives", "keep")
    answer = run(*asked, "-o", tmp_path / "h.npy")
    assert answer.exit_code == 1
    assert "Negative values" in answer.output


def test_info_hints_at_it_unless_told(folder):
    assert "keep" in " ".join(json.loads(ok("info", folder / "x.npy", "--json").stdout)["hints"])
    told = ok("info", folder / "x.npy", "--negatives", "keep", "--json").stdout
    assert not [hint for hint in json.loads(told)["hints"] if "negative" in hint]


def test_read_keeps_them_and_checked_does_too(folder):
    recording = read(folder / "x.npy", negatives="keep")
    assert recording.signed
    assert (recording.checked().X == X).all()
    assert recording.checked("clip").X.min() == 0
    with pytest.raises(RecordingError, match='negatives="keep"'):
        read(folder / "x.npy").checked()


def test_a_report_of_a_model_that_takes_them(tmp_path):
    model = CNMF(1, 4, allow_negative=True, random_state=0).fit(X)
    write_report(tmp_path / "r.html", model, Recording(X, "made up"))
    assert (tmp_path / "r.html").exists()
