"""The unbroken stretches of a recording: their lengths, bounds and the number of each row's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.model.arrays import Boundary

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Segments:
    """Segments that follow one another, T rows in all.

    Parameters
    ----------
    lengths : rows of each
    """

    lengths: list[int]

    @classmethod
    def of(cls, T: int, lengths: Any = None, segments: Any = None) -> Segments:
        """From ``lengths`` or an id per row (each run is a segment), as ``CNMF.fit`` takes them."""
        return cls(segment_lengths(T, lengths, segments))

    @cached_property
    def edges(self) -> Rows:
        """(segments + 1,): where each starts, and the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.intp)

    @property
    def bounds(self) -> Rows:
        """(segments, 3): start, end of the activations, end; as the data passes take them."""
        return self.bounds_for(1, "zero")

    def bounds_for(self, L: int, boundary: Boundary) -> Rows:
        """The same where no motif of L lags may be cut off (boundary "valid")."""
        starts, stops = self.edges[:-1], self.edges[1:]
        free = stops if boundary == "zero" else np.maximum(starts, stops - L + 1)
        return np.column_stack([starts, free, stops])

    @cached_property
    def ids(self) -> Rows:
        """(T,): number of the segment of each row."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Start and end of each."""
        return pairwise(self.edges.tolist())

    def split(self, rows: Any) -> list[Any]:
        """The rows of each segment, not copied."""
        return [rows[start:stop] for start, stop in self]

    def within(self, a: int, b: int) -> Segments:
        """Those of the rows a to b alone."""
        lengths = np.diff(np.clip(self.edges, a, b))
        return Segments(lengths[lengths > 0].tolist())

    def breaks(self, a: int, b: int) -> Rows:
        """Rows between a and b at which a segment starts."""
        inside = self.edges[1:-1]
        return inside[(inside > a) & (inside < b)]

    @cached_property
    def left(self) -> Rows:
        """(T,): rows from each to the end of its segment, itself among them."""
        return self.edges[1:][self.ids] - np.arange(len(self.ids))

    def whole(self, L: int) -> npt.NDArray[np.bool_]:
        """(T,): where a motif of L lags can start without being cut off by the segment's end."""
        return self.left >= L

    def inner(self, L: int) -> npt.NDArray[np.bool_]:
        """(T,): rows that are at least L − 1 from either end of their segment."""
        return self.whole(L) & (np.arange(len(self.ids)) - self.edges[self.ids] >= L - 1)


def segment_lengths(n_samples: int, lengths: Any = None, segments: Any = None) -> list[int]:
    """Rows of every segment, from ``lengths`` or from an id per row (each run is a segment)."""
    if lengths is not None and segments is not None:
        raise ValueError("Give lengths or segments, not both: they say the same thing.")
    if lengths is not None:
        sizes = np.atleast_1d(np.asarray(lengths))
        if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu":
            raise TypeError(f"lengths must be a list of whole numbers, not {lengths!r}.")
        if (sizes < 1).any():
            bad = int(np.argmax(sizes < 1))
            raise ValueError(
                f"Every segment needs at least one row: lengths[{bad}] = {sizes[bad]}."
            )
        whole = sizes.tolist()  # Python's numbers, whose sum cannot wrap around
        if sum(whole) != n_samples:
            raise ValueError(
                f"lengths must add up to the number of rows: they add up to {sum(whole)}, the "
                f"data has {n_samples} rows."
            )
        return whole
    if segments is not None:
        ids = np.asarray(segments)
        if ids.shape != (n_samples,):
            raise ValueError(
                f"segments needs one id per row, shape ({n_samples},); it has shape {ids.shape}."
            )
        missing = (ids != ids) | np.ma.getmaskarray(segments)  # NaN, NaT, and what is masked
        if np.any(missing):
            raise ValueError(f"segments has no id at row {int(np.argmax(missing))}.")
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        return [int(size) for size in np.diff(np.r_[starts, n_samples])]
    return [n_samples]
