"""From a lab's table of spikes to a report, by the command line, in the recording's clock."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold.io import from_spikes, read
from motifold.io.spikes import with_units
from motifold.report import write_report

START = 1000.0
BIN = "0.02"


@pytest.fixture(scope="module")
def spikes(tmp_path_factory):
    """A table (neuron, seconds) with a sequence of 12 neurons, one every 20 ms; when it starts."""
    rng = np.random.default_rng(0)
    times = np.sort(START + 1 + 1.5 * np.arange(25) + rng.uniform(0, 0.5, 25))
    rows = [(n, t + 0.02 * n + 0.003 * rng.random()) for t in times for n in range(12)]
    rows += [(int(rng.integers(12)), START + 40 * rng.random()) for _ in range(150)]
    path = tmp_path_factory.mktemp("spikes") / "spikes.csv"
    lines = [f"{n},{t:.4f}" for n, t in sorted(rows, key=lambda row: row[1])]
    path.write_text("\n".join(["neuron,seconds", *lines]) + "\n")
    return path, times


@pytest.fixture(scope="module")
def fitted(spikes):
    path, _ = spikes
    model, report = path.with_name("model.npz"), path.with_name("report.html")
    answer = ok(
        "fit", path, "--unit", "neuron", "--time", "seconds", "--bin-size", BIN, "-k", 1, "-l",
        "0.3s", "--t-start", START, "-o", model, "--report", report,
    )  # fmt: skip
    return model, report, answer


def times_of(text: str) -> np.ndarray:
    head, *lines = text.splitlines()
    return np.array([float(line.split(",")[head.split(",").index("time")]) for line in lines])


def check_times(found, starts) -> None:
    """Every sequence has an event, at one distance from its start: the motif's place in its window.

    A few motifs of the other spikes there may be.
    """
    nearest = found[np.abs(found[:, None] - starts).argmin(axis=0)] - starts
    assert np.abs(nearest - np.median(nearest)).max() <= 0.045
    assert abs(np.median(nearest)) < 0.3


def test_events_are_in_the_clock_of_the_table(spikes, fitted):
    path, starts = spikes
    model, report, answer = fitted
    assert "Hint: Bins are from 1000 to" in answer.output
    check_times(times_of(ok("events", model).stdout), starts)
    check_times(times_of(ok("events", model, "--data", path).stdout), starts)
    text = report.read_text()
    assert "begins at (s)" in text
    assert f"{times_of(ok('events', model).stdout)[0]:.3f}</td>" in text
    told = json.loads(ok("info", model, "--json").stdout)
    assert (told["starts"], told["rate"]) == ([START], pytest.approx(50))


def test_transform_has_the_clock(spikes, fitted, tmp_path):
    ok("transform", fitted[0], spikes[0], "-o", tmp_path / "h.csv")
    assert times_of((tmp_path / "h.csv").read_text())[0] == START


def test_info_tells_of_spikes(spikes):
    options = ["--unit", "neuron", "--time", "seconds", "--bin-size", BIN, "--json"]
    told = json.loads(ok("info", spikes[0], *options).stdout)
    assert (told["features"], told["sparse"], told["maximum"] >= 1) == (12, False, True)
    assert told["starts"][0] >= START


def test_another_table_begins_where_it_begins(fitted, tmp_path):
    rows = [f"{n},{t + 0.02 * n:.4f}" for t in 5000 + np.arange(1, 9) for n in range(12)]
    path = tmp_path / "later.csv"
    path.write_text("\n".join(["neuron,seconds", *rows]) + "\n")
    found = times_of(ok("events", fitted[0], "--data", path).stdout)
    assert 5000 < found.min() < found.max() < 5010


def test_units_that_are_silent_elsewhere(fitted, tmp_path):
    rows = [f"{n},{t + 0.02 * n:.4f}" for t in 5000 + np.arange(1, 9) for n in range(12) if n != 3]
    path = tmp_path / "later.csv"
    path.write_text("\n".join(["neuron,seconds", *rows]) + "\n")
    answer = ok("events", fitted[0], "--data", path)
    assert len(times_of(answer.stdout)) > 0
    assert "1 of the 12 units of the model have no spikes here" in answer.output
    path.write_text("\n".join(["neuron,seconds", *rows, "99,5003.5"]) + "\n")
    answer = run("events", fitted[0], "--data", path)
    assert answer.exit_code == 3
    assert "feature 3 is '4', that of the model '3'" in answer.output


@pytest.mark.parametrize("sparse", [True, False])
def test_columns_of_silent_units_are_zero(sparse):
    found = from_spikes({"b": [0.0, 0.3], "a": [0.15]}, bin_size=0.1, sparse=sparse)
    found = with_units(replace(found, options={"bin_size": 0.1}), ["a", "x", "b"])
    X = found.X.toarray() if sparse else found.X
    assert X.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert "1 of the 3 units of the model have no spikes here" in found.hints[-1]


def test_sparse_all_the_way(tmp_path, monkeypatch):
    """A long recording of few spikes stays sparse in fit, transform, events and report."""
    monkeypatch.setattr("motifold.io.spikes._SMALL", 0)  # this one is long
    rng = np.random.default_rng(0)
    starts = np.sort(rng.uniform(0, 58, 12))
    rows = [(n, t + 0.02 * n) for t in starts for n in range(40)]
    path, model = tmp_path / "a.tsv", tmp_path / "model.npz"
    path.write_text("\n".join(["unit\ttime", *(f"{n}\t{t:.4f}" for n, t in rows)]) + "\n")
    options = {"bin_size": 0.02, "t_start": 0.0, "t_stop": 60.0}
    recording = read(path, **options)
    assert not isinstance(recording.X, np.ndarray)
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    ok("fit", path, *given, "-k", 1, "-l", 6, "--max-iter", 4, "-o", model)
    ok("transform", model, path, "-o", tmp_path / "h.npy")
    assert np.load(tmp_path / "h.npy").shape == (3000, 1)
    assert len(times_of(ok("events", model, "--data", path).stdout)) > 0
    told = json.loads(ok("info", path, *given, "--json", "--no-isolate").stdout)
    assert told["sparse"] is True
    report = tmp_path / "a.html"
    write_report(report, motifold.load(model), recording)
    assert "0, 0.004, 1" in report.read_text()  # smallest, mean and largest, zeros included


def test_sparse_prepared_and_held_out(tmp_path, monkeypatch):
    """Counts of a clock that does not begin at 0 stay sparse where a part of them is held out."""
    monkeypatch.setattr("motifold.io.spikes._SMALL", 0)
    rng = np.random.default_rng(0)
    rows = [(n, 100 + t + 0.02 * n) for t in np.sort(rng.uniform(0, 58, 40)) for n in range(6)]
    path, model = tmp_path / "a.tsv", tmp_path / "model.npz"
    path.write_text("\n".join(["unit\ttime", *(f"{n}\t{t:.4f}" for n, t in rows)]) + "\n")
    given = ("--bin-size", 0.02, "--t-start", 100, "--t-stop", 160)
    fit = ("-k", 1, "-l", 8, "--max-iter", 4, "--sqrt", "--scale-features", "std")
    ok("fit", path, *given, *fit, "--test-fraction", 0.3, "-o", model)
    assert motifold.load(model).origin_["starts"] == [100.0]
    told = json.loads(ok("significance", model, "--data", path, "--json").stdout)
    assert told
    found = times_of(ok("events", model, "--data", path).stdout)
    assert 100 <= found.min() < found.max() < 160


@pytest.mark.slow
def test_the_songbird(mackevicius, tmp_path):
    """The neurons of a zebra finch, as a table with a row for each event that was deconvolved."""
    frames, neurons = np.nonzero(mackevicius["NEURAL"] > 0.05)
    rows = np.c_[neurons, 100 + (frames + 0.5) / 30]  # the middle of a frame
    path, model = tmp_path / "bird.txt", tmp_path / "model.npz"
    np.savetxt(path, rows, fmt=["%d", "%.3f"], delimiter="\t")
    refused = run("fit", path, "-k", 2, "-l", 20)
    assert refused.exit_code == 3
    assert "looks like a list of spikes" in refused.output
    report = tmp_path / "report.html"
    ok(
        "fit", path, "--unit", 0, "--time", 1, "--bin-size", 1 / 30, "-k", 2, "-l", "0.7s",
        "--loss", "kl", "-o", model, "--report", report,
    )  # fmt: skip
    found = times_of(ok("events", model).stdout)
    assert len(found) >= 4
    assert 100 <= found.min() < found.max() < 122.3
    assert "begins at (s)" in report.read_text()
