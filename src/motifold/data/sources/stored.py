"""A recording that stays on disk: rows are read in units of whole chunks, ahead of the pass.

A unit is read and converted once for every pass over the data, by a thread, while the one before it
is computed with. Passes go from front to back again and again, so that a cache of the last units
used would always have thrown away what is asked for next. What fits into memory is therefore a
fixed set of units, spread evenly over the recording: whatever the disk is slower by, it is waited
for less in each of its stretches.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from motifold.data.memory import told
from motifold.data.sources.base import Source
from motifold.model.arrays import Array

# Bytes of a unit, about: many chunks, and small beside any memory.
_UNIT_BYTES = 2**24
# Units that are ready at a time: those in use, by some threads perhaps, and those read ahead. Of
# the memory they take no more than this share, where chunks allow it.
_READY, _LEAST_READY, _AHEAD, _READY_SHARE = 8, 3, 2, 0.5


class Rows(Protocol):
    """Whatever has rows somewhere: all that is known of a file, a store or a graph of tasks.

    Attributes
    ----------
    shape, dtype : as they are stored
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...

    def units(self, most: int) -> npt.NDArray[np.int64]:
        """Rows at which units of whole chunks begin, and the end; of ``most`` rows, if they can."""

    def read(self, a: int, b: int) -> npt.NDArray[Any]:
        """Rows a to b, a new array; raises whatever the library does."""

    def unreadable(self, a: int, b: int, error: Exception) -> Exception:
        """The error to raise where rows a to b could not be read: it names the chunk."""


class StoredSource:
    """Rows on disk as a source.

    Parameters
    ----------
    stored : where they are
    limit : bytes of rows to hold in memory at most
    dtype : float32 or float64, of the blocks; None: as an array of these numbers would have
    """

    slow = True

    def __init__(self, stored: Rows, limit: int, dtype: npt.DTypeLike | None = None) -> None:
        self.stored, self.limit = stored, limit
        self.dtype = float_dtype(stored.dtype) if dtype is None else np.dtype(dtype)
        self.shape = stored.shape
        N = self.shape[1]
        row_bytes = N * self.dtype.itemsize
        most = min(_UNIT_BYTES, int(_READY_SHARE * limit) // _READY)
        self._edges = stored.units(max(1, most // row_bytes))
        self.chunk = int(np.diff(self._edges).max())
        self._unit_bytes = unit = self.chunk * row_bytes
        least = min(_LEAST_READY, self.n_units)
        if least * unit > limit:
            raise ValueError(
                f"memory_limit: X is stored in chunks of {self.chunk} rows, {told(unit)} of memory "
                f"each, and {least} of them must fit into the {told(limit)} that are left for rows "
                f"of X. Allow {told(least * unit - limit)} more, or store it in shorter chunks."
            )
        self._most_ready = max(least, min(_READY, int(_READY_SHARE * limit) // unit))
        self._ready: OrderedDict[int, Future[Array]] = OrderedDict()
        self._kept: dict[int, npt.NDArray[Any]] = {}
        self._lent = 0
        self._last = -1
        self._lock = threading.Lock()
        self.n_read = 0  # units that have come from the disk so far

    @property
    def n_units(self) -> int:
        """What it is read in."""
        return len(self._edges) - 1

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b: a view of a unit, or a new array of several."""
        if a >= b:
            return np.empty((0, self.shape[1]), self.dtype)
        first, last = np.searchsorted(self._edges, (a, b - 1), side="right") - 1
        parts = []
        for j in range(int(first), int(last) + 1):
            low, high = self._edges[j : j + 2]
            parts.append(self._unit(j)[max(a, low) - low : min(b, high) - low])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    # --- units --------------------------------------------------------------------------------

    def _unit(self, j: int) -> Array:
        """Unit j, read by this thread unless another has it; those behind it are on their way."""
        with self._lock:
            future, mine = self._place(j)
            onward = j in (self._last, self._last + 1) or (j == 0 and self._last < 0)
            self._last = j
            ahead = [(j + i) % self.n_units for i in range(1, _AHEAD + 1)] if onward else []
            fresh = [(i, found) for i in ahead for found, new in [self._place(i)] if new]
        for i, found in fresh:
            # A thread for each: it costs a twentieth of a millisecond, and nobody need end it.
            threading.Thread(target=self._fill, args=(i, found), name="motifold-read").start()
        if mine:
            self._fill(j, future)
        return future.result()

    def _place(self, j: int) -> tuple[Future[Array], bool]:
        """Where unit j is or will be, and whether it is new, so that somebody must read it."""
        future = self._ready.get(j)
        if future is not None:
            self._ready.move_to_end(j)
            return future, False
        future = self._ready[j] = Future()
        while len(self._ready) > self._most_ready:
            self._ready.popitem(last=False)  # who waits for it has it in hand
        return future, True

    def _fill(self, j: int, future: Future[Array]) -> None:
        """Read a unit; who waits for it is told of an error, and the next to ask tries again."""
        try:
            future.set_result(self._read(j))
        except BaseException as error:
            with self._lock:
                if self._ready.get(j) is future:
                    del self._ready[j]
            future.set_exception(error)

    def _read(self, j: int) -> Array:
        """Unit j from memory or from the disk, in the precision of the source."""
        with self._lock:
            known = self._kept.get(j)
        raw = self._from_disk(j) if known is None else known
        unit = np.ascontiguousarray(raw, dtype=self.dtype).view()  # raw may be the user's
        unit.flags.writeable = False
        # Counts of a byte take less room as they are stored.
        self._keep(j, raw if raw.dtype.itemsize < unit.dtype.itemsize else unit)
        return unit

    def _from_disk(self, j: int) -> npt.NDArray[Any]:
        a, b = (int(edge) for edge in self._edges[j : j + 2])
        with self._lock:
            self.n_read += 1
        try:
            rows = self.stored.read(a, b)
            if rows.shape != (b - a, self.shape[1]):
                raise ValueError(f"it gave {rows.shape} in place of {(b - a, self.shape[1])}")
        except MemoryError:
            raise
        except Exception as error:
            raise self.stored.unreadable(a, b, error) from error
        return rows

    # --- what stays in memory -----------------------------------------------------------------

    def _room(self) -> int:
        """Units that may be kept, in the type that is kept."""
        size = min(self.dtype.itemsize, self.stored.dtype.itemsize)
        unit = self._unit_bytes * size // self.dtype.itemsize
        left = self.limit - self._lent - self._most_ready * self._unit_bytes
        return min(self.n_units, max(0, left // max(1, unit)))

    def _keep(self, j: int, unit: npt.NDArray[Any]) -> None:
        """Keep unit j if it is one of those that stay, spread evenly over all of them."""
        with self._lock:
            room, n = self._room(), self.n_units
            if j * room // n < (j + 1) * room // n:
                self._kept[j] = unit
            else:
                self._kept.pop(j, None)

    def lend(self, nbytes: int) -> bool:
        """Whether so many bytes may be used otherwise for a while; ``give_back`` ends that."""
        with self._lock:
            if self._lent + nbytes > self.limit - self._most_ready * self._unit_bytes:
                return False
            self._lent += nbytes
            if self._room() < self.n_units:
                self._kept.clear()  # which others are to stay, the next pass will see
        return True

    def give_back(self, nbytes: int) -> None:
        """So many bytes are free again."""
        with self._lock:
            self._lent -= nbytes


def held(source: Source) -> Array | None:
    """All rows of a part of a stored recording in one array, where they fit; else None.

    They count as rows that the recording holds until the array is gone.
    """
    whole = stored_of(source)
    T, N = source.shape
    nbytes = T * N * source.dtype.itemsize
    if whole is None or not whole.lend(nbytes):
        return None
    array = np.empty(source.shape, source.dtype)
    weakref.finalize(array, whole.give_back, nbytes)
    step = max(1, _UNIT_BYTES // (N * source.dtype.itemsize))
    for a in range(0, T, step):
        array[a : a + step] = source.rows(a, min(a + step, T))
    return array


def stored_of(source: Any) -> StoredSource | None:
    """The rows on disk that a source is a part of, or shows; None if it is of another kind."""
    while source is not None and not isinstance(source, StoredSource):
        source = getattr(source, "source", None)
    return source


def float_dtype(dtype: np.dtype) -> np.dtype:
    """The precision in which numbers of a type are computed with: float32 stays, all else double.

    As arrays in memory are converted: results do not depend on where X is.
    """
    single = dtype.kind == "f" and dtype.itemsize == 4
    return np.dtype(np.float32 if single else np.float64)
