"""Where the commands write: what is no place is refused before any work, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from commands import run

import motifold
from motifold.datasets import make_sequences

X = make_sequences(200, 6, 2, 4, random_state=0).X
FIT = ("-k", 1, "-l", 3)
SWEEP = (*FIT, "--seeds", 1, "--test", "none", "--n-null", 0, "--n-jobs", 1)


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


# --- an output that is an input, or another output ----------------------------------------------


@pytest.fixture
def links(folder):
    """Other names of the recording and of the model, and what the commands make of them."""
    for name, made in (("soft.npy", os.symlink), ("hard.npy", os.link)):
        made("counts.npy", name)
    os.symlink("model.npz", "soft.npz")
    shutil.copy("counts.npy", "fit.checkpoint")
    shutil.copy("counts.npy", "s.csv.runs")
    os.mkdir("r.csv.runs.fits")
    shutil.copy("counts.npy", "r.csv.runs.fits")
    zarr = pytest.importorskip("zarr")
    zarr.open_array("x.zarr", mode="w", shape=X.shape, dtype="f4")[:] = X
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SAME = {
    "fit -o": "fit counts.npy -k 1 -l 3 -o counts.npy",
    "fit -o soft": "fit counts.npy -k 1 -l 3 -o soft.npy",
    "fit -o hard": "fit counts.npy -k 1 -l 3 -o hard.npy",
    "fit soft": "fit soft.npy -k 1 -l 3 -o ./counts.npy",
    "fit --report": "fit counts.npy -k 1 -l 3 -o new.npz --report soft.npy",
    "fit, checkpoint": "fit fit.checkpoint --kind npy -k 1 -l 3 -o fit",
    "fit, checkpoint, restart": "fit fit.checkpoint --kind npy -k 1 -l 3 -o fit --restart",
    "fit, in a folder": "fit x.zarr -k 1 -l 3 -o x.zarr/c/0/0",
    "fit, two outputs": "fit counts.npy -k 1 -l 3 -o new.npz --report ./new.npz",
    "fit, report and checkpoint": "fit counts.npy -k 1 -l 3 -o new --report new.checkpoint",
    "sweep -o": "sweep counts.npy -k 1 -l 3 -o soft.npy",
    "sweep --store": "sweep counts.npy -k 1 -l 3 -o new.csv --store hard.npy",
    "sweep, its own store": "sweep s.csv.runs --kind npy -k 1 -l 3 -o s.csv",
    "sweep, two outputs": "sweep counts.npy -k 1 -l 3 -o new.csv --store new.csv",
    "sweep -o, factors": "sweep counts.npy -k 1 -l 3 --store new -o new.fits",
    "sweep, among factors": "sweep r.csv.runs.fits/counts.npy -k 1 -l 3 -o r.csv",
    "transform -o": "transform model.npz counts.npy -o counts.npy",
    "transform -o soft": "transform model.npz counts.npy -o soft.npy",
    "transform -o, in a folder": "transform model.npz x.zarr -o x.zarr/c/a.npy",
    "events -o, recording": "events model.npz --data counts.npy -o hard.npy",
    "events -o, model": "events model.npz -o soft.npz",
    "features -o": "features model.npz -o soft.npz",
    "export -o": "export model.npz --to npz -o soft.npz",
    "significance -o, recording": "significance model.npz --data counts.npy -o hard.npy",
    "significance -o, model": "significance model.npz --data counts.npy -o soft.npz",
    "discover -o": "discover counts.npy -l 3 -o soft.npy",
    "discover --report": "discover counts.npy -l 3 --report hard.npy",
    "discover --save": "discover counts.npy -l 3 --save hard.npy",
    "discover --store": "discover counts.npy -l 3 --store counts.npy",
    "separate -o": "separate counts.npy -k 1 -o .",
    "separate --report": "separate counts.npy -k 1 --report soft.npy",
    "separate, a template": "separate x.wav --templates counts.npy --save-model hard.npy",
    "report -o, recording": "report model.npz --data counts.npy -o counts.npy",
    "report -o, model": "report model.npz --data counts.npy -o model.npz",
}


@pytest.mark.parametrize("name", SAME)
def test_an_output_is_neither_an_input_nor_another_output(links, monkeypatch, name):
    def work(*_, **__):
        pytest.fail("too late")

    monkeypatch.setattr("motifold.io.read", work)
    if not name.startswith("significance"):  # the model may have the recording's name
        monkeypatch.setattr("motifold.load", work)
    before = contents(links)
    answer = run(*SAME[name].split())
    assert answer.exit_code == 2, answer.output
    assert "replace" in answer.output
    assert "Give another name" in " ".join(answer.output.split())
    assert contents(links) == before


def test_a_foreign_file_is_no_checkpoint_to_be_thrown_away(folder):
    Path("new.npz.checkpoint").write_text("precious")
    for option in ((), ("--resume",), ("--restart",)):
        answer = run("fit", "counts.npy", *FIT, "-o", "new.npz", *option)
        assert answer.exit_code in (2, 3), answer.output
        assert Path("new.npz.checkpoint").read_text() == "precious"
    assert "it is no checkpoint of motifold, and stays" in answer.output


def test_a_damaged_checkpoint_may_be_thrown_away(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            "motifold.cli.fit._Log.__call__",
            lambda self, state: state.iteration > 2 and interrupt(),
        )
        assert run("fit", "counts.npy", *FIT, "-o", "new.npz").exit_code == 130
    path = Path("new.npz.checkpoint")
    path.write_bytes(path.read_bytes()[:-200])
    assert run("fit", "counts.npy", *FIT, "-o", "new.npz", "--resume").exit_code == 3
    assert run("fit", "counts.npy", *FIT, "-o", "new.npz", "--restart").exit_code == 0
    assert not path.exists()


# --- names that lie -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "told"),
    [
        ("events", "x.nwb", ".csv or .txt"),
        ("events", "x.xlsx", ".csv or .txt"),
        ("sweep", "x.parquet", ".csv or .txt"),
        ("report", "x.pdf", ".html or .htm"),
        ("report of a fit", "x.npz", ".html or .htm"),
        ("transform", "x.mat", ".npy, .csv or .zarr"),
        ("fit", "x.csv", "give .npz"),
        ("fit", "x.html", "give .npz"),
    ],
)
def test_an_ending_of_something_else(folder, name, place, told):
    before = contents(folder)
    answer = run(*COMMANDS[name], place)
    assert answer.exit_code == 2, answer.output
    assert place in answer.output
    assert told in " ".join(answer.output.split())
    assert contents(folder) == before


@pytest.mark.parametrize("place", ["x", "x_0.4", "X.NPZ", "x.model"])
def test_a_model_may_have_any_other_name(folder, place):
    assert run(*COMMANDS["fit"], place).exit_code == 0
    motifold.load(place)


def test_events_are_written_and_printed(folder):
    answer = run("events", "model.npz", "-o", "e.csv", "--json")
    assert (
        len(json.loads(answer.output)["events"]) == len(Path("e.csv").read_text().splitlines()) - 1
    )


# --- no room at the end -------------------------------------------------------------------------

WRITTEN = {
    "fit": ("new.npz", "The model"),
    "sweep": ("new.csv", "The table"),
    "events": ("new.csv", "The list"),
    "transform": ("new.npy", "The result"),
    "report": ("new.html", "The page"),
    "report of a fit": ("new.html", "The page"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_result_goes_elsewhere_rather_than_be_lost(folder, tmp_path_factory, monkeypatch, name):
    """The place was good when it was tried, and is none when the work is done."""
    from motifold.files import whole

    begun = whole._begun
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))

    def full(path):
        path = Path(path)
        mine = path.name.startswith("new") and path.suffix == Path(place).suffix
        if path.absolute().parent == folder and mine:
            raise OSError(28, "No space left on device", str(path))
        return begun(path)

    place, what = WRITTEN[name]
    monkeypatch.setattr("motifold.files.check_writable", lambda path: None)
    monkeypatch.setattr(whole, "_begun", full)
    answer = run(*COMMANDS[name], place, *(["--store", "runs"] if name == "sweep" else []))
    assert answer.exit_code == 3, answer.output
    (kept,) = [path for path in elsewhere.rglob("*") if path.is_file()]
    told = answer.output.splitlines()[-1]
    assert told == f"Error: {place}: No space left on device. {what} is not lost: it is in {kept}"
    monkeypatch.setattr(whole, "_begun", begun)
    assert not list(folder.glob(f"new*{Path(place).suffix}"))
    assert run(*COMMANDS[name], place).exit_code == 0
    if name == "fit":  # which has the seconds it took
        found, expected = (motifold.load(path).components_ for path in (kept, place))
        np.testing.assert_array_equal(found, expected)
    elif name.startswith("report"):  # which has the seconds, too
        assert kept.read_text().endswith("</html>\n")
    else:
        assert kept.read_bytes() == Path(place).read_bytes()


def test_a_store_goes_elsewhere_too(folder, tmp_path_factory, monkeypatch):
    pytest.importorskip("zarr")
    from motifold.io import zarr_store

    write, elsewhere = zarr_store.write_zarr, tmp_path_factory.mktemp("elsewhere")

    def full(path, values):
        if Path(path).absolute().parent == folder:
            raise OSError(28, "No space left on device", str(path))
        write(path, values)

    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setattr(zarr_store, "write_zarr", full)
    answer = run("transform", "model.npz", "counts.npy", "-o", "a.zarr")
    assert answer.exit_code == 3, answer.output
    (kept,) = elsewhere.glob("*/a.zarr")
    assert f"The result is not lost: it is in {kept}" in answer.output


def test_parts_go_elsewhere_too(folder, tmp_path_factory, monkeypatch):
    from motifold.files import whole

    begun, elsewhere = whole._begun, tmp_path_factory.mktemp("elsewhere")

    def full(path):
        if folder in Path(path).absolute().parents and Path(path).suffix == ".wav":
            raise OSError(28, "No space left on device", str(path))
        return begun(path)

    write_wav(folder / "x.wav")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setattr(whole, "_begun", full)
    answer = run(*SEPARATE, "-o", "parts")
    assert answer.exit_code == 3, answer.output
    assert [path.name for path in elsewhere.rglob("*.wav")] == ["motif-0.wav"]
    assert "Each part is not lost: it is in" in answer.output


def write_wav(path):
    from scipy.io import wavfile

    wavfile.write(path, 8000, np.random.default_rng(0).normal(size=8000).astype(np.float32))


SEPARATE = ("separate", "x.wav", "-k", 1, "--n-init", 1, "--max-iter", 2)


@pytest.mark.parametrize("name", ["separate", "export"])
def test_a_folder_in_which_nothing_can_be_written(folder, monkeypatch, name):
    """It is tried before the work: in the nearest folder there is."""
    from motifold.files import whole

    def refused(path):
        raise OSError(30, "Read-only file system", str(path))

    def work(*_, **__):
        pytest.fail("too late")

    write_wav(folder / "x.wav")
    monkeypatch.setattr(whole, "_begun", refused)
    monkeypatch.setattr("motifold.sound.separate", work)
    monkeypatch.setattr("motifold.load", work)
    before = contents(folder)
    commands = {"separate": SEPARATE, "export": ("export", "model.npz", "--to", "csv")}
    for place in ("folder", "new/er"):
        answer = run(*commands[name], "-o", place)
        assert answer.exit_code == 3, answer.output
        assert "Read-only" in answer.output
    assert contents(folder) == before
    assert not Path("new").exists()
