"""``motifold fit - --follow``, and of files that grow: what ends it, and what is kept then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import run

import motifold
from motifold.datasets import make_sequences

X = make_sequences(600, 5, 1, 4, activation_probability=0.08, noise=0.05, random_state=0).X
FIT = ("-k", "1", "-l", "4", "--follow")


def text_of(X):
    return "".join(",".join(repr(float(v)) for v in row) + "\n" for row in X)


def test_rows_from_a_pipe_until_its_end(tmp_path):
    out = tmp_path / "model.npz"
    answer = run("fit", "-", *FIT, "-o", out, "--chunk", 200, given=text_of(X))
    assert answer.exit_code == 0, answer.output
    assert "600 time bins" in answer.stdout
    model = motifold.load(out)
    expected = motifold.CNMF(1, 4, random_state=0)
    for a in (0, 200, 400):
        expected.partial_fit(X[a : a + 200])
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-6)
    again = run("fit", "-", *FIT, "-o", out, given=text_of(X[:10]))
    assert again.exit_code == 2
    assert "--resume" in again.output
    resumed = run("fit", "-", *FIT, "-o", out, "--resume", "--json", given=text_of(X[:100]))
    assert resumed.exit_code == 0, resumed.output
    assert motifold.load(out).running_.n_seen == 700


def test_a_file_that_grows_goes_on_behind_what_was_seen(tmp_path):
    out, file = tmp_path / "model.npz", tmp_path / "x.csv"
    file.write_text("a,b,c,d,e\n" + text_of(X[:300]))
    asked = ("fit", file, *FIT, "-o", out, "--idle", 0, "--chunk", 100)
    assert run(*asked).exit_code == 0
    with file.open("a") as more:
        more.write(text_of(X[300:]))
    assert run(*asked, "--resume").exit_code == 0
    model = motifold.load(out)
    assert model.running_.n_seen == 600
    np.save(tmp_path / "x.npy", X)
    asked = ("fit", tmp_path / "x.npy", *FIT, "-o", tmp_path / "other.npz", "--idle", 0)
    assert run(*asked, "--chunk", 100).exit_code == 0
    other = motifold.load(tmp_path / "other.npz")
    np.testing.assert_allclose(other.components_, model.components_, atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("1,2\n", "line 301: it has 2 numbers; the others have 5"),
        ("1,nan,3,4,5\n", "line 301: 'nan', column 1"),
        ("1,x,3,4,5\n", "line 301: 'x', column 1, is no number"),
        ("1,-2,3,4,5\n", "line 301: '-2', column 1, is below zero"),
    ],
)
def test_a_bad_line_is_named_and_what_came_before_is_kept(tmp_path, bad, told):
    out = tmp_path / "model.npz"
    answer = run("fit", "-", *FIT, "-o", out, given=text_of(X[:300]) + bad + text_of(X[300:]))
    assert answer.exit_code == 3
    assert told in " ".join(answer.output.split())
    assert motifold.load(out).running_.n_seen == 300


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_lose_nothing_that_was_saved(tmp_path, number):
    """After each chunk there is a checkpoint here (``--checkpoint-every 0``)."""
    out = tmp_path / "model.npz"
    command = [sys.executable, "-m", "motifold.cli", "fit", "-", *FIT, "-o", str(out)]
    with subprocess.Popen(
        [*command, "--chunk", "100", "--checkpoint-every", "0"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        try:
            child.stdin.write(text_of(X[:300]).encode())
            child.stdin.flush()
            while not out.exists():  # it is written whole or not at all
                assert child.poll() is None, child.stderr.read()
            child.send_signal(number)
            told = child.communicate()[1].decode()
        finally:
            child.kill()  # where it ended already this does nothing
    model = motifold.load(out)
    if number == signal.SIGKILL:
        assert model.running_.n_seen >= 100
    else:
        assert child.returncode == (130 if number == signal.SIGINT else 143)
        assert f"{model.running_.n_seen} time bins" in told
    resumed = run("fit", "-", *FIT, "-o", out, "--resume", given=text_of(X[300:400]))
    assert resumed.exit_code == 0, resumed.output


def test_no_rows_is_no_model(tmp_path):
    answer = run("fit", "-", *FIT, "-o", tmp_path / "m.npz", given="")
    assert answer.exit_code == 0
    assert "No rows came" in answer.stdout
    assert not (tmp_path / "m.npz").exists()
    refused = run("fit", "-", *FIT, "-o", tmp_path / "m.npz", "--report", tmp_path / "r.html")
    assert "--report does not go with --follow" in refused.output


@pytest.mark.parametrize(
    "option",
    [
        ("--test-fraction", 0.3),
        ("--sqrt",),
        ("--smooth", 2),
        ("--baseline", "median"),
        ("--scale-features", "max"),
    ],
)
def test_what_takes_the_whole_recording_is_refused_by_name(tmp_path, option):
    answer = run("fit", "-", *FIT, "-o", tmp_path / "m.npz", *option, given=text_of(X[:50]))
    assert answer.exit_code == 2
    assert f"{option[0]} does not go with --follow" in " ".join(answer.output.split())
