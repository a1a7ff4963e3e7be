"""Files are written whole: what can go wrong on the way, and who else may write."""

from __future__ import annotations

import os
import re
import secrets
import socket
import stat
import subprocess
import sys
import threading

import pytest

from motifold.files import check_writable, put_in_place, refuse_nodes, write_whole, written_whole


@pytest.fixture
def target(tmp_path):
    """A file that is there already."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    return path


def test_a_new_file_and_a_replaced_one(tmp_path):
    path = tmp_path / "out.txt"
    for content in (b"first", b"second, longer"):
        with written_whole(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    write_whole(path, "ä text")
    assert path.read_text(encoding="utf-8") == "ä text"
    write_whole(str(path), b"\0bytes")
    assert path.read_bytes() == b"\0bytes"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_path_without_a_folder_and_a_long_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("out.txt", "x" * 255):
        write_whole(name, "here")
        assert (tmp_path / name).read_text() == "here"


def test_nothing_of_it_is_seen_before_the_end(target):
    with written_whole(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"


# --- errors on the way --------------------------------------------------------------------------


def test_an_error_without_a_name_gets_it(tmp_path):
    with (
        pytest.raises(OSError, match=r"No space left on device: .*x\.csv"),
        written_whole(tmp_path / "x.csv"),
    ):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("error", [OSError(28, "No space"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_leaves_the_old_file_and_nothing_else(target, error):
    with pytest.raises(type(error)) as caught, written_whole(target) as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert caught.value is error
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(5, "broken disk"), KeyboardInterrupt()])
def test_an_error_at_the_end_too(target, monkeypatch, call, error):
    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)):
            write_whole(target, "new")
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == [target.name]


FULL = """
import resource, signal, sys
from motifold.files import check_writable, written_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a full disk: longer files fail
try:
    with written_whole(sys.argv[1]) as file:
        file.write(bytes(5000))  # in the buffer still: closing fails as well
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted")
try:
    check_writable(sys.argv[1])
except OSError as error:
    print(error.filename)
"""


def test_a_full_disk_does_not_hide_the_interrupt(target):
    pytest.importorskip("resource")
    answer = subprocess.run(
        [sys.executable, "-c", FULL, str(target)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == ["interrupted", str(target)]
    assert answer.stderr == ""
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == [target.name]


# --- on the disk --------------------------------------------------------------------------------


def test_the_bytes_are_on_the_disk_before_the_rename_and_the_name_after_it(target, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(number):
        found = os.fstat(number)
        calls.append("folder" if stat.S_ISDIR(found.st_mode) else found.st_size)
        fsync(number)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("rename"), replace(*a)))
    write_whole(target, "new")
    assert calls == [len("new"), "rename", "folder"]


def test_a_system_that_cannot_sync_folders(tmp_path, monkeypatch):
    def no_folders(path, flags, *mode):
        if os.path.isdir(path):
            raise PermissionError
        return opened(path, flags, *mode)

    opened = os.open
    monkeypatch.setattr(os, "open", no_folders)
    write_whole(tmp_path / "out.txt", "new")
    assert (tmp_path / "out.txt").read_text() == "new"


def test_put_in_place(tmp_path, monkeypatch):
    (tmp_path / "part").write_text("new")
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.chdir(tmp_path)
    put_in_place("part", "out.txt")
    assert (tmp_path / "out.txt").read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]
    assert len(synced) == 1


# --- modes --------------------------------------------------------------------------------------


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_the_mode_of_the_old_file_stays(target, umask, mode):
    target.chmod(mode)
    with written_whole(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_bytes() == b"new"


def test_a_private_file_is_never_open_to_others(target, monkeypatch):
    def no_modes(*_):
        raise PermissionError

    monkeypatch.setattr(os, "fchmod", no_modes)
    target.chmod(0o600)
    with written_whole(target) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path, umask):
    write_whole(tmp_path / "out.txt", "new")
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o666 & ~umask


# --- links, and names that others took ----------------------------------------------------------


def test_a_link_planted_at_a_name_of_old_is_not_followed(target, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for name in ("out.txt.part", "out.txt.tmp", ".out.txt.tmp"):
        (tmp_path / name).symlink_to(victim)
    before = sorted(os.listdir(tmp_path))
    write_whole(target, "new")
    assert victim.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == before


def test_no_name_comes_twice(target):
    names = set()
    for _ in range(3):
        with written_whole(target):
            (name,) = set(os.listdir(target.parent)) - {target.name}
            assert re.fullmatch(r"\.motifold-[0-9a-f]{16}\.tmp", name)
            names.add(name)
    assert len(names) == 3


@pytest.mark.parametrize("dangling", [True, False])
def test_even_a_guessed_name_is_not_followed(target, tmp_path, monkeypatch, dangling):
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_bytes(b"precious")
    monkeypatch.setattr(secrets, "token_hex", lambda n: "guessed")
    (tmp_path / ".motifold-guessed.tmp").symlink_to(victim)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(FileExistsError):
        write_whole(target, "new")
    assert sorted(os.listdir(tmp_path)) == before
    assert dangling or victim.read_bytes() == b"precious"
    assert target.read_bytes() == b"old"


def test_a_target_that_is_a_link_stays_one(target, tmp_path):
    """What it points to is replaced, in its own folder, with its own mode."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to("../out.txt")
    target.chmod(0o600)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    target.unlink()
    write_whole(link, "again")
    assert target.read_text() == "again"
    assert os.listdir(link.parent) == ["link"]


# --- several writers ----------------------------------------------------------------------------


def test_two_writers_do_not_meet(target):
    with written_whole(target) as one:
        one.write(b"one, ")
        with written_whole(target) as two:
            two.write(b"two")
        assert target.read_bytes() == b"two"
        one.write(b"which ended last")
    assert target.read_bytes() == b"one, which ended last"
    with written_whole(target) as one:
        one.write(b"three")
        with pytest.raises(ValueError, match="no"), written_whole(target):
            raise ValueError("no")
    assert target.read_bytes() == b"three"
    assert os.listdir(target.parent) == [target.name]


def test_many_writers_at_once(target):
    contents = [bytes([65 + i]) * 50_000 for i in range(4)]
    failed, seen = [], set()

    def write(content):
        try:
            for _ in range(20):
                write_whole(target, content)
                seen.add(target.read_bytes())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert seen <= set(contents)
    assert os.listdir(target.parent) == [target.name]


# --- what is no file ----------------------------------------------------------------------------


def make(kind, path):
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    elif kind == "device":  # one of our own, like /dev/null: root would replace the real one
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices, and not everywhere")
    else:
        make("fifo", path.with_name("real"))
        path.symlink_to("real")


@pytest.mark.parametrize("kind", ["folder", "fifo", "socket", "device", "link to a fifo"])
@pytest.mark.parametrize("write", [lambda p: write_whole(p, "new"), check_writable, refuse_nodes])
def test_nodes_and_folders_are_refused_and_stay(tmp_path, monkeypatch, kind, write):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "node"
    make(kind, path)
    before = {name: os.lstat(name).st_mode for name in os.listdir(tmp_path)}
    expected = IsADirectoryError if kind == "folder" else OSError
    with pytest.raises(expected, match=r"it is a (folder|device).*give a file") as caught:
        write(path)
    assert caught.value.filename == str(path)
    assert {name: os.lstat(name).st_mode for name in os.listdir(tmp_path)} == before


def test_they_are_refused_before_the_block_runs(tmp_path):
    with pytest.raises(IsADirectoryError), written_whole(tmp_path):
        pytest.fail("too late")


@pytest.mark.parametrize("write", [lambda p: write_whole(p, "new"), check_writable])
def test_a_missing_folder_is_named(tmp_path, write):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*/no; make it") as caught:
        write(tmp_path / "no" / "out.txt")
    assert caught.value.filename == str(tmp_path / "no" / "out.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        write(tmp_path / "file" / "out.txt")


# --- trying a place -----------------------------------------------------------------------------


def test_a_good_place_is_left_as_it_was(target):
    before = target.stat()
    check_writable(target)
    check_writable(target.with_name("new.txt"))
    assert target.stat() == before
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_bad_place_is_named(target, monkeypatch, call):
    def fail(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Read-only") as caught:
        check_writable(target)
    assert caught.value.filename == str(target)
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            check_writable(tmp_path / "out.txt")
    finally:
        tmp_path.chmod(0o700)
