"""What a recording on disk may be: arrays of zarr, h5py and dask, by their own ways to be read.

None of these libraries is imported here: who has an array of theirs has imported it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data.memory import bytes_of
from motifold.data.sources.stored import StoredSource


class Sliced:
    """Whatever gives rows by ``X[a:b]`` and says how it is chunked.

    Parameters
    ----------
    X : with ``shape``, ``dtype`` and ``X[a:b]``; ``chunks``, where it has any, are (rows, columns)
    name : what the user calls it, for errors
    """

    what = "array"

    def __init__(self, X: Any, name: str) -> None:
        self.X, self.name = X, name
        T, N = X.shape
        self.shape: tuple[int, int] = (int(T), int(N))
        self.dtype = np.dtype(X.dtype)

    @property
    def chunks(self) -> tuple[int, int] | None:
        """Rows and columns of a chunk, where it has any."""
        chunks = getattr(self.X, "chunks", None)
        return None if chunks is None else (int(chunks[0]), int(chunks[1]))

    def units(self, most: int) -> npt.NDArray[np.int64]:
        """Of as many whole chunks."""
        T = self.shape[0]
        chunk = 1 if self.chunks is None else max(1, self.chunks[0])
        rows = chunk * max(1, most // chunk)
        return np.append(np.arange(0, T, rows, dtype=np.int64), T)

    def read(self, a: int, b: int) -> npt.NDArray[Any]:
        """By slicing."""
        return np.asarray(self.X[a:b])

    def unreadable(self, a: int, b: int, error: Exception) -> Exception:
        """Names the first chunk that cannot be read by itself."""
        return ValueError(self.told_of_damage(a, b, error))

    def told_of_damage(self, a: int, b: int, error: Exception) -> str:
        """What is wrong, where, and what to do."""
        low, high, key = self._first_damaged(a, b)
        chunk = "" if key is None else f" (chunk {key})"
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        return (
            f"{self.name}: rows {low} to {high - 1} of the {self.what}{chunk} cannot be read: "
            f"{told}. It is damaged there, or not all of it is in place: copy it again, or leave "
            "these rows out."
        )

    def _first_damaged(self, a: int, b: int) -> tuple[int, int, str | None]:
        """The first chunk among rows a to b that gives an error, and what it is called."""
        if self.chunks is None:
            return a, b, None
        rows, columns = self.chunks
        for low in range(a - a % rows, b, rows):
            high = min(low + rows, self.shape[0])
            for left in range(0, self.shape[1], columns):
                try:
                    self.read_tile(low, high, left, min(left + columns, self.shape[1]))
                except Exception:
                    return low, high, self.key(low // rows, left // columns)
        return a, b, None

    def read_tile(self, a: int, b: int, left: int, right: int) -> npt.NDArray[Any]:
        """Some columns of rows a to b."""
        return np.asarray(self.X[a:b, left:right])

    def key(self, i: int, j: int) -> str:
        """What a chunk is called."""
        return f"{i}, {j}"


class ZarrRows(Sliced):
    """An array of zarr; a shard is read whole, so that it counts as a chunk."""

    what = "zarr array"

    @property
    def chunks(self) -> tuple[int, int] | None:
        """Of the shards, where there are any."""
        chunks = getattr(self.X, "shards", None) or self.X.chunks
        return int(chunks[0]), int(chunks[1])

    def key(self, i: int, j: int) -> str:
        """The name of its file in the store."""
        with suppress(Exception):
            return f"{self.X.metadata.encode_chunk_key((i, j))!r}"
        return super().key(i, j)


class H5Rows(Sliced):
    """A dataset of h5py."""

    what = "HDF5 dataset"

    def __init__(self, X: Any, name: str) -> None:
        super().__init__(X, name)
        self.name = f"{name} ({X.file.filename}: {X.name})"


class DaskRows(Sliced):
    """An array of dask: units are those of its chunks, made by its scheduler."""

    what = "dask array"

    def __init__(self, X: Any, name: str) -> None:
        if any(np.isnan(size) for size in X.shape):
            raise ValueError(
                f"{name}: a dask array whose number of rows is not known: call its method "
                "compute_chunk_sizes() first."
            )
        super().__init__(X, name)

    @property
    def chunks(self) -> tuple[int, int] | None:
        """They need not be of equal size."""
        return None

    def units(self, most: int) -> npt.NDArray[np.int64]:
        """Its chunks, joined where they are short."""
        found = [0]
        for low, high in pairwise(np.append(0, np.cumsum(self.X.chunks[0])).tolist()):
            if high - found[-1] > most and low > found[-1]:
                found.append(low)
        return np.array([*found, self.shape[0]], dtype=np.int64)

    def read(self, a: int, b: int) -> npt.NDArray[Any]:
        """By dask's scheduler, whichever is set."""
        return np.asarray(self.X[a:b].compute())


_KINDS: dict[str, type[Sliced]] = {"zarr": ZarrRows, "h5py": H5Rows, "dask": DaskRows}


def is_stored(X: Any) -> bool:
    """Whether X is a matrix that is read when it is sliced, and not all at once."""
    return _kind(X) is not None


def _kind(X: Any) -> type[Sliced] | None:
    if getattr(X, "ndim", None) is None or not hasattr(X, "shape") or not hasattr(X, "dtype"):
        return None
    if isinstance(X, np.ndarray):
        # Floats that are mapped are paged by the system; what must be converted would be copied.
        plain = X.dtype.kind == "f" and X.dtype.itemsize in (4, 8) and X.dtype.isnative
        return Sliced if isinstance(X, np.memmap) and not plain else None
    if hasattr(X, "as_rows"):  # of motifold.io
        return Sliced
    return _KINDS.get(type(X).__module__.partition(".")[0])


def stored_source(
    X: Any, *, name: str = "X", limit: int | None = None, dtype: npt.DTypeLike | None = None
) -> StoredSource:
    """A stored matrix as a source, of which at most ``limit`` bytes of rows are held in memory.

    X : array of zarr, h5py or dask, memory map, or what ``motifold.io.read`` reads lazily
    """
    kind = _kind(X)
    if kind is None:
        raise TypeError(f"{name} is no array of zarr, h5py or dask, nor a memory map: {type(X)}.")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: {name} of shape {tuple(X.shape)} is "
            "to be (time, features)."
        )
    if np.dtype(X.dtype).kind not in "fiub":
        raise TypeError(f"{name} holds {X.dtype}; it must hold real numbers.")
    if 0 in X.shape:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape="
            f"{tuple(X.shape)}) while a minimum of 1 is required: {name}."
        )
    own = getattr(X, "as_rows", None)
    rows = kind(X, name) if own is None else own(name)
    return StoredSource(rows, bytes_of(None) if limit is None else limit, dtype)
