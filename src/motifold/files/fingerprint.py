"""Checksums that tell whether a file belongs to the data at hand.

Checkpoints and the stores of sweeps hold them: what they are for given data must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

_ROWS = 4096


def fingerprint(value: Any) -> list[Any]:
    """Shape, type and checksum of one array or sparse matrix: what a checkpoint holds."""
    if issparse(value):
        digest = hashlib.blake2b(digest_size=16)
        for block in _entries(value):
            digest.update(block)
        return [list(value.shape), f"sparse {value.dtype}", digest.hexdigest()]
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


def fingerprint_of_all(arrays: Iterable[Any]) -> str:
    """One checksum of shapes, types and content of several arrays: what a sweep's store holds.

    A sparse matrix has another than the same numbers in an array, but one whatever its format.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype}".encode())
        for block in _entries(array) if issparse(array) else _blocks(array):
            digest.update(block)
    return digest.hexdigest()[:16]


def _entries(matrix: Any) -> Iterator[bytes]:
    """The bytes of a sparse matrix: of its entries by rows, each place once, zeros left out."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    yield b"sparse"
    for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
        yield from _blocks(part)


def _blocks(array: np.ndarray) -> Iterator[bytes]:
    """The bytes in C order, some rows at a time: a mapped recording stays on disk."""
    rows = np.atleast_1d(array)
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS].tobytes()
