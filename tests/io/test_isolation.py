"""Reading in a child: the same recording, and whatever happens to the child is an error here."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import savemat

from motifold.cli import main
from motifold.io import RecordingError, isolation, read

X = np.round(np.random.default_rng(0).random((300, 7)), 3)


def write_h5(path, **more):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, **more).attrs["_FillValue"] = X[3, 2]


def write_csv(path):
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e,f,g", comments="")


WRITERS = {
    "a.npy": lambda path: np.save(path, np.asfortranarray(X)),
    "a.npz": lambda path: np.savez_compressed(path, X=X),
    "a.csv": write_csv,
    "a.mat": lambda path: savemat(path, {"X": X}),
    "a.h5": write_h5,
    "packed.h5": lambda path: write_h5(path, chunks=(16, 3), compression="gzip"),
}


@pytest.fixture
def child_of(monkeypatch):
    """The children that were started, and a way to have another one started."""
    found = []
    start = isolation.subprocess.Popen

    def started(command, **more):
        found.append(start(command, **more))
        return found[-1]

    monkeypatch.setattr(isolation.subprocess, "Popen", started)
    return found


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("orientation", ["time_first", "features_first"])
def test_it_is_the_same_recording(tmp_path, monkeypatch, child_of, name, orientation):
    monkeypatch.chdir(tmp_path)
    WRITERS[name](name)
    here = read(name, orientation=orientation)
    there = read(name, orientation=orientation, isolate=True)
    np.testing.assert_array_equal(np.asarray(there.X), np.asarray(here.X))
    np.testing.assert_array_equal(there.X[5:9], here.X[5:9])
    assert type(there.X) is type(here.X)
    for field in ("source", "rate", "feature_names", "lengths", "options", "hints", "missing"):
        assert getattr(there, field) == getattr(here, field), field
    assert there.X.dtype == here.X.dtype
    del there  # the last who knew of the child
    gc.collect()
    assert all(child.poll() is not None for child in child_of)


def test_options_and_errors_are_the_same(tmp_path):
    path = tmp_path / "a.h5"
    write_h5(path)
    with pytest.raises(RecordingError) as here:
        read(path, key="gone")
    with pytest.raises(RecordingError) as there:
        read(path, key="gone", isolate=True)
    assert str(here.value) == str(there.value)
    with pytest.raises(RecordingError, match="declares it to be missing"):
        read(path, isolate=True).checked()
    assert read(path, isolate=True, missing="mask", rate=np.float64(5)).checked().rate == 5
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone.h5", isolate=True)


def broken_mat(path):
    """A byte changed in a way at which scipy dies."""
    savemat(path, {"X": X[:40, :6]})
    data = bytearray(path.read_bytes())
    data[176] = 0
    path.write_bytes(data)


def test_a_child_that_dies(tmp_path):
    path = tmp_path / "a.mat"
    broken_mat(path)
    with pytest.raises(RecordingError, match=r"a\.mat: .*damaged"):
        read(path, orientation="time_first", isolate=True)


def test_info_is_isolated(tmp_path):
    path = tmp_path / "a.mat"
    broken_mat(path)
    told = CliRunner().invoke(main, ["info", str(path), "--orientation", "time_first"])
    assert told.exit_code == 3
    assert "a.mat" in told.output
    assert "damaged" in told.output


@pytest.mark.parametrize("option", ["--isolate", "--no-isolate"])
def test_commands_can_be(tmp_path, child_of, option):
    path, model = tmp_path / "a.npy", tmp_path / "model.npz"
    np.save(path, X)
    found = CliRunner().invoke(main, ["fit", str(path), "-k1", "-l2", "-o", str(model), option])
    assert found.exit_code == 0, found.output
    children = [child for child in child_of if isolation._CODE in child.args]
    assert len(children) == (option == "--isolate")


def as_child(monkeypatch, code):
    """Let the child be some other program."""
    monkeypatch.setattr(isolation, "_CODE", f"import os, signal, sys\n{code}")


SAYS = "def say(*lines): sys.stdout.write('\\n'.join(lines) + '\\n'); sys.stdout.flush()\n"
READY = SAYS + "say('{}')\n"
META = {
    "shape": [3, 2], "dtype": "<f8", "chunks": None, "lazy": True, "fills": [], "mapped": None,
    "rate": None, "feature_names": None, "lengths": None, "feature_axis": None,
    "timestamps": False, "missing": "error", "hints": [], "nbytes": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "died of SIGSEGV"),
        ("os._exit(7)", "exit 7"),
        (READY + "os.kill(os.getpid(), signal.SIGBUS)", "died of SIGBUS"),
        (READY + "say('not json')", "did not say"),
        (READY + "say('[1, 2]')", "did not say"),
        (READY + "say('{}')", "bytes"),
        (READY + """say('{"error": ["PanicException", "oh"]}')""", "PanicException: oh"),
        (READY + """say('{"error": ["MemoryError", ""]}')""", "max_bytes"),
        (READY + "say('{\"nbytes\": 100}', 'short')", "exit 0"),
    ],
)
def test_whatever_a_child_does_is_an_error(tmp_path, monkeypatch, child_of, code, told):
    np.save(tmp_path / "a.npy", X)
    as_child(monkeypatch, code)
    with pytest.raises(RecordingError, match=told) as caught:
        read(tmp_path / "a.npy", isolate=True)
    assert str(tmp_path / "a.npy") in str(caught.value)
    assert child_of[0].poll() is not None


def test_a_library_that_the_child_lacks(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", X)
    as_child(monkeypatch, READY + """say('{"error": ["ModuleNotFoundError", "needs h5py"]}')""")
    with pytest.raises(ImportError, match="needs h5py"):
        read(tmp_path / "a.npy", isolate=True)


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": [3]},
        {"shape": [0, 2]},
        {"shape": [2**40, 2**20]},
        {"dtype": "O"},
        {"dtype": "<M8[s]"},
        {"chunks": [0, 1]},
        {"rate": "fast"},
        {"rate": -1.0},
        {"feature_names": ["a"]},
        {"missing": "rm -r"},
        {"timestamps": True},
        {"nbytes": 2**50},
        {"nbytes": -1},
        {"mapped": {"offset": -1, "order": "C"}},
        {"mapped": {"offset": 10**9, "order": "C"}},
        {"mapped": {"offset": 0, "order": "A"}},
        {"fills": ["x"]},
    ],
)
def test_a_child_is_not_believed(tmp_path, monkeypatch, lie):
    np.save(tmp_path / "a.npy", X)
    as_child(monkeypatch, READY + f"say({json.dumps({**META, **lie})!r})")
    with pytest.raises(RecordingError):
        read(tmp_path / "a.npy", isolate=True)


def test_values_are_as_many_as_were_asked_for(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", X)
    serve = READY + f"say({json.dumps(META)!r})\nsys.stdin.readline(); sys.stdin.readline()\n"
    as_child(monkeypatch, serve + "say('{\"nbytes\": 8}', 'abcdefg')")
    recording = read(tmp_path / "a.npy", isolate=True)
    with pytest.raises(RecordingError, match="8 bytes of 48"):
        recording.X.load()
    with pytest.raises(RecordingError, match="has ended"):
        recording.X.load()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_child_that_hangs(tmp_path, monkeypatch, child_of):
    """Nobody writes into this pipe."""
    os.mkfifo(tmp_path / "a.csv")
    monkeypatch.setattr(isolation, "_PATIENCE", 0.2)
    with pytest.raises(RecordingError, match="no sign of life"):
        read(tmp_path / "a.csv", isolate=True)
    assert child_of[0].returncode == -signal.SIGKILL


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a pipe cannot be waited for")
def test_a_child_that_does_not_start_is_not_the_files_fault(tmp_path, monkeypatch, child_of):
    np.save(tmp_path / "a.npy", X)
    as_child(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(isolation, "_START", 0.2)
    with pytest.raises(RecordingError, match=r"had not started after 0 seconds.*not opened: try"):
        read(tmp_path / "a.npy", isolate=True)
    assert child_of[0].returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_child_gets_no_more_memory_than_the_file_may_need(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", X)
    greedy = "import motifold.io.npy\ndef read(path, options): bytearray(4 << 30)\n"
    greedy += "motifold.io.npy.read = read\nfrom motifold.io.worker import main; main()"
    as_child(monkeypatch, f"sys.path[:] = sys.argv[1:]\n{greedy}")
    with pytest.raises(RecordingError, match="more memory than a file of"):
        read(tmp_path / "a.npy", isolate=True)


def test_panics_are_errors():
    """polars' are no Exception."""
    from motifold.io.guards import guard

    class PanicException(BaseException):
        pass

    with (
        pytest.raises(RecordingError, match=r"a\.parquet: cannot be read as"),
        guard("a.parquet", "a parquet file"),
    ):
        raise PanicException("unwrap on None")
    with pytest.raises(KeyboardInterrupt), guard("a.parquet", "a parquet file"):
        raise KeyboardInterrupt
