"""What is drawn of a recording: a stretch of time, read in blocks and pooled on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from motifold.estimator import CNMF
from motifold.findings.hidden import mostly_observed
from motifold.plots.decimate import bucket_edges, pool
from motifold.plots.style import in_time
from motifold.validation import is_list_of_segments, segment_lengths

_BLOCK = 2**14  # bins at a time, so that a long reconstruction never stands whole in memory


@dataclass(frozen=True)
class Window:
    """The stretch of time that is drawn, and the buckets of bins that are its columns."""

    edges: npt.NDArray[np.intp]  # bins at which a column starts, and the end
    rate: float | None

    @classmethod
    def from_range(
        cls,
        time_range: tuple[float, float] | None,
        rate: float | None,
        T: int,
    ) -> Window:
        """The bins of ``time_range``, which is in the units of the time axis; None means all."""
        start, stop = 0, T
        if time_range is not None:
            start, stop = (round(time * (rate or 1)) for time in time_range)
        if not 0 <= start < stop <= T:
            unit, end = ("bins", T) if rate is None else ("seconds", T / rate)
            raise ValueError(
                f"time_range must be (start, end) within the recording, 0 to {end} {unit}; it is "
                f"{time_range}."
            )
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

    def blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """The edges, a block of columns at a time."""
        n_columns = len(self.edges) - 1
        step = max(1, _BLOCK * n_columns // (self.stop - self.start))
        for first in range(0, n_columns, step):
            yield self.edges[first : first + step + 1]

    def pooled(self, rows: Callable[[int, int], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The columns (columns, N) of a recording, of which ``rows(a, b)`` gives bins a to b."""
        return np.concatenate(
            [pool(rows(int(e[0]), int(e[-1])), e - e[0]) for e in self.blocks()], axis=0
        )

    def breaks(self, segments: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Bins at which a new segment starts; ``segments`` numbers that of each row."""
        return self.start + 1 + np.flatnonzero(np.diff(segments[self.start : self.stop]))


@dataclass(frozen=True)
class Fit:
    """A fitted model with the activations of the recording it is drawn upon."""

    model: CNMF
    H: npt.NDArray[Any]  # (T, K)
    segments: npt.NDArray[Any]  # (T,) number of the segment of each row

    @classmethod
    def from_options(cls, model: CNMF, activations: Any, lengths: Any) -> Fit:
        """None means the activations, and the segments, of the training data."""
        check_is_fitted(model)
        if activations is None:
            activations = model.activations_
            lengths = model._lengths if lengths is None else lengths
        elif is_list_of_segments(activations) and lengths is None:
            lengths = [len(part) for part in activations]
        H = stacked(activations)
        K = model.components_.shape[0]
        if H.ndim != 2 or H.shape[1] != K:
            raise ValueError(f"activations must have shape (n_samples, {K}), not {H.shape}.")
        sizes = segment_lengths(H.shape[0], lengths)
        return cls(model, H, np.repeat(np.arange(len(sizes)), sizes))

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N) of the recording."""
        return self.H.shape[0], self.model.components_.shape[2]

    def checked_data(self, X: Any) -> npt.NDArray[Any]:
        """X stacked, (T, N)."""
        data = stacked(X)
        if data.shape != self.shape:
            raise ValueError(
                f"X must have shape (n_samples, n_features) = {self.shape}, as its activations "
                f"have; it has {data.shape}. For another recording than the training data give "
                "also activations=model.transform(X)."
            )
        return data

    def rows(self, a: int, b: int) -> npt.NDArray[Any]:
        """X̂ of bins a to b alone: only the L − 1 bins before them reach in."""
        first = self._reach(a)
        X_hat = self.model.inverse_transform(self.H[first:b], segments=self.segments[first:b])
        return np.asarray(X_hat)[a - first :]

    def parts(self, a: int, b: int) -> Iterator[npt.NDArray[Any]]:
        """The parts of X̂, bins a to b, that each motif makes."""
        first = self._reach(a)
        parts = self.model.reconstruct_components(self.H[first:b], segments=self.segments[first:b])
        return (part[a - first :] for part in parts)

    def ceiling(self, window: Window, data: npt.NDArray[Any] | None = None) -> float:
        """The largest activation drawn of a motif that is not cut off by the end of its segment.

        Nor hidden by missing entries of ``data``. Of such motifs the data shows but a few entries,
        so that their activations can be huge and mean nothing.
        """
        bins = np.arange(window.start, window.stop)
        ends = np.searchsorted(self.segments, self.segments[bins], side="right")
        whole = (ends - bins >= self.model.components_.shape[1])[:, None]
        if data is not None and data.dtype.kind == "f" and np.isnan(data[bins]).any():
            seen = mostly_observed(self.model, ~np.isnan(data), segments=self.segments)
            whole = whole & seen[bins]
        drawn = self.H[window.start : window.stop]
        return float(np.where(whole, drawn, 0).max()) or float(drawn.max()) or 1.0

    def _reach(self, a: int) -> int:
        return max(0, a - self.model.components_.shape[1] + 1)


class Power:
    """What motifs explain of a recording, added up block by block; NaN does not count."""

    def __init__(self, K: int) -> None:
        self._explained = np.zeros(K)
        self._total = 0.0
        self._residual = 0.0

    def add(self, X: npt.NDArray[Any], parts: Iterable[npt.NDArray[Any]]) -> None:
        """A block (bins, N) of the recording, and the part of it that each motif makes."""
        missing = np.isnan(X)
        hidden = bool(missing.any())
        X = np.where(missing, 0, X) if hidden else X
        self._total += _dot(X, X)
        left = X.astype(np.float64)
        for k, part in enumerate(parts):
            part = np.where(missing, 0, part) if hidden else part
            self._explained[k] += 2 * _dot(X, part) - _dot(part, part)
            left -= part
        self._residual += _dot(left, left)

    @property
    def shares(self) -> npt.NDArray[Any]:
        """Share of the power that each motif explains alone, (K,)."""
        return np.maximum(self._explained, 0) / (self._total or 1)

    @property
    def loss(self) -> float:
        """Relative loss of all motifs together; 1 of a recording that is zero."""
        return float(np.sqrt(self._residual / self._total)) if self._total else 1.0


def _dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(np.einsum("tn,tn->", a, b, dtype=np.float64))


def stacked(X: Any) -> npt.NDArray[Any]:
    """One array, from one or from a list of segments."""
    if is_list_of_segments(X):
        return np.concatenate([np.asarray(part) for part in X])
    return np.asarray(X)
