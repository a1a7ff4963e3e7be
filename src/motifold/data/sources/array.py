"""An array in memory or a memory map: its blocks are views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from motifold.data.sources.base import Part, Source
from motifold.data.sources.sparse import SparseSource
from motifold.model.arrays import Array


@dataclass(frozen=True)
class ArraySource:
    """An array (T, N) in whatever memory order it came; a memory map pages itself."""

    array: Array
    chunk: int = 1
    slow: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        T, N = self.array.shape
        return T, N

    @property
    def dtype(self) -> np.dtype:
        """That of the array."""
        return self.array.dtype

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b, a view."""
        return self.array[a:b]

    def part(self, a: int, b: int) -> ArraySource:
        """Rows a to b as a source, a view."""
        return ArraySource(self.array[a:b])


def as_source(X: Any) -> Source:
    """X itself if it is a source, else the array or the sparse matrix as one."""
    if issparse(X):
        return SparseSource.of(X)
    return ArraySource(X) if isinstance(X, np.ndarray) else X


def part_of(source: Source, a: int, b: int) -> Source:
    """Rows a to b of a source, as a source; nothing in memory is copied."""
    if (a, b) == (0, source.shape[0]):
        return source
    if isinstance(source, Part):
        return Part(source.source, source.first + a, source.first + b)
    part = getattr(source, "part", None)
    return Part(source, a, b) if part is None else part(a, b)
