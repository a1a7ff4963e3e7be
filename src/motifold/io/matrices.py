"""Matrices on disk, (time, features): read when asked for, in blocks, and never held twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from motifold.io.fills import as_missing, float_type
from motifold.io.guards import RecordingError, check_numbers, guard

Orientation = Literal["time_first", "features_first"]

_BLOCK_BYTES = 2**23  # read at a time: many chunks of a file, and small beside any long recording


class LazyMatrix:
    """A matrix on disk, (time, features), read when it is sliced or made an array.

    It keeps the file open for as long as it lives. Values that are one of ``fills`` are NaN.
    """

    ndim = 2

    def __init__(
        self, source: Any, path: Path, *, transposed: bool, fills: tuple[float, ...] = ()
    ) -> None:
        self._source = source
        self.fills = fills
        self._path = path
        self._transposed = transposed
        self.shape: tuple[int, ...] = tuple(source.shape)[:: -1 if transposed else 1]
        chunks = getattr(source, "chunks", None)
        self.chunks = None if chunks is None else tuple(chunks)[:: -1 if transposed else 1]
        self.dtype = float_type(source.dtype) if fills else np.dtype(source.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """The rows of a slice."""
        return self.tile(rows, slice(None))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.load(dtype or self.dtype))

    def load(self, dtype: Any = None) -> npt.NDArray[Any]:
        """All of it in one new array, float32 or float64 unless ``dtype`` says otherwise.

        Values are converted as they are read: nothing but a block of them is held twice.
        """
        if dtype is None:
            single = self.dtype.kind == "f" and self.dtype.itemsize == 4
            dtype = np.float32 if single else np.float64
        array = np.empty(self._source.shape, dtype)
        with guard(self._path, "the data"):
            for tile in self._tiles():
                array[tile] = self._read(tile)
        return array.T if self._transposed else array

    def blocks(self, stride: int = 1) -> Iterator[npt.NDArray[Any]]:
        """Every ``stride``-th of the blocks that cover it, in the order of the file."""
        for tile in self._tiles()[::stride]:
            with guard(self._path, "the data"):
                block = self._read(tile)
            yield block.T if self._transposed else block

    def tile(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """The values of some rows and columns."""
        with guard(self._path, "the data"):
            return (
                self._read((columns, rows)).T if self._transposed else self._read((rows, columns))
            )

    def _read(self, tile: tuple[slice, ...]) -> npt.NDArray[Any]:
        values = np.asarray(self._source[tile])
        return as_missing(values, self.fills) if self.fills else values

    def _tiles(self) -> list[tuple[slice, ...]]:
        """Blocks of whole chunks, as the file has them: each is read and unpacked once."""
        shape = self._source.shape
        chunks = getattr(self._source, "chunks", None) or (1, 1)
        tile = [min(chunk, size) for chunk, size in zip(chunks, shape, strict=True)]
        for axis in (1, 0):
            fitting = _BLOCK_BYTES // max(1, math.prod(tile) * self.dtype.itemsize)
            tile[axis] = min(shape[axis], tile[axis] * max(1, fitting))
        starts = [range(0, size, step) for size, step in zip(shape, tile, strict=True)]
        return [
            tuple(slice(a, a + step) for a, step in zip(corner, tile, strict=True))
            for corner in product(*starts)
        ]


def in_memory(X: Any) -> npt.NDArray[Any]:
    """X as an array: itself where it is one (or mapped), else read whole."""
    return X.load() if isinstance(X, LazyMatrix) else np.asanyarray(X)


def blocks(X: Any, at_most: int) -> tuple[Iterator[npt.NDArray[Any]], float]:
    """Blocks of X of at most so many bytes together, spread over it, and their share of it."""
    nbytes = math.prod(X.shape) * X.dtype.itemsize
    stride = max(1, -(-nbytes // at_most))
    if isinstance(X, LazyMatrix):
        return X.blocks(stride), 1 / stride
    rows = max(1, _BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    starts = range(0, X.shape[0], rows * stride)
    return (_array(X[a : a + rows]) for a in starts), 1 / stride


def _array(rows: Any) -> npt.NDArray[Any]:
    return rows.toarray() if issparse(rows) else np.asarray(rows)


def orient(
    X: Any, path: Path, orientation: Orientation | None, fills: tuple[float, ...] = ()
) -> Any:
    """X with time first, as the user says that it lies in the file; None means time first.

    ``fills`` are the values that the file declares to be missing.
    """
    check_numbers(X.dtype, path)
    if X.ndim != 2:
        raise RecordingError(
            f"{path}: the data has {X.ndim} dimensions, {tuple(X.shape)}; it must have two, time "
            "and features. Name another variable or dataset with key, or reshape it first."
        )
    turned = orientation == "features_first"
    if isinstance(X, np.ndarray) and not fills:
        return X.T if turned else X
    return LazyMatrix(X, path, transposed=turned, fills=fills)
