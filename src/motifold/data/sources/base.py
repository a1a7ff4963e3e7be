"""The protocol of a source, and a part of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from motifold.model.arrays import Array


@runtime_checkable
class Source(Protocol):
    """What gives blocks of rows of a recording: all that is ever asked of X.

    Attributes
    ----------
    shape : (T, N)
    dtype : float32 or float64, of the blocks
    chunk : rows that are read together at no further cost; 1 if it does not matter
    slow : whether reading costs more than computing, so that it pays to read less often
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def chunk(self) -> int: ...
    @property
    def slow(self) -> bool: ...

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b, (b − a, N), not to be changed; a view where there is one."""


@dataclass(frozen=True)
class Part:
    """Rows first to last of a source, as a source."""

    source: Source
    first: int
    last: int

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)."""
        return self.last - self.first, self.source.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """That of the whole."""
        return self.source.dtype

    @property
    def chunk(self) -> int:
        """That of the whole."""
        return self.source.chunk

    @property
    def slow(self) -> bool:
        """Whether the whole is."""
        return self.source.slow

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b of the part."""
        return self.source.rows(self.first + a, self.first + b)
