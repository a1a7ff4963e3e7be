"""Recordings that are sparse or on disk, as arrays where they are looked at."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack

from motifold.data import Segments
from motifold.data.memory import bytes_of
from motifold.data.sources import Source, ZeroedSource, stored_source
from motifold.data.sources.array import part_of
from motifold.data.validation import check_sparse
from motifold.model import Mask

Floats = npt.NDArray[Any]


class RowsOnDemand:
    """Rows of a sparse matrix (T, N) by their numbers, as an array has them.

    Parameters
    ----------
    matrix : by rows
    mask : True where it is observed; rows are NaN elsewhere
    """

    ndim = 2

    def __init__(self, matrix: Any, mask: Mask | None = None) -> None:
        self.matrix = matrix
        self.mask = mask

    @classmethod
    def of(cls, X: Any) -> RowsOnDemand:
        """From what a user gives: a sparse matrix, or a list of segments with one among them."""
        return cls(vstack([source.matrix() for source in check_sparse(X)], format="csr"))

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        T, N = self.matrix.shape
        return T, N

    @property
    def dtype(self) -> np.dtype:
        """That of the entries."""
        return self.matrix.dtype

    @cached_property
    def has_nan(self) -> bool:
        """Whether an entry is NaN, or is not observed."""
        return self.mask is not None or bool(np.isnan(self.matrix.data).any())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        found = self.matrix[rows].toarray()
        return found if self.mask is None else np.where(self.mask[rows], found, np.nan)


class RowsOnDisk:
    """Rows of a recording on disk (T, N) by their numbers, as an array has them.

    Parameters
    ----------
    source : gives them, in floating point
    mask : True where it is observed; rows are NaN elsewhere
    columns : features, where they are not all
    """

    ndim = 2

    def __init__(self, source: Source, mask: Mask | None = None, columns: Any = None) -> None:
        self.source, self.mask, self.columns = source, mask, columns

    @classmethod
    def of(cls, X: Any, memory_limit: str | float | None = None) -> RowsOnDisk:
        """From what is stored, of which a quarter of the limit may be in memory."""
        return cls(stored_source(X, limit=bytes_of(memory_limit) // 4))

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        T, N = self.source.shape
        return T, N if self.columns is None else len(self.columns)

    @property
    def dtype(self) -> np.dtype:
        """That of the rows."""
        return self.source.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, columns = key
            if isinstance(rows, slice) and rows == slice(None) and self.columns is None:
                return RowsOnDisk(self.source, self.mask, np.arange(self.shape[1])[columns])
            return self[rows][..., columns]
        if isinstance(key, slice) and key.step in (None, 1):
            a, b, _ = key.indices(len(self))
            return self._rows(a, max(a, b))
        places = np.arange(len(self))[key]
        if places.ndim == 0:
            return self._rows(int(places), int(places) + 1)[0]
        # Runs of rows that follow one another, each read at once.
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        parts = [self._rows(int(run[0]), int(run[-1]) + 1) for run in runs if len(run)]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, self._rows(0, 0)])

    def _rows(self, a: int, b: int) -> Floats:
        rows = self.source.rows(a, b)
        if self.mask is not None:
            rows = np.where(self.mask[a:b], rows, np.nan)
        return rows if self.columns is None else rows[:, self.columns]

    def split(self, segments: Segments) -> tuple[list[Source], list[Mask] | None]:
        """The rows of each segment as sources, zero where nothing is observed, and the masks."""
        parts = [part_of(self.source, a, b) for a, b in segments]
        if self.mask is None:
            return parts, None
        masks = segments.split(self.mask)
        return [ZeroedSource(*pair) for pair in zip(parts, masks, strict=True)], masks


def dense(rows: Any) -> Floats:
    """An array, from an array or from a few rows of a sparse matrix."""
    return rows.toarray() if issparse(rows) else np.asarray(rows)
