"""A recording as the search for events takes it: checked, dense, smoothed where it is of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.ndimage import gaussian_filter1d

from motifold.data import Segments
from motifold.data.sentinels import advice, is_sentinel
from motifold.data.validation import check_masked_recording
from motifold.findings.overlap import Floats
from motifold.findings.pursuit import Standardised
from motifold.findings.rows import dense
from motifold.model import Mask

_LEAST_SPREAD = 1e-3  # of a feature, in units of that of all
_SPIKE_WIDTH = 1.0  # bins, by which spike counts are smoothed


@dataclass(frozen=True)
class Prepared:
    """X (T, N) as given, zero where missing, and the same smoothed over time within segments."""

    X: Floats
    smoothed: Floats
    segments: Segments
    observed: Mask | None
    width: float

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        smooth: float | Literal["auto"] = "auto",
        signed: bool = False,
    ) -> Prepared:
        """Check and copy; ``smooth`` in bins, "auto" smooths what looks like counts of spikes.

        ``signed``: values may be below zero.
        """
        parts, masks = check_masked_recording(X, lengths, segments, mask, nonnegative=False)
        bounds = Segments([part.shape[0] for part in parts])
        array = np.concatenate([dense(part) for part in parts]).astype(np.float64)
        observed = None
        if masks is not None:
            observed = np.concatenate([np.asarray(part) for part in masks])
            observed = None if observed.all() else observed
            array = array if observed is None else np.where(observed, array, 0.0)
        if not signed:
            _refuse_negative(float(array.min()))
        width = (_SPIKE_WIDTH if _looks_like_spikes(array) else 0.0) if smooth == "auto" else smooth
        if not width >= 0:
            raise ValueError(f'smooth must be "auto" or 0 or greater (bins), not {smooth!r}.')
        return cls(array, _smoothed(array, bounds, observed, width), bounds, observed, width)

    def within(self, a: int, b: int) -> Prepared:
        """Bins a to b alone."""
        observed = None if self.observed is None else self.observed[a:b]
        segments = self.segments.within(a, b)
        X = self.X[a:b]
        return Prepared(
            X, _smoothed(X, segments, observed, self.width), segments, observed, self.width
        )

    def without(self, a: int, b: int, gap: int) -> Prepared:
        """All but bins a to b and ``gap`` bins on either side of them, in two pieces."""
        ends = ((0, max(0, a - gap)), (min(b + gap, len(self.X)), len(self.X)))
        parts = [self.within(*end) for end in ends if end[0] < end[1]]
        return Prepared(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.smoothed for part in parts]),
            Segments([n for part in parts for n in part.segments.lengths]),
            None if self.observed is None else np.concatenate([_seen(part) for part in parts]),
            self.width,
        )

    @property
    def spread(self) -> Floats:
        """Standard deviation of each feature (N,), with a floor for those that hardly vary."""
        deviations = np.sqrt(self._mean(np.square(self.smoothed - self.mean)))
        whole = float(np.sqrt(np.mean(deviations**2)))
        return np.maximum(deviations, _LEAST_SPREAD * whole or 1.0)

    @property
    def mean(self) -> Floats:
        """Mean of each feature (N,), of what is observed."""
        return self._mean(self.smoothed)

    def standardised(self, background: Floats, spread: Floats) -> Standardised:
        """Background taken off, features in units of their spread."""
        Y = (self.smoothed - background) / spread
        if self.observed is not None:
            Y = np.where(self.observed, Y, 0.0)
        return Standardised(Y, self.segments, self.observed)

    def blurred(self, motifs: Floats) -> Floats:
        """Motifs (K, L, N) as the smoothed recording shows them."""
        if not self.width:
            return motifs
        return gaussian_filter1d(motifs, self.width, axis=1, mode="constant")

    def _mean(self, values: Floats) -> Floats:
        if self.observed is None:
            return values.mean(axis=0)
        n_seen = np.maximum(self.observed.sum(axis=0), 1)
        return np.where(self.observed, values, 0.0).sum(axis=0) / n_seen


def _seen(part: Prepared) -> Mask:
    assert part.observed is not None
    return part.observed


def _refuse_negative(least: float) -> None:
    if least >= 0:
        return
    what = (
        advice(least)
        if is_sentinel(least)
        else "Events are looked for in what is nonnegative: set noise around zero to zero "
        "(np.maximum(X, 0)). Only a fit with allow_negative=True takes it as it is."
    )
    raise ValueError(f"Negative values in X, down to {least:g}. {what}")


def _looks_like_spikes(X: Floats) -> bool:
    """Whole numbers, most of them zero."""
    return bool(np.count_nonzero(X) < X.size / 2 and (np.round(X) == X).all())


def _smoothed(X: Floats, segments: Segments, observed: Mask | None, width: float) -> Floats:
    if not width:
        return X
    out = np.empty_like(X)
    for a, b in segments:
        out[a:b] = gaussian_filter1d(X[a:b], width, axis=0)
        if observed is not None:  # the mean of what is seen around a bin
            weight = gaussian_filter1d(observed[a:b].astype(np.float64), width, axis=0)
            out[a:b] /= np.maximum(weight, 1e-6)
    return out
