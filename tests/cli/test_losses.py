"""``--loss``: taken by its names, told by every command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ok, run

import motifold

X = np.random.default_rng(0).poisson(0.3, (200, 6)).astype(float)
QUICK = ("--tol", 0.05, "--max-iter", 50)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.npy"
    np.save(path, X)
    return path


@pytest.fixture
def model(counts, tmp_path):
    path = tmp_path / "model.npz"
    ok("fit", counts, "-k", 2, "-l", 4, "-o", path, "--loss", "kl", *QUICK)
    return path


def test_fit_is_the_estimators(model):
    found = motifold.load(model)
    expected = motifold.CNMF(
        2, 4, beta_loss="kullback-leibler", random_state=0, tol=0.05, max_iter=50
    ).fit(X)
    assert found.beta_loss == "kullback-leibler"
    np.testing.assert_array_equal(found.components_, expected.components_)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("frobenius", "frobenius"),
        ("kullback-leibler", "kullback-leibler"),
        ("kl", "kullback-leibler"),
        ("itakura-saito", "itakura-saito"),
        ("is", "itakura-saito"),
        ("0.5", 0.5),
        ("3", 3.0),
    ],
)
def test_names(tmp_path, said, taken):
    np.save(tmp_path / "x.npy", X + 0.1)
    ok("fit", tmp_path / "x.npy", "-k", 1, "-l", 2, "-o", tmp_path / "m", "--loss", said, *QUICK)
    assert motifold.load(tmp_path / "m").beta_loss == taken


@pytest.mark.parametrize("said", ["poisson", "nan", "inf", ""])
def test_no_such_loss(counts, tmp_path, said):
    answer = run("fit", counts, "-k", 1, "-l", 2, "-o", tmp_path / "m", f"--loss={said}")
    assert answer.exit_code == 2
    assert "kullback-leibler (kl)" in answer.output


def test_what_is_told(model, counts, tmp_path):
    found = motifold.load(model)
    percent = f"{100 * (1 - found.loss_):.1f}% of the deviance (Kullback-Leibler, relative loss"
    told = ok("fit", counts, "-k", 2, "-l", 4, "-o", model, "--loss", "kl", *QUICK).stdout
    assert percent in told
    as_json = ok("fit", counts, "-k", 2, "-l", 4, "-o", model, "--loss", 1, *QUICK, "--json").stdout
    assert json.loads(as_json)["beta_loss"] == 1.0
    ok("fit", counts, "-k", 2, "-l", 4, "-o", model, "--loss", "kl", *QUICK)
    info = json.loads(ok("info", model, "--json").stdout)
    assert (info["beta_loss"], info["solver"]) == ("kullback-leibler", "auto")
    assert "kullback-leibler" in ok("info", model).stdout
    out = tmp_path / "a.npy"
    told = ok("transform", model, counts, "-o", out)
    assert "(Kullback-Leibler)" in told.stdout
    told = json.loads(ok("transform", model, counts, "-o", out, "--json").stdout)
    assert told["beta_loss"] == "kullback-leibler"
    assert -told["loss"] == pytest.approx(found.score(X), rel=1e-6)


def test_sweep(counts, tmp_path):
    arguments = ["sweep", counts, "-k", "1-2", "-l", 4, "--seeds", 1, "--n-null", 0, "--n-jobs", 1]
    arguments += ["-o", tmp_path / "s.csv", "--loss", "kl", "--json", *QUICK]
    runs = json.loads(ok(*arguments).stdout)["runs"]
    assert {record["beta_loss"] for record in runs} == {"kullback-leibler"}
    expected = motifold.CNMF(1, 4, beta_loss=1, random_state=0, tol=0.05, max_iter=50).fit(X)
    assert runs[0]["loss"] == pytest.approx(expected.loss_)


def test_errors_in_the_words_of_options(counts, tmp_path):
    place = ("-k", 2, "-l", 4, "-o", tmp_path / "m")
    answer = run("fit", counts, *place, "--loss", "kl", "--solver", "hals")
    assert answer.exit_code == 1
    assert "--solver hals is for squared error" in answer.output.replace("\n", " ")
    assert "--solver mu" in answer.output.replace("\n", " ")
    row, column = np.argwhere(X == 0)[0]
    answer = run("fit", counts, *place, "--loss", "is")
    assert answer.exit_code == 1
    told = " ".join(answer.output.split())
    assert f"row {row}, column {column}" in told
    assert "--loss kullback-leibler" in told
    assert not (tmp_path / "m").exists()


def test_background(counts, tmp_path):
    path, report = tmp_path / "b.npz", tmp_path / "b.html"
    ok("fit", counts, "-k", 1, "-l", 4, "-o", path, "--background", "--report", report, *QUICK)
    assert motifold.load(path).background_.shape == (6,)
    assert json.loads(ok("info", path, "--json").stdout)["background"] is True
    assert "a constant of every feature" in report.read_text()
