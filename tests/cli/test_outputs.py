"""Where the commands write: a place that is none is refused before any work, and stays."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from click.testing import CliRunner

import motifold
from motifold.cli import main
from motifold.datasets import make_sequences

X = make_sequences(200, 6, 2, 4, random_state=0).X
FIT = ("-k", 1, "-l", 3)
SWEEP = (*FIT, "--seeds", 1, "--test", "none", "--n-null", 0, "--n-jobs", 1)


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A recording, a model of it, a pipe and a folder."""
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", X)
    motifold.CNMF(2, 4, random_state=0, tol=0.05).fit(X).save("model.npz")
    os.mkfifo("pipe")
    os.mkfifo("pipe.npy")
    os.mkdir("folder")
    return tmp_path


COMMANDS = {
    "fit": ["fit", "counts.npy", *FIT, "-o"],
    "report of a fit": ["fit", "counts.npy", *FIT, "-o", "new.npz", "--report"],
    "sweep": ["sweep", "counts.npy", *SWEEP, "-o"],
    "store": ["sweep", "counts.npy", *SWEEP, "-o", "new.csv", "--store"],
    "events": ["events", "model.npz", "-o"],
    "report": ["report", "model.npz", "--data", "counts.npy", "-o"],
    "transform": ["transform", "model.npz", "counts.npy", "-o"],
}
ENDINGS = {"report": "out.html", "report of a fit": "out.html", "transform": "out.npy"}


@pytest.mark.parametrize("place", ["pipe", "folder", "no/file"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_that_is_none(folder, monkeypatch, name, place):
    def work(*_, **__):
        pytest.fail("too late")

    monkeypatch.setattr(motifold.CNMF, "fit", work)
    monkeypatch.setattr(motifold.CNMF, "transform", work)
    place = place.replace("pipe", "pipe.npy") if name == "transform" else place
    if name == "transform" and not place.endswith(".npy"):
        place += ".npy"
    if place == "folder.npy":
        os.mkdir(place)
    before = sorted(os.listdir())
    answer = run(*COMMANDS[name], place)
    assert answer.exit_code == 3, answer.output
    assert f"{place}: " in answer.output
    assert "it is a" in answer.output or "there is no folder" in answer.output
    assert sorted(os.listdir()) == before
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert stat.S_ISFIFO(os.stat("pipe.npy").st_mode)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("fit", "store")])
def test_a_file_that_is_replaced_keeps_its_mode(folder, name):
    path = folder / ENDINGS.get(name, "out.csv")
    path.write_text("old")
    path.chmod(0o640)
    assert run(*COMMANDS[name], path).exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not list(folder.glob(".motifold-*"))


def test_a_failed_save_leaves_the_old_activations(folder, monkeypatch):
    (folder / "a.npy").write_bytes(b"old")

    def half(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", half)
    answer = run("transform", "model.npz", "counts.npy", "-o", "a.npy")
    assert (answer.exit_code, "No space" in answer.output) == (3, True)
    assert (folder / "a.npy").read_bytes() == b"old"
    assert not list(folder.glob(".motifold-*"))


def test_an_interrupt_on_a_full_disk_is_told_as_one(folder, monkeypatch):
    """Neither the checkpoint nor a model is there, and the exit code is that of Ctrl-C."""
    from motifold.storage.checkpoint import Checkpoint

    def full(self):
        raise OSError(28, "No space left on device")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "write", full)
    monkeypatch.setattr(motifold.CNMF, "_fit", interrupted)
    answer = run("fit", "counts.npy", *FIT, "-o", "new.npz")
    assert answer.exit_code == 130
    assert "new.npz.checkpoint could not be written: [Errno 28]" in answer.output
    assert "Nothing was kept" in answer.output
    assert not list(folder.glob("new*"))
