"""Preparation and hold-out from the command line: said once, kept, and done to new data."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold.datasets import make_sequences
from motifold.prepare import to_pipeline

DATA = make_sequences(1500, 12, 2, 8, activation_probability=0.02, noise=0.1, random_state=0)
OPTIONS = ("--baseline", "0.1", "--sqrt", "--smooth", "50ms,causal", "--scale-features", "std")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    np.save(folder / "x.npy", DATA.X)
    np.save(folder / "new.npy", 2 * DATA.X[::-1])
    common = ("-k", 2, "-l", 8, "--rate", 20, "--tol", 0.01, "--n-init", 2)
    ok("fit", folder / "x.npy", *common, *OPTIONS, "-o", folder / "prepared.npz")
    answer = ok(
        "fit", folder / "x.npy", *common, "--scale-features", "std", "--test-fraction", 0.3,
        "-o", folder / "held.npz", "--report", folder / "held.html",
    )  # fmt: skip
    (folder / "told.txt").write_text(answer.output)
    ok("fit", folder / "x.npy", *common, "-o", folder / "plain.npz")
    return folder


def test_the_model_keeps_it_and_new_data_gets_it(folder):
    model = motifold.load(folder / "prepared.npz")
    told = [step.get_params() for step in model.preparation_.steps_]
    assert told == [
        {"quantile": 0.1},
        {},
        {"seconds": 0.05, "rate": 20.0, "causal": True},
        {"by": "std", "least": 0.1},
    ]
    ok("transform", folder / "prepared.npz", folder / "new.npy", "-o", folder / "h.npy")
    expected = to_pipeline(model).transform(np.load(folder / "new.npy"))
    np.testing.assert_array_equal(np.load(folder / "h.npy"), expected)
    data = ["--data", folder / "new.npy", "--threshold", 0.3]
    found = ok("events", folder / "prepared.npz", *data, "--json")
    events = motifold.find_events(model, expected, rate=20.0)
    assert len(json.loads(found.output)["events"]) == len(events)
    assert "looks back" in ok("info", folder / "prepared.npz").output


def test_the_report_says_what_was_done(folder):
    ok("report", folder / "prepared.npz", "--data", folder / "x.npy", "-o", folder / "p.html")
    text = (folder / "p.html").read_text()
    assert "The data was prepared, in this order: its quantile 0.1 subtracted" in text
    assert "not the recording" not in text
    assert "p-value (" not in text


def test_missing_entries_stay_missing(folder, tmp_path):
    X = DATA.X.copy()
    X[40:90, 3] = np.nan
    np.save(tmp_path / "x.npy", X)
    ok("fit", tmp_path / "x.npy", "-k", 2, "-l", 8, "--missing", "mask", "--smooth", 2,
       "--scale-features", "max", "-o", tmp_path / "m.npz", "--tol", 0.1,
       "--test-fraction", 0.3)  # fmt: skip
    model = motifold.load(tmp_path / "m.npz")
    rows = X[model.held_out_.train]
    smooth, scale = model.preparation_.steps_
    ids = model.held_out_.train_segments
    expected = np.nanmax(smooth.transform(rows, segments=ids), axis=0)
    np.testing.assert_allclose(scale.scale_, np.maximum(expected, 0.1 * np.median(expected)))


def test_motifs_are_found_in_the_rest_and_tested_on_what_was_held_out(folder):
    model = motifold.load(folder / "held.npz")
    split = motifold.hold_out(DATA.X, 0.3, gap=7)
    assert model.held_out_ == split
    train = DATA.X[split.train]
    np.testing.assert_allclose(model.preparation_.steps_[0].scale_, train.std(axis=0))
    fit = motifold.CNMF(2, 8, random_state=0, tol=0.01, n_init=2)
    fit.fit(train / train.std(axis=0), segments=split.train_segments)
    np.testing.assert_allclose(model.components_, fit.components_, rtol=1e-6, atol=1e-9)
    assert (
        "2 of 2 motifs are significant in the 30% of the recording"
        in (folder / "told.txt").read_text()
    )
    text = (folder / "held.html").read_text()
    assert "p-value (held-out data)" in text
    assert "were held out of the fit" in text


def test_the_command_tests_what_was_held_out_and_says_so(folder):
    found = ok("significance", folder / "held.npz", "-o", folder / "s.csv")  # knows its recording
    assert "stretches that were held out of the fit (22.5 s, 30%)" in found.output
    model, split = motifold.load(folder / "held.npz"), motifold.hold_out(DATA.X, 0.3, gap=7)
    test = model.preparation_.transform(DATA.X[split.test])
    expected = motifold.significance(test, model, segments=split.test_segments, random_state=0)
    with open(folder / "s.csv") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_allclose([float(row["p_value"]) for row in rows], expected.p_value)
    told = json.loads(
        ok("significance", folder / "held.npz", "--data", folder / "x.npy", "--json").output
    )
    assert (told["tested_on"], told["time_bins"], told["significant"]) == ("held out", 450, 2)


def test_another_recording_is_tested_if_it_is_declared_new(folder):
    given = "significance", folder / "plain.npz", "--data", folder / "new.npy", "--new-data"
    found = ok(*given, "--n-null", 100)
    assert "declared as new data" in found.output
    assert json.loads(ok(*given, "--json").output)["tested_on"] == "other"


def test_a_sweep_prepares_and_its_store_knows(folder, tmp_path):
    given = (
        "sweep", folder / "x.npy", "-k", 1, "-l", 4, "--seeds", 1, "--n-null", 0, "--n-jobs", 1,
        "--tol", 0.1, "-o", tmp_path / "s.csv",
    )  # fmt: skip
    ok(*given, "--sqrt")
    answer = run(*given)
    assert answer.exit_code == 1
    assert "after: square root" in answer.output


def test_a_suggestion_at_the_end_of_the_range_says_so(folder, tmp_path):
    answer = ok(
        "sweep", folder / "x.npy", "-k", 2, "-l", "2,4", "--seeds", 2, "--n-null", 0, "--n-jobs", 1,
        "--tol", 0.1, "-o", tmp_path / "s.csv",
    )  # fmt: skip
    assert "Note: n_lags: 4 is the longest tried; motifs may be longer" in answer.output
