"""The recording: segments over sources, what is observed of them, and the blocks it is read in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from motifold.data.segments import Segments
from motifold.data.sources import Source, SparseSource, as_source, held
from motifold.data.sources.array import ArraySource, part_of
from motifold.model.arrays import Array, Mask

Masks = Sequence[Mask | None] | None

# Bytes of one time block of X, of H̃ and of X̂: a few of them fit a core's second-level cache.
_BLOCK_BYTES = 2**21
# Rows of a block: not fewer, for the matrix product's sake; and the data gives several blocks
# where they are not too short, for the threads' sake.
_LEAST_ROWS, _SHORT, _BLOCKS = 128, 512, 16
# Sums over blocks are taken in groups, each in one thread and in the data's precision: at least
# so many groups, and at most so many blocks in one.
_GROUPS, _BLOCKS_OF_A_GROUP = 16, 16


@dataclass(frozen=True, eq=False)
class Segment:
    """One unbroken stretch of recording and its place in the stacked activations.

    Attributes
    ----------
    source : gives its rows, (T_i, N)
    start, stop : rows of the stacked H that belong to it
    observed : (T_i, N) of bool, or None if nothing is missing; X is zero where it is False
    """

    source: Source
    start: int
    stop: int
    observed: Mask | None = None

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b of the segment, not to be changed."""
        return self.source.rows(a, b)

    @property
    def array(self) -> Array | None:
        """All its rows, where they are an array already: for code that reads many blocks."""
        return self.source.array if isinstance(self.source, ArraySource) else None

    @property
    def sparse(self) -> SparseSource | None:
        """Its entries, where they are a sparse matrix."""
        return self.source if isinstance(self.source, SparseSource) else None

    def __len__(self) -> int:
        return self.stop - self.start


Block = tuple[Segment, int, int]


@dataclass(frozen=True)
class Data:
    """A recording.

    Attributes
    ----------
    segments : in order
    name : what the user calls it, for errors
    listed : whether the user gave a list of segments, so that rows are counted in each
    """

    segments: tuple[Segment, ...]
    name: str = "X"
    listed: bool = False

    @classmethod
    def of(
        cls,
        sources: Sequence[Any],
        masks: Masks = None,
        *,
        listed: bool = False,
        name: str = "X",
    ) -> Data:
        """From the rows of each segment (arrays, sparse matrices, sources) and what is observed.

        ``masks``: for each segment a mask, or None; rows are zero where it is False.
        """
        segments = []
        start = 0
        for X, observed in zip(sources, masks or [None] * len(sources), strict=True):
            source = as_source(X)
            stop = start + source.shape[0]
            segments.append(Segment(source, start, stop, observed))
            start = stop
        return cls(tuple(segments), name, listed)

    def stretches(self, chosen: list[Block], *, read: bool = True) -> Data:
        """Stretches (segment, a, b) of the data, each a segment.

        Nothing in memory is copied; what is on disk is read once, if it fits, and ``read``.
        """
        parts = [part_of(segment.source, a, b) for segment, a, b in chosen]
        sources = [part if not read or (rows := held(part)) is None else rows for part in parts]
        masks = [s.observed if s.observed is None else s.observed[a:b] for s, a, b in chosen]
        return Data.of(sources, masks)

    @cached_property
    def layout(self) -> Segments:
        """Lengths, bounds and ids."""
        return Segments([len(segment) for segment in self.segments])

    @property
    def N(self) -> int:
        """Number of features."""
        return self.segments[0].source.shape[1]

    @property
    def T(self) -> int:
        """Number of time bins, all segments together."""
        return self.segments[-1].stop

    @property
    def dtype(self) -> np.dtype:
        """Precision of the data, the factors and the statistics."""
        return self.segments[0].source.dtype

    @cached_property
    def n_entries(self) -> int | None:
        """Entries that are listed, where all segments are sparse matrices; else None."""
        found = [segment.sparse for segment in self.segments if segment.sparse is not None]
        return sum(s.n_entries for s in found) if len(found) == len(self.segments) else None

    @cached_property
    def observed_share(self) -> float:
        """Share of the entries that are observed."""
        masks = [segment.observed for segment in self.segments if segment.observed is not None]
        hidden = sum(mask.size - int(np.count_nonzero(mask)) for mask in masks)
        return 1.0 - hidden / (self.N * self.T)

    def block_rows(self, width: int = 1) -> int:
        """Rows of a time block, at most; ``width`` as in ``blocks``."""
        fitting = _BLOCK_BYTES // (max(self.N, width) * self.dtype.itemsize)
        return max(_LEAST_ROWS, min(fitting, max(_SHORT, -(-self.T // _BLOCKS))))

    def blocks(self, width: int = 1) -> Iterator[Block]:
        """Yield (segment, a, b), time blocks that cover every segment; a and b count in it.

        ``width``: numbers per row of what stands beside X in a product. The blocks depend on the
        shape of the problem only, so that sums over them, taken in this order, are the same bit by
        bit whatever the number of threads.
        """
        rows = self.block_rows(width)
        for segment in self.segments:
            for a in range(0, len(segment), rows):
                yield segment, a, min(a + rows, len(segment))

    def groups(self, width: int = 1) -> list[list[Block]]:
        """All blocks, in runs of about equal length."""
        blocks = list(self.blocks(width))
        n_groups = min(len(blocks), max(_GROUPS, len(blocks) // _BLOCKS_OF_A_GROUP))
        ends = [len(blocks) * (i + 1) // n_groups for i in range(n_groups)]
        return [blocks[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
