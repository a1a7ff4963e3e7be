"""The order of the features in a picture: what ``order=`` means, the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from motifold.findings.decomposition import Decomposition
from motifold.findings.order import correlation_of, feature_correlation
from motifold.findings.profiles import FeatureOrder, motif_weights, sort_features
from motifold.plots.style import Features

Order = Literal["auto", "sorted", "own"] | FeatureOrder | npt.ArrayLike


def order_of_fit(features: Features, order: Any, fit: Decomposition) -> Features:
    """The features of a fit, in that order; motifs weigh by their power in the reconstruction."""
    if _is_own(features, order):
        return features
    if isinstance(order, str):
        ordered = correlation_of(fit).shows_an_order
        if order == "own" or (order == "auto" and ordered):
            return replace(features, upwards=ordered)
        motifs = fit.model.components_
        weights = motif_weights(motifs, fit.known, fit.segments)
        return features.reordered(sort_features(motifs, weights=weights).order)
    return features.reordered(_given(order, len(features.each)))


def order_of_motifs(
    features: Features, order: Any, components: Any, motifs: npt.NDArray[Any], X: Any = None
) -> Features:
    """The same for motifs (K, L, N) alone, of ``components``: a model, or an array.

    Whether features have an order of their own is judged by X, where it is given.
    """
    if _is_own(features, order):
        return features
    if isinstance(order, str):
        rows = np.concatenate(motifs) if X is None else X
        ordered = feature_correlation(rows).shows_an_order
        if order == "own" or (order == "auto" and ordered):
            return replace(features, upwards=ordered)
        known = hasattr(components, "activations_")
        found = sort_features(components if known else np.abs(motifs))
        return features.reordered(found.order)
    return features.reordered(_given(order, len(features.each)))


def _is_own(features: Features, order: Any) -> bool:
    """Whether there is nothing to look into: an axis of features that is not to be sorted."""
    if not isinstance(order, str):
        return False
    if order not in ("auto", "sorted", "own"):
        raise ValueError(
            'order must be "auto", "sorted", "own", a FeatureOrder (from motifold.sort_features) '
            f"or the features' positions, not {order!r}."
        )
    return features.values is not None and order != "sorted"


def _given(order: Any, N: int) -> npt.NDArray[np.intp]:
    """An order that was given, checked."""
    positions = np.asarray(order.order if isinstance(order, FeatureOrder) else order)
    if positions.shape != (N,) or not np.array_equal(np.sort(positions), np.arange(N)):
        raise ValueError(
            f"order must have each of the {N} features once, as their positions 0 to {N - 1}."
        )
    return positions.astype(np.intp)
