"""What is drawn of a recording: a stretch of time, read in blocks and pooled on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from motifold.findings.times import Clock
from motifold.model.measures import ROWS
from motifold.plots.decimate import bucket_edges, pool
from motifold.plots.style import in_time, time_label

Images = dict[str, npt.NDArray[Any]]  # by their names, (columns, N)


@dataclass(frozen=True)
class View:
    """The stretch of time that is drawn, and the buckets of bins that are its columns."""

    edges: npt.NDArray[np.intp]  # bins at which a column starts, and the end
    rate: float | None
    clock: Clock | None = None

    @classmethod
    def from_range(
        cls,
        time_range: tuple[float, float] | None,
        rate: float | None,
        lengths: Sequence[int],
        starts: Any = None,
    ) -> View:
        """Of ``time_range``, which is in the units of the time axis; None means all.

        ``lengths`` are the rows of the segments, ``starts`` their seconds in the recording's clock.
        """
        clock = Clock.of(rate, lengths, starts)
        return cls.from_bins(*clock.bins_of(time_range), rate, clock)

    @classmethod
    def from_bins(
        cls, start: int, stop: int, rate: float | None, clock: Clock | None = None
    ) -> View:
        """Of the bins from ``start`` to ``stop``."""
        return cls(start + bucket_edges(stop - start), rate, clock)

    @property
    def start(self) -> int:
        return int(self.edges[0])

    @property
    def stop(self) -> int:
        return int(self.edges[-1])

    @property
    def span(self) -> tuple[float, float]:
        """Start and end on the time axis: bin t reaches from t to t + 1."""
        return float(self.place(self.start)), float(self.place(self.stop))

    def place(self, bins: Any) -> Any:
        """Where bins are drawn: by the clock of the one segment, else along all of them."""
        first = self.clock.starts[0] if self.clock is not None and self.clock.is_one else 0.0
        return first + in_time(bins, self.rate)

    def label_time(self, axes: Axes) -> None:
        """Label the axis of time; several segments are side by side, and ticks tell the clock."""
        axes.set_xlabel(time_label("time", self.rate))
        clock = self.clock
        if clock is not None and not clock.is_one and clock.rate is not None:
            rate = clock.rate
            axes.xaxis.set_major_formatter(
                FuncFormatter(lambda x, _: f"{float(clock.times(x * rate)):.7g}")
            )

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
