"""One process at a time: a file that is held by whoever works on what lies beside it.

The lock is the operating system's. It goes with its process, however that ends: a file that is
left behind holds nobody up.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import BinaryIO

# Whoever finds the file should know what it is.
_TEXT = b"Held while a program works on what lies beside it; it may be deleted when none does.\n"
# Of a lock that somebody has; other errors are those of file systems that have no locks.
_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}


def held(path: str | os.PathLike[str], advice: str) -> BinaryIO:
    """The file, made if need be, held until it is closed or the process ends.

    Where the file system has no locks (some of those on a network) nothing is held, and nothing
    said.

    Raises
    ------
    BlockingIOError
        With the ``advice``, if another process has it, or this one already.
    """
    # No link that somebody planted is followed.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    is_new = True
    try:
        descriptor = os.open(path, flags | os.O_EXCL, 0o666)
    except FileExistsError:
        is_new = False
        descriptor = os.open(path, flags, 0o666)
    file = os.fdopen(descriptor, "r+b", buffering=0)
    try:
        _take(file.fileno())
    except OSError as error:
        if error.errno in _TAKEN:
            file.close()
            raise BlockingIOError(errno.EAGAIN, advice, os.fspath(path)) from None
    if is_new:
        with suppress(OSError):  # a full disk holds nobody up
            file.write(_TEXT)
    return file


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        # Far behind the text, which others may read meanwhile.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
