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

from motifold.data.sources.kinds import Sliced
from motifold.data.sources.stored import Rows
from motifold.io.fills import as_missing, float_type
from motifold.io.guards import RecordingError, check_numbers, guard

Orientation = Literal["time_first", "features_first"]

_BLOCK_BYTES = 2**23  # read at a time: many chunks of a file, and small beside any long recording


class LazyMatrix:
    """A matrix on disk, (time, features), read when it is sliced or made an array.

    It keeps the file open for as long as it lives. Values that are one of ``fills`` are NaN.
    ``changed``: what becomes of values below zero, ("clip", 0) or ("shift", the least of all).
    """

    ndim = 2

    def __init__(
        self,
        source: Any,
        path: Path,
        *,
        transposed: bool,
        fills: tuple[float, ...] = (),
        changed: tuple[str, float] | None = None,
    ) -> None:
        self._source = source
        self.fills = fills
        self._path = path
        self._transposed = transposed
        self.shape: tuple[int, ...] = tuple(source.shape)[:: -1 if transposed else 1]
        chunks = getattr(source, "chunks", None)
        self.chunks = None if chunks is None else tuple(chunks)[:: -1 if transposed else 1]
        self.changed = changed
        self.dtype = float_type(source.dtype) if fills or changed else np.dtype(source.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory, as a fit has it."""
        return math.prod(self.shape) * float_type(self.dtype).itemsize

    def without_negatives(self, how: Literal["clip", "shift"]) -> LazyMatrix:
        """The same with values below zero at zero, or all raised by the least of them."""
        least = 0.0
        if how == "shift":
            mins = [np.fmin.reduce(block, axis=None, initial=0) for block in self.blocks()]
            least = float(min(mins))
        return LazyMatrix(
            self._source,
            self._path,
            transposed=self._transposed,
            fills=self.fills,
            changed=(how, least),
        )

    def as_rows(self, name: str) -> Rows:
        """For a source of rows, whose errors name the file."""
        return LazyRows(self, str(self._path))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> npt.NDArray[Any]:
        """The rows of a slice, or rows and columns; whatever else numpy takes reads all of it."""
        if isinstance(key, slice):
            key = key, slice(None)
        blocks = isinstance(key, tuple) and len(key) == 2
        if blocks and all(isinstance(part, slice) and part.step in (None, 1) for part in key):
            return self.tile(*key)
        return np.asarray(np.asarray(self)[key])

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
        values = as_missing(values, self.fills) if self.fills else values
        if self.changed is None:
            return values
        how, least = self.changed
        values = values.astype(self.dtype, copy=False)
        return np.maximum(values, 0) if how == "clip" else values - self.dtype.type(least)

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


class LazyRows(Sliced):
    """A matrix on disk for a source of rows."""

    what = "data"

    def key(self, i: int, j: int) -> str:
        """Counted in the matrix, time first."""
        return f"{i}, {j} of {self.shape[0]} × {self.shape[1]}"

    def read_tile(self, a: int, b: int, left: int, right: int) -> npt.NDArray[Any]:
        """Some columns of rows a to b."""
        return self.X.tile(slice(a, b), slice(left, right))

    def unreadable(self, a: int, b: int, error: Exception) -> Exception:
        """Of the file."""
        return RecordingError(self.told_of_damage(a, b, error.__cause__ or error))  # type: ignore[arg-type]

    def bad_value(self, told: str) -> Exception:
        """A value that cannot be used, and the option that helps."""
        return RecordingError(f"{self.name}: {with_fix(told, self.X.fills)}")


def with_fix(told: str, fills: tuple[float, ...]) -> str:
    """What is wrong, and what can be done about it by an option."""
    if "Negative" in told:
        told += (
            ' By an option: negatives="keep" (as they are), negatives="clip" (to zero), or '
            '"shift" (all values up by the same, so that what was zero is signal: seldom what '
            "is wanted)."
        )
    if "contains NaN" in told:
        what = told.partition(" Missing entries")[0].replace("Input X", "The data")
        if fills:
            listed = " and ".join(f"{fill:g}" for fill in fills)
            what += f" (as which {listed} counts: the file declares it to be missing.)"
        told = f'{what} Fill it, or let it be a missing entry: missing="mask".'
    return told


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
