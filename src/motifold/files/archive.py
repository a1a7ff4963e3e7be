"""Arrays in a file: the npz format of numpy."""

from __future__ import annotations

import contextlib
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np
from numpy.lib import format as npy


class _Closable(Protocol):
    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closable)


def write_npz(
    file: BinaryIO,
    arrays: Mapping[str, Any],
    *,
    texts: Mapping[str, bytes] | None = None,
    compressed: bool = False,
) -> None:
    """Write what ``np.savez`` does, after the given texts; the same bytes for the same content.

    Unlike ``np.savez`` it leaves no archive open where writing fails, which would complain later.
    """
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with _closed(zipfile.ZipFile(file, "w", kind)) as archive:
        for name, text in (texts or {}).items():
            archive.writestr(zipfile.ZipInfo(name), text)
        for name, array in arrays.items():
            with _closed(archive.open(f"{name}.npy", "w", force_zip64=True)) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


@contextlib.contextmanager
def _closed(writer: _C) -> Iterator[_C]:
    """Closed at the end of the block; quietly if the block failed.

    Closing writes, too. On a full disk it would fail, and hide a Ctrl-C behind its own error.
    """
    try:
        yield writer
    except BaseException:
        with contextlib.suppress(Exception):
            writer.close()
        raise
    writer.close()


def read_npz(file: BinaryIO) -> dict[str, Any]:
    """The arrays of a file by ``write_npz``, not compressed.

    Every claim is checked before memory is taken for it; together they are no longer than the file.
    """
    with zipfile.ZipFile(file) as archive:
        members = members_of(archive, file.seek(0, os.SEEK_END))
        return {
            name.removesuffix(".npy"): _read_array(archive, info) for name, info in members.items()
        }


def members_of(archive: zipfile.ZipFile, file_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name, if they have no byte in common and no name."""
    members = {info.filename: info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("it has two members of the same name.")
    # Also keeps members from sharing bytes, the other way to make much of little.
    if sum(info.compress_size for info in members.values()) > file_bytes:
        raise ValueError("its members claim more bytes than the file has.")
    return members


def check_stored(info: zipfile.ZipInfo) -> None:
    """So a member is as long as it says: no bytes but the file's own."""
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    if not stored or info.flag_bits & 1:
        raise ValueError(f"{info.filename} is compressed or encrypted, which motifold never does.")


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    """The array of a member, if its shape and type ask for the bytes that are there."""
    check_stored(info)
    with archive.open(info) as member:
        first = npy.read_magic(member) == (1, 0)
        read_header = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
        shape, _, dtype = read_header(member)
        if dtype.hasobject:
            raise ValueError(f"{info.filename} holds Python objects, which are not read.")
        claimed = member.tell() + math.prod(shape) * dtype.itemsize
        if claimed != info.file_size:
            raise ValueError(f"{info.filename} claims {claimed} bytes, but has {info.file_size}.")
    with archive.open(info) as member:
        return npy.read_array(member, allow_pickle=False)
