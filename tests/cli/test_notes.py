"""What was said in the explorer is heeded by ``events`` and ``report``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold.datasets import make_sequences
from motifold.findings.annotations import (
    Annotations,
    Verdicts,
    annotations_path,
    recording_key,
    write_annotations,
)

X = make_sequences(400, 12, 3, 8, activation_probability=0.04, random_state=0).X


def events(*arguments):
    return json.loads(ok("events", *arguments, "--json").stdout)["events"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    motifold.CNMF(3, 8, random_state=0).fit(X).save(folder / "model.npz")
    np.save(folder / "x.npy", X)
    return folder


@pytest.fixture
def said(files):
    """Motif 0 has a name, motif 1 is hidden, and the first event of motif 0 is none."""
    model = motifold.load(files / "model.npz")
    first = next(record for record in events(files / "model.npz") if record["motif"] == 0)
    verdicts = Verdicts(recording_key(X), "x.npy", True).judged((0, first["bin"]), "rejected")
    notes = Annotations.none(model).noted(0, name="up & <down>").noted(1, hidden=True)
    path = annotations_path(files / "model.npz")
    write_annotations(path, notes.with_verdicts(verdicts))
    yield first["bin"]
    path.unlink()


def test_events_heed_it(files, said):
    plain = events(files / "model.npz", "--no-notes")
    found = events(files / "model.npz")
    assert {record["motif"] for record in found} == {0, 2}
    assert {record["name"] for record in found} == {"up & <down>", "motif 2"}
    expected = [r["bin"] for r in plain if r["motif"] == 0 and r["bin"] != said]
    assert [record["bin"] for record in found if record["motif"] == 0] == expected
    header = ok("events", files / "model.npz").stdout.splitlines()[0]
    assert header.startswith("motif,segment,time,bin,strength,")
    assert header.endswith(",name")


def test_events_of_the_recording_as_a_file(files, said):
    found = events(files / "model.npz", "--data", files / "x.npy")
    assert said not in [record["bin"] for record in found if record["motif"] == 0]
    np.save(files / "other.npy", X[::-1])
    other = events(files / "model.npz", "--data", files / "other.npy")
    assert {record["motif"] for record in other} == {0, 2}


def test_a_false_discovery_rate_is_of_all_motifs_together(files, said):
    given = files / "model.npz", "--data", files / "x.npy", "--fdr", 0.1
    plain = events(*given, "--no-notes")
    expected = [r for r in plain if r["motif"] != 1 and (r["motif"], r["bin"]) != (0, said)]
    found = [{name: r[name] for name in expected[0]} for r in events(*given)]
    assert found == expected
    assert "q_value" not in events(*given[:3])[0]  # thresholds that were set count, unless asked


def test_options_come_before_notes(files, said):
    loose = events(files / "model.npz", "--threshold", 0)
    strict = events(files / "model.npz", "--threshold", 1.5)
    assert len(strict) < len(events(files / "model.npz")) < len(loose)


def test_the_report_heeds_it(files, said):
    ok("report", files / "model.npz", "--data", files / "x.npy", "-o", files / "r.html")
    text = (files / "r.html").read_text()
    assert "up &amp; &lt;down&gt;" in text
    assert "(hidden)" in text
    assert "as was said in the explorer" in text
    assert "thresholds that were set in the explorer" in text
    assert "q-value" not in text
    ok(
        "report",
        files / "model.npz",
        "--data",
        files / "x.npy",
        "-o",
        files / "r.html",
        "--no-notes",
    )
    assert "explorer" not in (files / "r.html").read_text()


def test_a_report_without_any_motif_to_show(files):
    notes = Annotations.none(motifold.load(files / "model.npz"))
    for k in range(3):
        notes = notes.noted(k, hidden=True)
    path = annotations_path(files / "model.npz")
    write_annotations(path, notes)
    given = files / "model.npz", "--data", files / "x.npy"
    ok("report", *given, "-o", files / "r.html")
    assert "(hidden)" in (files / "r.html").read_text()
    assert not events(*given)
    path.unlink()


def test_what_was_said_is_not_replaced(files, said):
    path = annotations_path(files / "model.npz")
    before = path.read_bytes()
    answer = run("events", files / "model.npz", "--to", "json", "-o", path)
    assert answer.exit_code == 2, answer.output
    assert path.read_bytes() == before


def test_a_damaged_file_is_told_with_the_way_out(files):
    path = annotations_path(files / "model.npz")
    path.write_text("{")
    for more in (("events",), ("report", "--data", files / "x.npy", "-o", files / "r.html")):
        answer = run(more[0], files / "model.npz", *more[1:])
        assert answer.exit_code == 3
        assert "model.npz.explore.json" in answer.output
        assert "--no-notes" in answer.output
    assert ok("events", files / "model.npz", "--no-notes")
    assert path.read_text() == "{"
    path.unlink()


def test_explore_tells_what_is_wrong_before_it_serves(files, tmp_path):
    answer = run("explore", files / "model.npz", tmp_path / "none.npy", "--no-browser")
    assert answer.exit_code == 3
    assert "there is no such file" in answer.output
    np.save(tmp_path / "wide.npy", np.ones((50, 13)))
    answer = run("explore", files / "model.npz", tmp_path / "wide.npy", "--no-browser")
    assert answer.exit_code == 3
    assert "it has 13 features, the model 12" in answer.output
