"""``motifold events`` and ``features``: what is written, in which format, and what is refused."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold.findings import feature_table


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two sequences, the last one cut off by the end, in a table with names; and a fit of it."""
    folder = tmp_path_factory.mktemp("events")
    X = 0.02 * np.random.default_rng(0).random((300, 6))
    for k, first, step in ((0, 10, 31), (1, 20, 43)):
        for t in range(first, 300, step):
            for n in range(3):
                if t + 2 * n < 300:
                    X[t + 2 * n, 3 * k + n] += 1.0
    X[298, 0] += 1.0  # of motif 0, of which the rest would come after the end
    names = ",".join(["a", "b", '"c, ""left"""', "d", "e", "f"])
    lines = [",".join(f"{value:.6g}" for value in row) for row in X]
    (folder / "counts.csv").write_text("\n".join([names, *lines, ""]))
    told = ok("fit", folder / "counts.csv", "--rate", 20, "-k", 2, "-l", 6, "--n-init", 4,
              "-o", folder / "model.npz")  # fmt: skip
    (folder / "told.txt").write_text(told.stdout)
    return folder


def test_fit_says_how_many_starts_agree(folder, tmp_path):
    model = motifold.load(folder / "model.npz")
    assert model.start_losses_.shape == (4,)
    told = (folder / "told.txt").read_text()
    assert "of 4 starts agree" in told
    assert "of 4 starts agree" in ok("info", folder / "model.npz").stdout
    answer = ok("fit", folder / "counts.csv", "-k", 2, "-l", 6, "-o", tmp_path / "m.npz", "--json")
    assert len(json.loads(answer.stdout)["start_losses"]) == 1


def test_columns_and_partial_events(folder):
    model = motifold.load(folder / "model.npz")
    alone = rows_of(ok("events", folder / "model.npz").stdout)
    expected = motifold.find_events(model, rate=20)
    assert list(alone[0]) == expected.columns
    assert [int(row["bin"]) for row in alone] == expected["bin"].tolist()
    assert {row["partial"] for row in alone} == {"0"}
    both = rows_of(ok("events", folder / "model.npz", "--partial").stdout)
    assert [row for row in both if row["partial"] == "0"] == alone
    assert len(both) > len(alone)
    data = rows_of(
        ok("events", folder / "model.npz", "--data", folder / "counts.csv", "--rate", 20).stdout
    )
    shares = [float(row["explained"]) for row in data]
    assert min(shares) > 0.5
    assert max(shares) <= 1


def test_with_the_recording_events_have_q_values(folder):
    told = ["events", folder / "model.npz", "--data", folder / "counts.csv", "--rate", 20]
    rows = rows_of(ok(*told).stdout)
    assert max(float(row["q_value"]) for row in rows) <= 0.1
    assert rows == rows_of(ok(*told, "--fdr", 0.1).stdout)
    for fdr in (0.012, 0.001):
        strict = json.loads(ok(*told, "--fdr", fdr, "--json").stdout)["events"]
        expected = [int(row["bin"]) for row in rows if float(row["q_value"]) <= fdr]
        assert [record["bin"] for record in strict] == expected
        assert len(expected) < len(rows)
    old = rows_of(ok(*told, "--threshold", 0.3).stdout)
    model = motifold.load(folder / "model.npz")
    assert "q_value" not in old[0]
    assert [int(row["bin"]) for row in old] == motifold.find_events(model)["bin"].tolist()


def test_the_rule_for_events_is_one(folder):
    told = ["events", folder / "model.npz", "--fdr", 0.1]
    assert "give --data" in run(*told).output
    data = ["--data", folder / "counts.csv", "--rate", 20]
    assert "two rules" in run(*told, *data, "--threshold", 0.3).output
    assert run(*told, *data, "--fdr", 1).exit_code == 2
    assert "--fdr" in run(*told, "-", "--follow").output


def test_other_formats_are_read_by_their_own_libraries(folder, tmp_path):
    pynapple, pynwb = pytest.importorskip("pynapple"), pytest.importorskip("pynwb")
    expected = motifold.find_events(motifold.load(folder / "model.npz"), rate=20)
    ok("events", folder / "model.npz", "--to", "pynapple", "-o", tmp_path / "e.npz")
    group = pynapple.load_file(tmp_path / "e.npz")
    for k in (0, 1):
        times = expected.where(motif=k)["time"]
        np.testing.assert_allclose(group[k].t, times, atol=1e-8)
    ok("events", folder / "model.npz", "--to", "nwb", "-o", tmp_path / "e.nwb")
    with pynwb.NWBHDF5IO(str(tmp_path / "e.nwb"), "r") as file:
        table = file.read().intervals["motif_events"].to_dataframe()
    assert table["motif"].tolist() == expected["motif"].tolist()
    np.testing.assert_allclose(table["start_time"], expected["time"])
    np.testing.assert_allclose(table["stop_time"], expected["time"] + 6 / 20)
    again = ["events", folder / "model.npz", "--to", "nwb", "-o", tmp_path / "f.nwb"]
    answer = run(*again, "--session", tmp_path / "e.nwb")
    assert answer.exit_code == 1
    assert "already" in answer.output
    assert not (tmp_path / "f.nwb").exists()


def test_json_is_the_same_on_the_screen_and_in_a_file(folder, tmp_path):
    model = folder / "model.npz"
    shown = ok("events", model, "--to", "json").stdout
    assert shown == ok("events", model, "--json").stdout
    ok("events", model, "--to", "json", "-o", tmp_path / "e.json")
    found = json.loads((tmp_path / "e.json").read_text())["events"]
    assert found == json.loads(shown)["events"]
    expected = motifold.find_events(motifold.load(model), rate=20)
    assert [row["time"] for row in found] == expected["time"].tolist()
    assert run("events", model, "--to", "json", "-o", tmp_path / "e.csv").exit_code == 2


def test_labels_are_read_by_their_programs(folder, tmp_path):
    """Of the command, by pandas as by Raven, and by MNE."""
    mne, pandas = pytest.importorskip("mne"), pytest.importorskip("pandas")
    model = folder / "model.npz"
    times = np.sort(motifold.find_events(motifold.load(model), rate=20)["time"])
    for kind in ("audacity", "raven", "mne"):
        ok("events", model, "--to", kind, "-o", tmp_path / f"{kind}.txt")
    found = mne.read_annotations(tmp_path / "mne.txt")
    np.testing.assert_allclose(found.onset, times, atol=1e-6)
    np.testing.assert_allclose(found.duration, 6 / 20, atol=1e-6)
    table = pandas.read_csv(tmp_path / "raven.txt", sep="\t")
    np.testing.assert_allclose(table["Begin Time (s)"], times, atol=1e-6)
    labels = pandas.read_csv(tmp_path / "audacity.txt", sep="\t", header=None)
    np.testing.assert_allclose(labels[1], times + 6 / 20, atol=1e-6)


def test_wrong_outputs_are_refused(folder, tmp_path):
    model = folder / "model.npz"
    assert "--output" in run("events", model, "--to", "nwb").output
    assert run("events", model, "--to", "nwb", "-o", tmp_path / "a.csv").exit_code == 2
    assert run("events", model, "--to", "pynapple", "-o", tmp_path / "a.csv").exit_code == 2
    wrong = run("events", model, "-o", tmp_path / "a.csv", "--session", tmp_path / "b.nwb")
    assert "--session" in wrong.output
    same = run("events", model, "--to", "pynapple", "-o", model)
    assert same.exit_code == 2
    assert motifold.load(model).n_components == 2
    assert list(tmp_path.iterdir()) == []


def test_features(folder, tmp_path):
    model = folder / "model.npz"
    expected = feature_table(motifold.load(model), rate=20)
    rows = rows_of(ok("features", model).stdout)
    assert [row["name"] for row in rows] == expected["name"].tolist()
    assert {'c, "left"'} < {row["name"] for row in rows}
    assert [int(row["lag"]) for row in rows] == expected["lag"].tolist()
    np.testing.assert_allclose([float(row["lag_seconds"]) for row in rows], expected["lag_seconds"])
    ok("features", model, "-o", tmp_path / "neurons.csv")
    assert rows_of((tmp_path / "neurons.csv").read_text()) == rows
    assert json.loads(ok("features", model, "--json").stdout)["features"] == expected.records
    assert run("features", model, "-o", tmp_path / "a.npz").exit_code == 2


@pytest.mark.parametrize("to", ["audacity", "raven", "mne"])
def test_labels_are_those_of_the_events(folder, tmp_path, to):
    model, labels = folder / "model.npz", tmp_path / "labels.txt"
    events = rows_of(ok("events", model).stdout)
    ok("events", model, "--to", to, "-o", labels)
    lines = labels.read_text().splitlines()
    lines = lines[{"audacity": 0, "raven": 1, "mne": 2}[to] :]
    begin = {"audacity": 0, "raven": 3, "mne": 0}[to]
    times = [float(line.replace(",", "\t").split("\t")[begin]) for line in lines]
    np.testing.assert_allclose(times, sorted(float(row["time"]) for row in events), atol=1e-6)
    assert f"motif {events[0]['motif']}" in labels.read_text()


def test_labels_need_seconds(tmp_path):
    X = np.random.default_rng(0).random((40, 3))
    motifold.CNMF(1, 4, max_iter=3, tol=0, random_state=0).fit(X).save(tmp_path / "model.npz")
    labels = tmp_path / "labels.txt"
    told = run("events", tmp_path / "model.npz", "--to", "audacity", "-o", labels)
    assert told.exit_code == 2
    assert "give --rate" in told.output
    assert not labels.exists()
