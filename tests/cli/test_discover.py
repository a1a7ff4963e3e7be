"""``motifold discover``."""

from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

from motifold.cli import main
from motifold.findings.discovering import Work


def test_discover_prints_sentences_and_writes_what_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = 0.1 * rng.random((300, 8))
    for t in range(3, 280, 17):
        X[t + np.arange(8), np.arange(8)] += 1.0
    np.save("x.npy", X)
    arguments = ["discover", "x.npy", "-l", "10", "--n-jobs", "1"]
    asked = ["-o", "events.csv", "--report", "found.html", "--save", "m.npz", "--store", "s.npz"]
    done = CliRunner().invoke(main, [*arguments, *asked])
    assert done.exit_code == 0, done.output
    assert "1 recur in their order (sequence)" in done.output
    lines = (tmp_path / "events.csv").read_text().splitlines()
    assert lines[0].startswith("motif,segment,time,centre,bin,strength,score,q_value")
    assert 14 <= len(lines) - 1 <= 18
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert "<h2>Verdicts</h2>" in page
    assert '<th scope="col">segment</th>' not in page, "there is but one"
    assert (tmp_path / "m.npz").exists()
    again = CliRunner().invoke(main, [*arguments, "--store", "s.npz", "--json"])
    record = json.loads(again.output)
    assert record["n_components"] == 1
    assert record["motifs"][0]["verdict"] == "sequence"


def test_discover_refuses_to_write_over_the_recording(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((50, 3)))
    done = CliRunner().invoke(main, ["discover", str(path), "-l", "5", "--store", str(path)])
    assert done.exit_code == 2
    assert "which might be replaced" in done.output


def test_discover_says_where_stages_are_when_it_is_interrupted(tmp_path, monkeypatch):
    """And goes on there: what was fitted is not fitted again."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(0).poisson(0.1, (240, 8)))
    arguments = ["discover", "x.npy", "-l", "10", "--n-jobs", "1", "--store", "s.npz"]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Work, "tests", interrupted)
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 130
    assert "Finished stages are in s.npz" in done.output
    for name in ("starts", "events", "without"):
        monkeypatch.setattr(Work, name, interrupted)
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.output
    assert "240 bins" in again.output
