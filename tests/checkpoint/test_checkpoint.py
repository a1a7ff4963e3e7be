"""Checkpoints: stopped at any moment, a fit goes on and ends as the whole one does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import motifold
from motifold import CNMF
from motifold.checkpoint import Checkpoint, identity_of
from motifold.datasets import make_sequences

X = make_sequences(300, 15, 3, 8, random_state=1).X
SETTINGS = {"n_components": 3, "n_lags": 8, "random_state": 0, "n_init": 3, "tol": 1e-4}


class Stop(Exception):
    """Ends a fit as a power cut does: nothing of ours runs after it."""


class CountedCheckpoint(Checkpoint):
    """Writes at every iteration and ends the fit after some."""

    def __init__(self, *arguments, after):
        super().__init__(*arguments, every=0)
        self.after = after

    def __call__(self, state):
        super().__call__(state)
        self.after -= 1
        if self.after == 0:
            raise Stop


def assert_same(found: CNMF, expected: CNMF):
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.activations_, expected.activations_)
    np.testing.assert_array_equal(found.history_.loss, expected.history_.loss)
    assert (found.n_iter_, found.stop_reason_) == (expected.n_iter_, expected.stop_reason_)


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stopped_after_any_iteration(tmp_path, solver):
    settings = {**SETTINGS, "solver": solver, "max_iter": 12}
    whole = CNMF(**settings).fit(X)
    path = tmp_path / "a.checkpoint"
    after, finished = 0, False
    while not finished:
        after += 1
        first = CNMF(**settings)
        identity = identity_of(first, X)
        first._checkpoint = CountedCheckpoint(path, identity, after=after)
        try:
            first.fit(X)
            finished = True  # it ended before its time
        except Stop:
            second = CNMF(**settings)
            second._checkpoint = Checkpoint(path, identity)
            second._checkpoint.restore()
            assert_same(second.fit(X), whole)
    assert after > 30


def test_another_fit_is_refused(tmp_path):
    path = tmp_path / "a.checkpoint"
    model = CNMF(**SETTINGS)
    model._checkpoint = CountedCheckpoint(path, identity_of(model, X), after=5)
    with pytest.raises(Stop):
        model.fit(X)
    other = CNMF(**{**SETTINGS, "n_lags": 7})
    with pytest.raises(ValueError, match="another fit: n_lags differs"):
        Checkpoint(path, identity_of(other, X)).restore()
    with pytest.raises(ValueError, match="another fit: the data differs"):
        Checkpoint(path, identity_of(model, X + 1)).restore()
    longer = CNMF(**{**SETTINGS, "max_time": 9.0, "n_jobs": 1})
    assert Checkpoint(path, identity_of(longer, X)).restore() == 4
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="no checkpoint of motifold"):
        Checkpoint(path, identity_of(model, X)).restore()


# --- the command, stopped by signals ----------------------------------------------------------

DATA = make_sequences(6000, 60, 5, 20, random_state=3).X


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    np.save(folder / "counts.npy", DATA)
    return folder


def command(folder: Path, output: str, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "motifold.cli", "fit", str(folder / "counts.npy"), "-k", "5", "-l",
        "20", "--tol", "0", "--max-iter", "60", "--n-jobs", "1", "-o", str(folder / output), *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def whole(folder) -> tuple[CNMF, float]:
    """The uninterrupted fit, and how long its process took."""
    began = time.monotonic()
    subprocess.run(command(folder, "whole.npz"), check=True, capture_output=True)
    return motifold.load(folder / "whole.npz"), time.monotonic() - began


def resumed(folder: Path, output: str) -> CNMF:
    subprocess.run(command(folder, output, "--resume"), check=True, capture_output=True)
    assert not list(folder.glob(f"{output}.checkpoint*"))
    return motifold.load(folder / output)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_a_checkpoint(folder, whole, number, code):
    output = f"signal{number}.npz"
    process = subprocess.Popen(command(folder, output, "--checkpoint-every", "0"))
    wait_for(folder / f"{output}.checkpoint")
    process.send_signal(number)
    assert process.wait(60) == code
    assert (folder / f"{output}.checkpoint").exists()
    refused = subprocess.run(command(folder, output), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    assert_same(resumed(folder, output), whole[0])


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_killed_at_twenty_random_moments(folder, whole):
    """SIGKILL, again and again: every checkpoint loads, and the end is that of the whole fit."""
    expected, seconds = whole
    output = "killed.npz"
    moments = random.Random(0)
    killed = with_checkpoint = 0
    while killed < 20:
        path = folder / f"{output}.checkpoint"
        more = ("--resume", "--checkpoint-every", "0")
        process = subprocess.Popen(command(folder, output, *more), stderr=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
            with_checkpoint += path.exists()
        else:  # done between two kills: the model is whole, and the next fit starts anew
            assert process.returncode == 0
            assert_same(motifold.load(folder / output), expected)
    assert with_checkpoint >= 10
    assert_same(resumed(folder, output), expected)
