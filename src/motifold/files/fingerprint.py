"""Checksums that tell whether a file belongs to the data at hand.

Checkpoints and the stores of sweeps hold them: what they are for given data must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_ROWS = 4096


def fingerprint(value: Any) -> list[Any]:
    """Shape, type and checksum of one array: what a checkpoint holds."""
    hidden = np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else None
    array = np.asarray(value if hidden is None else value.filled(0))
    if array.dtype.hasobject:
        array = array.astype(str)
    digest = hashlib.blake2b(digest_size=16)
    for block in _blocks(array):
        digest.update(block)
    if hidden is not None and hidden.any():
        digest.update(hidden.tobytes())
    return [list(array.shape), str(array.dtype), digest.hexdigest()]


def fingerprint_of_all(arrays: Iterable[np.ndarray]) -> str:
    """One checksum of shapes, types and content of several arrays: what a sweep's store holds."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype}".encode())
        for block in _blocks(array):
            digest.update(block)
    return digest.hexdigest()[:16]


def _blocks(array: np.ndarray) -> Iterator[bytes]:
    """The bytes in C order, some rows at a time: a mapped recording stays on disk."""
    rows = np.atleast_1d(array)
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS].tobytes()
