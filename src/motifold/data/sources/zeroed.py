"""A source with zeros where nothing is observed, made block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from motifold.data.sources.base import Part, Source
from motifold.model.arrays import Array, Mask


@dataclass(frozen=True, eq=False)
class ZeroedSource:
    """The rows of a source, zero where ``observed`` (T, N) is False: there may be anything."""

    source: Source
    observed: Mask

    @property
    def shape(self) -> tuple[int, int]:
        """That of the source."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype:
        """That of the source."""
        return self.source.dtype

    @property
    def chunk(self) -> int:
        """That of the source."""
        return self.source.chunk

    @property
    def slow(self) -> bool:
        """Whether the source is."""
        return self.source.slow

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b, a new array."""
        return np.where(self.observed[a:b], self.source.rows(a, b), self.dtype.type(0))

    def part(self, a: int, b: int) -> ZeroedSource:
        """Rows a to b as a source."""
        whole = self.source
        if isinstance(whole, Part):
            inner = Part(whole.source, whole.first + a, whole.first + b)
        else:
            inner = Part(whole, a, b)
        return ZeroedSource(inner, self.observed[a:b])
