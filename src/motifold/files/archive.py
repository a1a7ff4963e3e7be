"""Arrays in a file: the npz format of numpy."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy


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
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, text in (texts or {}).items():
            archive.writestr(zipfile.ZipInfo(name), text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)
