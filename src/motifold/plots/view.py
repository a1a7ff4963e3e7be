"""What is drawn of a recording: a stretch of time, read in blocks and pooled on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.findings.times import bins_of
from motifold.model.measures import ROWS
from motifold.plots.decimate import bucket_edges, pool
from motifold.plots.style import in_time

Images = dict[str, npt.NDArray[Any]]  # by their names, (columns, N)


@dataclass(frozen=True)
class View:
    """The stretch of time that is drawn, and the buckets of bins that are its columns."""

    edges: npt.NDArray[np.intp]  # bins at which a column starts, and the end
    rate: float | None

    @classmethod
    def from_range(cls, time_range: tuple[float, float] | None, rate: float | None, T: int) -> View:
        """Of ``time_range``, which is in the units of the time axis; None means all."""
        return cls.from_bins(*bins_of(time_range, rate, T), rate)

    @classmethod
    def from_bins(cls, start: int, stop: int, rate: float | None) -> View:
        """Of the bins from ``start`` to ``stop``."""
        return cls(start + bucket_edges(stop - start), rate)

    @property
    def start(self) -> int:
        return int(self.edges[0])

    @property
    def stop(self) -> int:
        return int(self.edges[-1])

    @property
    def span(self) -> tuple[float, float]:
        """Start and end on the time axis: bin t reaches from t to t + 1."""
        return in_time(self.start, self.rate), in_time(self.stop, self.rate)

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """The edges, a block of columns at a time."""
        n_columns = len(self.edges) - 1
        step = max(1, ROWS * n_columns // (self.stop - self.start))
        for first in range(0, n_columns, step):
            yield self.edges[first : first + step + 1]

    def pooled(self, rows: Callable[[int, int], Mapping[str, npt.NDArray[Any]]]) -> Images:
        """The images of recordings, of which ``rows(a, b)`` gives bins a to b by their names."""
        columns: dict[str, list[npt.NDArray[Any]]] = {}
        for edges in self._blocks():
            for name, values in rows(int(edges[0]), int(edges[-1])).items():
                columns.setdefault(name, []).append(pool(values, edges - edges[0]))
        return {name: np.concatenate(blocks) for name, blocks in columns.items()}
