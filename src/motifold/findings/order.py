"""In which order pictures show the features: sorted, unless they have an order of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.findings.decomposition import Decomposition
from motifold.findings.profiles import motif_weights, sort_features

_RUNS, _RUN = 20, 200  # runs of rows that are looked at, and rows of each
_PAIRS = 1000
_FEW_FEATURES = 8  # with so few, chance makes neighbours correlated
_STRONG, _STRONGER = 0.5, 0.2


@dataclass(frozen=True)
class FeatureCorrelation:
    """Median correlation over time of neighbouring features, and of pairs taken at random."""

    neighbours: float
    others: float

    @property
    def shows_an_order(self) -> bool:
        """Neighbours are strongly correlated, and clearly more so than others.

        So are the frequencies of a spectrogram (0.7 to 0.9 against 0.1 to 0.4), and not neurons in
        the order in which they were found (about 0 for both).
        """
        return self.neighbours >= _STRONG and self.neighbours - self.others >= _STRONGER


def picture_order(
    fit: Decomposition,
    sort: bool | None,
    *,
    has_axis: bool = False,
    correlation: FeatureCorrelation | None = None,
) -> npt.NDArray[np.intp] | None:
    """Features as pictures show them, (N,); None for their own order.

    ``sort`` None: sorted, unless there is an axis of features or they are correlated as if there
    were one. ``correlation`` is that of the recording, where it is known already.
    """
    if sort is None:
        sort = not has_axis and not (correlation or correlation_of(fit)).shows_an_order
    if not sort:
        return None
    motifs = fit.model.components_
    return sort_features(motifs, weights=motif_weights(motifs, fit.known, fit.segments)).order


def correlation_of(fit: Decomposition) -> FeatureCorrelation:
    """Of the features in the recording or, without it, in the motifs."""
    return feature_correlation(np.concatenate(fit.model.components_) if fit.X is None else fit.X)


def feature_correlation(X: Any) -> FeatureCorrelation:
    """Of the features of X (T, N); NaN does not count, constant features neither."""
    step = max(_RUN, len(X) // _RUNS)
    runs = [X[a : a + _RUN] for a in range(0, len(X), step)]
    rows = np.concatenate(runs).astype(np.float64)
    missing = np.isnan(rows)
    counts = np.maximum((~missing).sum(axis=0), 1)
    rows[missing] = 0
    rows -= rows.sum(axis=0) / counts
    rows[missing] = 0
    norms = np.sqrt(np.einsum("tn,tn->n", rows, rows))
    alive = np.flatnonzero(norms > 0)
    if len(alive) < _FEW_FEATURES:
        return FeatureCorrelation(0.0, 0.0)
    rows = rows[:, alive] / norms[alive]
    near = np.einsum("tn,tn->n", rows[:, 1:], rows[:, :-1])
    pairs = np.random.default_rng(0).integers(len(alive), size=(_PAIRS, 2))
    pairs = pairs[np.abs(pairs[:, 0] - pairs[:, 1]) > 1]
    far = np.einsum("tn,tn->n", rows[:, pairs[:, 0]], rows[:, pairs[:, 1]])
    return FeatureCorrelation(float(np.median(near)), float(np.median(far)))
