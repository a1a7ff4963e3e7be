"""The store of a sweep: foreign files stay as they are, and damage is told."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold.cli import main
from motifold.files import lock
from motifold.findings import store as module
from motifold.findings.store import RunStore, run_key
from motifold.findings.trial import Run

HEADER = {"data": "0123456789abcdef", "test": None, "n_blocks": 4, "n_null": 0, "alpha": 0.05}
KEYS = [run_key({"n_components": K, "n_lags": 3}, seed) for K in (1, 2) for seed in (0, 1)]
NAME = "kept.runs"


def outcome(number: int) -> Run:
    rng = np.random.default_rng(number)
    measures = {"loss": float(rng.random()), "test_error": np.nan, "n_iter": number}
    motifs = [{"motif": 0, "onset": 1, "length": 2, "share": float(rng.random())}]
    return Run(measures, motifs, rng.random((1, 3, 4), np.float32), rng.random((9, 1), np.float32))


def opened(path: Path, header: dict = HEADER) -> RunStore:
    """A store that does not keep others of the same path from being opened."""
    made = RunStore(path, header)
    made.close()
    return made


def filled(path: Path) -> RunStore:
    made = opened(path)
    for number, key in enumerate(KEYS):
        made.add(key, outcome(number))
    return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """A folder that has a store of four runs."""
    folder = tmp_path_factory.mktemp("kept")
    filled(folder / NAME)
    return folder


@pytest.fixture
def copy(kept, tmp_path) -> Path:
    """The store's file, in a copy that may be damaged."""
    shutil.copytree(kept, tmp_path / "copy")
    return tmp_path / "copy" / NAME


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def assert_true(found: RunStore, missing: set[int] = frozenset()) -> None:
    """Every run that is there is what was put in, and those alone are missing."""
    assert {i for i, key in enumerate(KEYS) if key not in found} == set(missing)
    for number, key in enumerate(KEYS):
        if number not in missing:
            run, truth = found[key], outcome(number)
            assert json.dumps([run.measures, run.motifs]) == (
                json.dumps([truth.measures, truth.motifs])
            )
            np.testing.assert_array_equal(run.components, truth.components)
            np.testing.assert_array_equal(run.activations, truth.activations)


# --- foreign files ------------------------------------------------------------------------------

OTHERS = {
    "no newline at the end": b"first line\nlast line, which an editor left without newline",
    "no newline at all": b"one line",
    "json": b'{\n  "precious": [1, 2, 3]\n}',
    "json with a format": b'{"format": 1, "name": "somebody else\'s"}\n{"a": 1}',
    "its beginning alone": b"{",
    "lists": b"[1, 2]\n[3",
    "bytes": bytes(range(256)) * 4,
    "a newline": b"\n",
}


@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS.keys())
def test_a_foreign_file_is_refused_and_stays(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"notes\.txt is not the file of a sweep.*another path"):
        opened(path)
    assert tree(tmp_path) == {"notes.txt": content}


@pytest.mark.parametrize("torn", [True, False])
def test_the_store_of_another_sweep_is_refused_and_stays(copy, torn):
    if torn:
        copy.write_bytes(copy.read_bytes()[:-20])
    shutil.rmtree(copy.with_name(NAME + ".fits"))
    before = tree(copy.parent)
    with pytest.raises(ValueError, match=r"another data \('0123456789abcdef', not 'f00'\)"):
        opened(copy, {**HEADER, "data": "f00"})
    assert tree(copy.parent) == before


def test_a_store_of_a_newer_format_is_refused_and_stays(tmp_path):
    path = tmp_path / NAME
    newer = {"format": 3, **HEADER}
    path.write_bytes(module._checked_line(newer, b"") + b"what it has")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="newer motifold"):
        opened(path)
    assert tree(tmp_path) == {NAME: before}


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*make it first"):
        opened(tmp_path / "a" / "b" / NAME)
    assert not tree(tmp_path)


def test_a_file_where_factors_should_go_is_told_before_any_run(tmp_path):
    (tmp_path / (NAME + ".fits")).write_text("precious")
    with pytest.raises(FileExistsError, match="it is no folder, but factors go there"):
        opened(tmp_path / NAME)
    assert tree(tmp_path) == {NAME + ".fits": b"precious"}


# --- what a crash leaves ------------------------------------------------------------------------


def test_it_is_read_as_it_was_written(copy):
    before = tree(copy.parent)
    assert_true(opened(copy))
    assert tree(copy.parent) == before


@pytest.mark.parametrize("cut", [1, 20, 100])
def test_a_torn_line_is_cut_off_without_a_word(copy, cut):
    data = copy.read_bytes()
    copy.write_bytes(data[:-cut])
    found = opened(copy)
    assert_true(found, {3})
    found.add(KEYS[3], outcome(3))
    assert copy.read_bytes() == data


@pytest.mark.parametrize("format", [1, 2])
def test_a_torn_first_line(tmp_path, format):
    path = tmp_path / NAME
    path.write_bytes(json.dumps({"format": format, **HEADER}).encode()[:40])
    filled(path)
    assert_true(opened(path))


# --- damage -------------------------------------------------------------------------------------


def test_every_flipped_bit_of_the_file_is_told(copy):
    """In any place: whatever is still there is true, and what is not will be run again."""
    data = copy.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.permutation(len(data) - 1)[:50]:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        copy.write_bytes(changed)
        with pytest.warns(UserWarning, match=rf"{NAME}: the store of this sweep is damaged"):
            found = opened(copy)
        first = data.count(b"\n", 0, place)
        lost = {first - 1} if first else set()
        if changed[place] != data[place] and data[place] == ord("\n"):
            lost.add(first)  # two lines have become one
        assert_true(found, {number for number in lost if number >= 0})
        for number in lost:
            found.add(KEYS[number], outcome(number))
        assert_true(opened(copy))  # whole again, and quiet


def test_a_damaged_first_line_of_a_store_with_nothing_else_is_foreign(tmp_path):
    path = tmp_path / NAME
    opened(path)
    path.write_bytes(path.read_bytes().replace(b"n_blocks", b"m_blocks"))
    with pytest.raises(ValueError, match="not the file of a sweep"):
        opened(path)


def compressed(data: bytes) -> bytes:
    file = io.BytesIO()
    with np.load(io.BytesIO(data)) as arrays:
        np.savez_compressed(file, **arrays)
    return file.getvalue()


DAMAGES = {
    "flipped": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "empty": lambda data: b"",
    "another's": compressed,
}


@pytest.mark.parametrize("old", [False, True], ids=["", "0.1"])
@pytest.mark.parametrize("damage", [*DAMAGES, "missing"])
def test_damaged_factors_are_told(copy, damage, old):
    if old:
        without_checksums(copy)
    lost = opened(copy)._factors(KEYS[2])
    if old:
        without_checksums(copy)
    if damage == "missing":
        lost.unlink()
    else:
        lost.write_bytes(DAMAGES[damage](lost.read_bytes()))
    with pytest.warns(UserWarning, match=rf"damaged \(line 4: .*{lost.name}.*run again"):
        found = opened(copy)
    assert_true(found, {2})
    found.add(KEYS[2], outcome(2))
    assert_true(opened(copy))


def test_swapped_factors_are_told(copy):
    made = opened(copy)
    one, two = made._factors(KEYS[0]), made._factors(KEYS[1])
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    with pytest.warns(UserWarning, match="line 2: the checksum.*; line 3: the checksum"):
        assert_true(opened(copy), {0, 1})


def test_lines_of_another_sweep_are_told(copy, tmp_path):
    other = opened(tmp_path / "other", {**HEADER, "data": "another"})
    other.add(KEYS[0], outcome(7))
    line = (tmp_path / "other").read_bytes().splitlines(keepends=True)[1]
    copy.write_bytes(copy.read_bytes() + line)
    with pytest.warns(UserWarning, match="line 6: its checksum is wrong"):
        assert_true(opened(copy))


def test_of_much_damage_a_part_is_told(copy):
    shutil.rmtree(copy.with_name(NAME + ".fits"))
    with pytest.warns(UserWarning, match="line 2: .*line 3: .*line 4: .*and 1 more"):
        assert_true(opened(copy), {0, 1, 2, 3})


def test_a_warning_that_is_an_error_changes_nothing(copy):
    copy.write_bytes(copy.read_bytes().replace(b"n_iter", b"n_iteR", 1))
    before = tree(copy.parent)
    with pytest.raises(UserWarning, match="damaged"):  # as pytest makes of it
        opened(copy)
    assert tree(copy.parent) == before


# --- stores of 0.1 ------------------------------------------------------------------------------


def without_checksums(path: Path) -> None:
    """As 0.1 wrote it."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    records[0]["format"] = 1
    for record in records:
        record.pop("check")
        record.pop("factors", None)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_store_of_0_1_is_read_and_gets_checksums(copy):
    whole = copy.read_bytes()
    without_checksums(copy)
    assert b"check" not in copy.read_bytes()
    assert_true(opened(copy))
    assert copy.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"key": 1}',
             b'{"key": "a", "measures": [], "motifs": []}',
             b'{"key": "a", "measures": {}, "motifs": [1]}'],
    ids=lambda line: line[:20],
)  # fmt: skip
def test_lines_of_0_1_that_are_none(copy, line):
    without_checksums(copy)
    copy.write_bytes(copy.read_bytes() + line + b"\n")
    with pytest.warns(UserWarning, match="line 6: it is no"):
        assert_true(opened(copy))


# --- writing ------------------------------------------------------------------------------------


def test_factors_are_on_the_disk_before_their_line(tmp_path, monkeypatch):
    made = opened(tmp_path / NAME)
    synced = []
    fsync = os.fsync

    def watched(number):
        synced.append(os.readlink(f"/proc/self/fd/{number}").rpartition("/")[2])
        fsync(number)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", watched)
    made.add(KEYS[0], outcome(0))
    assert [name.startswith(".motifold-") for name in synced] == [True, False, False]
    assert synced[1:] == [NAME + ".fits", NAME]  # the folder that has the name, then the line


def test_a_full_disk_is_told_and_no_half_line_stays(tmp_path, monkeypatch):
    """The runs are kept in memory; what found room is whole."""
    made = opened(tmp_path / NAME)
    made.add(KEYS[0], outcome(0))
    size = (tmp_path / NAME).stat().st_size

    def limit(path, line, append=module._append):
        """The disk is full after twenty bytes of the line."""
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        try:
            append(path, line)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_append", limit)
        with pytest.warns(UserWarning, match=rf"{NAME}: a finished run cannot be written"):
            made.add(KEYS[1], outcome(1))
        made.add(KEYS[2], outcome(2))  # nor is this one, but once is enough
    assert (tmp_path / NAME).stat().st_size == size
    made.add(KEYS[3], outcome(3))
    assert_true(made)
    assert_true(opened(tmp_path / NAME), {1, 2})


def test_an_interrupt_leaves_no_half_line(tmp_path, monkeypatch):
    made = opened(tmp_path / NAME)
    before = (tmp_path / NAME).read_bytes()

    def interrupted(number):
        raise KeyboardInterrupt

    real = os.fsync
    written = module.write_whole

    def armed(*arguments):
        written(*arguments)
        monkeypatch.setattr(os, "fsync", interrupted)

    monkeypatch.setattr(module, "write_whole", armed)
    with pytest.raises(KeyboardInterrupt):
        made.add(KEYS[0], outcome(0))
    monkeypatch.setattr(os, "fsync", real)
    assert (tmp_path / NAME).read_bytes() == before


# --- two at once ---------------------------------------------------------------------------------

HELD = """
import sys, time, motifold
import numpy as np
from motifold.findings.store import RunStore

def add(store, *run, add=RunStore.add):
    add(store, *run)
    print("one run", flush=True)
    time.sleep(600)

RunStore.add = add
motifold.sweep(np.load(sys.argv[1]), n_components=1, n_lags=3, n_seeds=2, max_iter=3, test=None,
               n_null=0, path=sys.argv[2], progress=False, n_jobs=1)
"""
OPTIONS = {"n_lags": 3, "n_seeds": 2, "max_iter": 3, "test": None, "n_null": 0, "n_jobs": 1}


def test_two_sweeps_do_not_meet_and_a_killed_one_holds_nobody_up(tmp_path):
    recording, path = tmp_path / "x.npy", tmp_path / NAME
    X = np.random.default_rng(0).random((60, 4))
    np.save(recording, X)
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", HELD, str(recording), str(path)]

    def again(**more):
        return motifold.sweep(X, n_components=1, path=path, progress=False, **OPTIONS, **more)

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "one run\n"
            before = tree(tmp_path)
            with pytest.raises(
                BlockingIOError, match=f"another sweep is working on .*{NAME}: wait"
            ):
                again()
            arguments = ["sweep", str(recording), "-k1", "-l3", "--store", str(path), "--seeds=2"]
            few = ["--test=none", "--n-null=0", "--max-iter=3", "-o", str(tmp_path / "t.csv")]
            result = CliRunner().invoke(main, [*arguments, *few])
            assert result.exit_code == 3  # as for any file that cannot be used
            assert f"another sweep is working on {path}: wait until it has ended" in result.output
            assert tree(tmp_path) == before
        finally:
            process.kill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert len(again().table) == 2


def test_within_one_process_they_come_one_after_the_other(tmp_path):
    with RunStore(tmp_path / NAME, HEADER), pytest.raises(BlockingIOError, match="another sweep"):
        opened(tmp_path / NAME)
    opened(tmp_path / NAME)


def test_the_file_of_the_lock_says_what_it_is_and_nothing_depends_on_it(copy):
    lock_file = copy.with_name(f"{NAME}.fits") / "in-use"
    assert b"may be deleted" in lock_file.read_bytes()
    for content in (b"\0", b"", None):
        if content is None:
            lock_file.unlink()
        else:
            lock_file.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_true(opened(copy))
        # Somebody else's bytes are not written over.
        assert content is None or lock_file.read_bytes() == content


def test_where_there_are_no_locks_nothing_is_said(tmp_path, monkeypatch):
    """As on some file systems of a network."""

    def refused(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(lock, "_take", refused)
    with RunStore(tmp_path / NAME, HEADER):
        opened(tmp_path / NAME)


# --- workers ------------------------------------------------------------------------------------

SWEEP = """
import os, signal, sys, motifold
import numpy as np
from motifold.findings.store import RunStore

def add(store, *run, add=RunStore.add):
    add(store, *run)
    os.kill(os.getpid(), int(sys.argv[2]))

RunStore.add = add
X = np.random.default_rng(0).random((400, 10))
motifold.sweep(X, n_components=[1, 2, 3], n_lags=10, n_seeds=40, tol=0, max_iter=200, test=None,
               n_null=0, path=sys.argv[1], progress=False, n_jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_sweep_that_is_killed(tmp_path, number):
    """They hold its output open: it ends when the last of them has."""
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    command = [sys.executable, "-c", SWEEP, str(tmp_path / NAME), str(int(number))]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("workers are left")
    assert process.returncode == -number
