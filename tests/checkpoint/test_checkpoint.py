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
    with pytest.raises(ValueError, match="another fit: X differs"):
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


# --- the public face --------------------------------------------------------------------------


class Interrupt:
    """A callback that ends the fit after some iterations, as Ctrl-C does."""

    def __init__(self, after, error=KeyboardInterrupt):
        self.after = after
        self.error = error

    def __call__(self, state):
        self.after -= 1
        if self.after == 0:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("after", [2, 7, 40])
def test_an_interrupted_fit_goes_on(tmp_path, after, error):
    path = tmp_path / "fit.checkpoint"
    whole = CNMF(**SETTINGS).fit(X)
    model = CNMF(**SETTINGS, callback=Interrupt(after, error))
    with pytest.raises(error):
        motifold.fit_with_checkpoint(model, X, path)
    assert path.exists()
    seen = []
    model.set_params(callback=lambda state: seen.append(state.iteration))
    assert motifold.fit_with_checkpoint(model, X, path) is model
    assert_same(model, whole)
    assert len(seen) < 3 * max(whole.n_iter_, 10)
    assert not list(tmp_path.iterdir())


def test_seeds_need_not_be_given(tmp_path):
    """Without a seed, or with a generator, the fit goes on with the seeds that it drew."""
    settings = {**SETTINGS, "random_state": np.random.RandomState(7)}
    path = tmp_path / "fit.checkpoint"
    whole = CNMF(**{**SETTINGS, "random_state": np.random.RandomState(7)}).fit(X)
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(CNMF(**settings, callback=Interrupt(4)), X, path)
    unseeded = CNMF(**{**SETTINGS, "random_state": None})
    assert_same(motifold.fit_with_checkpoint(unseeded, X, path), whole)


def test_all_arguments_of_fit_are_compared(tmp_path):
    path = tmp_path / "fit.checkpoint"
    mask = np.random.default_rng(0).random(X.shape) > 0.1
    parts, masks = [X[:100], X[100:]], [mask[:100], mask[100:]]
    model = CNMF(**SETTINGS, callback=Interrupt(3))
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(model, parts, path, mask=masks)
    model = CNMF(**SETTINGS)
    for name, arguments in {
        "X": {"X": [X[:101], X[101:]], "mask": masks},
        "mask": {"X": parts, "mask": [mask[:100], ~mask[100:]]},
        "components_init": {"X": parts, "mask": masks, "components_init": np.ones((3, 8, 15))},
    }.items():
        with pytest.raises(ValueError, match=f"another fit: {name} differs.*resume=False"):
            motifold.fit_with_checkpoint(model, path=path, **arguments)
        assert path.exists()
    assert not hasattr(model, "components_")
    found = motifold.fit_with_checkpoint(model, parts, path, mask=masks)
    assert_same(found, CNMF(**SETTINGS).fit(parts, mask=masks))


def test_resume_false_starts_anew(tmp_path):
    path = tmp_path / "fit.checkpoint"
    path.write_text("of something else")
    with pytest.raises(ValueError, match=r"no checkpoint of motifold.*resume=False"):
        motifold.fit_with_checkpoint(CNMF(**SETTINGS), X, path)
    found = motifold.fit_with_checkpoint(CNMF(**SETTINGS), X, path, resume=False)
    assert_same(found, CNMF(**SETTINGS).fit(X))
    with pytest.raises(ValueError, match="warm_start"):
        motifold.fit_with_checkpoint(found.set_params(warm_start=True), X, path)


SCRIPT = """
import sys, numpy as np, motifold
model = motifold.CNMF(5, 20, tol=0, max_iter=60, random_state=0, n_jobs=1)
motifold.fit_with_checkpoint(model, np.load(sys.argv[1]), sys.argv[2], every=0).save(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_killed_script_goes_on(tmp_path):
    """SIGKILL soon after each of three first writes; then it is left in peace."""
    np.save(tmp_path / "counts.npy", DATA)
    paths = [tmp_path / name for name in ("counts.npy", "fit.checkpoint", "model.npz")]
    arguments = [sys.executable, "-W", "ignore", "-c", SCRIPT, *map(str, paths)]
    for wait in (0.0, 0.2, 0.4):
        before = paths[1].stat().st_mtime_ns if paths[1].exists() else 0
        process = subprocess.Popen(arguments)
        wait_for(paths[1])
        while process.poll() is None and paths[1].stat().st_mtime_ns == before:
            time.sleep(0.005)
        time.sleep(wait)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    subprocess.run(arguments, check=True)
    whole = CNMF(5, 20, tol=0, max_iter=60, random_state=0, n_jobs=1).fit(DATA)
    assert_same(motifold.load(paths[2]), whole)
    assert not paths[1].exists()
