"""Chunks of HDF5 datasets that are packed with deflate, unpacked here and not by HDF5.

HDF5 takes as much memory as the packed bytes ask for, a thousand times their number; here a chunk
gives what its shape says or is refused. It is the commonest way to pack, and no slower so.
"""

from __future__ import annotations

import math
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.guards import RecordingError, require

_SLACK = 2**16  # bytes by which a packed chunk may be longer than its values


class PackedChunks:
    """A chunked dataset whose last filter is deflate; slices of it are arrays.

    Where more than deflate and shuffle is to be undone, chunks are only looked at here, and read
    by HDF5.
    """

    def __init__(self, dataset: Any, path: Path) -> None:
        h5py = require("h5py", "io")
        self._dataset, self._path = dataset, path
        self.shape: tuple[int, ...] = tuple(dataset.shape)
        self.ndim = len(self.shape)
        self.dtype = np.dtype(dataset.dtype)
        self.chunks: tuple[int, ...] = tuple(dataset.chunks)
        self._nbytes = math.prod(self.chunks) * self.dtype.itemsize
        self._filters = _filters(dataset)
        plain = h5py.h5t.py_create(dataset.dtype) == dataset.id.get_type()
        known = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE}
        self._alone = plain and known.issuperset(self._filters)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """The values of some slices, of step one."""
        index = index if isinstance(index, tuple) else (index,)
        index = (*index, *(slice(None),) * (self.ndim - len(index)))
        wanted = [s.indices(n)[:2] for s, n in zip(index, self.shape, strict=True)]
        out = np.empty([max(0, b - a) for a, b in wanted], self.dtype)
        if out.size == 0:
            return out
        corners = [
            range(a - a % size, b, size) for (a, b), size in zip(wanted, self.chunks, strict=True)
        ]
        for corner in product(*corners):
            inside, target = [], []
            for (a, b), start, size in zip(wanted, corner, self.chunks, strict=True):
                low, high = max(a, start), min(b, start + size)
                inside.append(slice(low - start, high - start))
                target.append(slice(low - a, high - a))
            chunk = self._chunk(corner)
            out[tuple(target)] = chunk if chunk.ndim == 0 else chunk[tuple(inside)]
        return out

    def _chunk(self, corner: tuple[int, ...]) -> npt.NDArray[Any]:
        """The values of a chunk, or the one value of all where it was never written."""
        info = self._dataset.id.get_chunk_info_by_coord(corner)
        if info.byte_offset is None:
            return np.asarray(self._dataset.fillvalue, self.dtype)
        if info.size > self._nbytes + _SLACK:
            raise self._error(f"has {info.size} bytes packed, but {self._nbytes} unpacked")
        _, packed = self._dataset.id.read_direct_chunk(corner)
        values = self._undone(packed, info.filter_mask)
        if not self._alone:
            region = zip(corner, self.chunks, self.shape, strict=True)
            return np.asarray(self._dataset[tuple(slice(a, min(a + c, n)) for a, c, n in region)])
        if len(values) != self._nbytes:
            raise self._error(f"unpacks to {len(values)} bytes, not {self._nbytes}")
        return np.frombuffer(values, self.dtype).reshape(self.chunks)

    def _undone(self, values: Any, skipped: int) -> Any:
        """The bytes with deflate undone, and shuffle where that is all there is."""
        h5py = require("h5py", "io")
        for i in reversed(range(len(self._filters))):
            if skipped >> i & 1:
                continue
            if self._filters[i] == h5py.h5z.FILTER_FLETCHER32:
                values = values[:-4]  # the checksum, which HDF5 will look at
            elif self._filters[i] == h5py.h5z.FILTER_DEFLATE:
                unpack, limit = zlib.decompressobj(), self._nbytes + _SLACK
                values = unpack.decompress(values, limit)
                if unpack.unconsumed_tail or not unpack.eof:
                    raise self._error("unpacks to more than it should, or is cut short")
            elif self._alone:
                values = _unshuffled(values, self.dtype.itemsize)
            else:
                return values
        return values

    def _error(self, what: str) -> RecordingError:
        return RecordingError(
            f"{self._path}: a chunk of {self._dataset.name!r} {what}: it is damaged, or made to "
            "take much memory. Copy the file again."
        )


def unpacks_here(dataset: Any) -> bool:
    """Whether the last filter of the dataset is deflate, but for a checksum."""
    h5py = require("h5py", "io")
    if dataset.chunks is None:
        return False
    checksum = h5py.h5z.FILTER_FLETCHER32
    return [f for f in _filters(dataset) if f != checksum][-1:] == [h5py.h5z.FILTER_DEFLATE]


def _filters(dataset: Any) -> list[int]:
    """Numbers of the filters, in the order in which they were applied."""
    plan = dataset.id.get_create_plist()
    return [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]


def _unshuffled(values: Any, size: int) -> bytes:
    """The bytes of each number side by side again; HDF5 put all first bytes first."""
    whole = len(values) // size * size
    table = np.frombuffer(values, np.uint8, whole).reshape(size, -1)
    return table.T.tobytes() + bytes(values[whole:])
