"""Arrays in a file: the npz format of numpy."""

from __future__ import annotations

import contextlib
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
