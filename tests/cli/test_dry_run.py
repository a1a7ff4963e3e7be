"""``fit --dry-run`` tells what the same command would take, and writes nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ok, run

from motifold.datasets import make_sequences

MODEL = ("-k", 2, "-l", 6)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = make_sequences(2000, 20, 2, 6, random_state=0).X.astype(np.float32)
    np.save("x.npy", X)
    np.savetxt("x.csv", X, delimiter=",")
    return tmp_path


def told(*arguments):
    return json.loads(ok("fit", *arguments, "--dry-run", "--json").output)


def test_it_is_told_and_nothing_is_written(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    shown = ok("fit", "x.npy", *MODEL, "--dry-run", "--report", "r.html").output
    for name in ("recording", "model", "engine", "iteration", "fit", "memory", "reads", "measured"):
        assert any(line.startswith(f"{name} ") for line in shown.splitlines()), name
    assert "2,000 bins × 20 features, float32" in shown
    found = told("x.csv", *MODEL)
    assert (found["n_samples"], found["n_features"], found["dtype"]) == (2000, 20, "float64")
    assert found["fits"] is True
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_it_takes_the_same_options(folder):
    turned = told("x.npy", "--orientation", "features_first", "-k", 2, "-l", 3)
    assert (turned["n_samples"], turned["n_features"]) == (20, 2000)
    part = told("x.npy", *MODEL, "--sqrt", "--test-fraction", 0.3, "--loss", "kl")
    assert part["n_samples"] < 1500
    assert "kullback-leibler" in part["engine"]
    limits = told("x.npy", *MODEL, "--tol", 0, "--max-iter", 7, "--n-init", 4, "--n-jobs", 1)
    assert (limits["n_iter"], limits["n_starts"], limits["n_threads"]) == (7, 4, 1)


def test_an_existing_model_or_checkpoint_is_no_matter(folder):
    (folder / "model.npz.checkpoint").write_text("something")
    ok("fit", "x.npy", *MODEL, "--dry-run")
    assert (folder / "model.npz.checkpoint").read_text() == "something"


def test_what_is_refused(folder):
    answer = run("fit", "-", *MODEL, "--follow", "--dry-run")
    assert answer.exit_code == 2
    assert "--dry-run is not for --follow" in answer.output
    answer = run("fit", "nothing.npy", *MODEL, "--dry-run")
    assert answer.exit_code == 3
    assert "nothing.npy" in answer.output


def test_on_a_cluster(folder):
    pytest.importorskip("distributed")
    found = told("x.npy", *MODEL, "--cluster", "local:2")
    assert found["engine"] == "Dask cluster, 2 workers, HALS"
    assert found["fit_seconds"] > 0
