"""Files that appear whole or not at all.

A file is written under another name in the same folder and renamed when all of it is on the disk,
so that the name always stands for the old file or the new one. The other name cannot be guessed
and must be new: nobody can plant a link there, and two writers never meet. A target that is a
link stays one: what it points to is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

Path = str | os.PathLike[str]

_TRIED_BYTES = 4096
_NO_ROOM = {errno.ENOSPC, errno.EFBIG}  # errors of writing, which do not say to what


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A new file to write to, which takes the place of ``path`` when the block has ended well.

    Whatever ends the block otherwise, Ctrl-C included, the new file is removed and an older one
    stays. A file that is replaced passes on its mode.

    Raises
    ------
    OSError
        Before anything is written, if the folder is missing, or ``path`` is a folder, a device, a
        pipe or a socket.
    """
    target, part, file = _begun(path)
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        put_in_place(part, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            error.filename = os.fspath(path)
        # On a full disk closing fails as well, and would hide what ended the block.
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to a file, whole or not at all."""
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_writable(path: Path) -> None:
    """Raise now what ``written_whole`` would raise after long work; nothing is left or changed.

    It is tried and not guessed: a small file is written beside ``path``, and removed.
    """
    _, part, file = _begun(path)
    try:
        with file:
            file.write(bytes(_TRIED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def refuse_nodes(path: Path) -> os.stat_result | None:
    """Raise if there is something at ``path`` that is no plain file; else what is known of it."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; give a file", os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        told = "it is a device, a pipe or a socket; give a file"
        raise OSError(errno.EINVAL, told, os.fspath(path))
    return found


def put_in_place(part: Path, target: Path) -> None:
    """Rename a file that is on the disk already, and see that its new name is there too."""
    os.replace(part, target)
    # The file is in its place: a system that cannot do this with folders is no reason to fail.
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _begun(path: Path) -> tuple[str, str, BinaryIO]:
    """Where the file really goes, and a new one beside it: its name, and the file to write to."""
    old = refuse_nodes(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        told = f"there is no folder {folder}; make it first"
        raise FileNotFoundError(errno.ENOENT, told, os.fspath(path))
    part = os.path.join(folder, f".motifold-{secrets.token_hex(8)}.tmp")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, mode)  # never more open to others than the old one

    try:
        file = open(part, "xb", opener=opener)  # noqa: SIM115 (the caller closes it)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    if old is not None and hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):  # a file system without modes
            os.fchmod(file.fileno(), mode)  # what the umask took away
    return target, part, file
