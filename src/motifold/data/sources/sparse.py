"""A sparse matrix in memory: its entries by rows, read by kernels; rows of it, where asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from motifold.model.arrays import Array, Mask


@dataclass(frozen=True, eq=False)
class SparseSource:
    """The entries of a matrix (T, N) by rows, each place once, in order.

    Attributes
    ----------
    starts : (T + 1,), row t has the entries starts[t] to starts[t + 1] of the other two
    columns, values : where they stand in their row, and what they are
    N : number of features
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.signedinteger]
    values: Array
    N: int
    chunk: int = 1
    slow: bool = False

    @classmethod
    def of(cls, X: Any) -> SparseSource:
        """From a 2-D matrix or array of ``scipy.sparse`` that holds floats, which is left alone.

        Copied is only what is not by rows and in order. Its indices are trusted.
        """
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        narrow = np.int32 if X.shape[1] <= np.iinfo(np.int32).max else np.int64
        starts, columns = X.indptr.astype(np.int64), X.indices.astype(narrow, copy=False)
        values = X.data.astype(X.dtype.newbyteorder("="), copy=False)
        return cls(starts, np.ascontiguousarray(columns), np.ascontiguousarray(values), X.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        return len(self.starts) - 1, self.N

    @property
    def dtype(self) -> np.dtype:
        """That of the entries."""
        return self.values.dtype

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return int(self.starts[-1] - self.starts[0])

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b, dense: for a block at a time."""
        out = np.zeros((b - a, self.N), dtype=self.dtype)
        low, high = self.starts[a], self.starts[b]
        out[self.rows_of_entries(a, b), self.columns[low:high]] = self.values[low:high]
        return out

    def entries(self, a: int, b: int) -> Array:
        """The entries of rows a to b, a view."""
        return self.values[self.starts[a] : self.starts[b]]

    def rows_of_entries(self, a: int, b: int) -> npt.NDArray[np.intp]:
        """The row of each of them, counted from a."""
        return np.repeat(np.arange(b - a), np.diff(self.starts[a : b + 1]))

    def part(self, a: int, b: int) -> SparseSource:
        """Rows a to b as a source; nothing is copied."""
        return replace(self, starts=self.starts[a : b + 1])

    def where(self, observed: Mask) -> SparseSource:
        """The same without the entries that are not observed; itself if all are."""
        T, _ = self.shape
        low, high = self.starts[0], self.starts[-1]
        columns = self.columns[low:high]
        rows = self.rows_of_entries(0, T)
        keep = observed[rows, columns]
        if keep.all():
            return self
        counts = np.bincount(rows[keep], minlength=T)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return SparseSource(starts, columns[keep], self.values[low:high][keep], self.N)

    def astype(self, dtype: npt.DTypeLike) -> SparseSource:
        """The same in another precision; entries are shared if it has that."""
        return replace(self, values=self.values.astype(dtype, copy=False))

    def matrix(self) -> Any:
        """As an array of ``scipy.sparse``; entries are shared."""
        low, high = self.starts[0], self.starts[-1]
        entries = self.values[low:high], self.columns[low:high], self.starts - low
        return sparse.csr_array(entries, shape=self.shape)
