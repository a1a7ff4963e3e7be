"""Fewer points for long recordings: extremes are kept, so that no short event gets lost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# More columns than a page shows: 8 inches at 250 dots each.
MAX_COLUMNS = 2000


def bucket_edges(n_bins: int, max_buckets: int = MAX_COLUMNS) -> npt.NDArray[np.intp]:
    """Edges of at most ``max_buckets`` buckets of bins, of nearly equal width."""
    n_buckets = min(n_bins, max_buckets)
    return np.arange(n_buckets + 1) * n_bins // n_buckets


def pool(values: npt.NDArray[Any], edges: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """The value furthest from zero in each bucket of rows, for images; NaN only where all are.

    values (bins, N), edges (buckets + 1,) from 0 to bins; returns (buckets, N).
    """
    if len(edges) == len(values) + 1:
        return values
    # A loop over buckets, of which there are few: reduceat took six times as long.
    above = np.stack([np.fmax.reduce(values[a:b], axis=0) for a, b in pairwise(edges)])
    if values.dtype.kind in "bu" or not np.fmin.reduce(values, axis=None) < 0:
        return above
    below = np.stack([np.fmin.reduce(values[a:b], axis=0) for a, b in pairwise(edges)])
    return np.where(-below > above, below, above)


def envelope(
    values: npt.NDArray[Any], max_buckets: int = MAX_COLUMNS
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Lines of fewer points with the same outline: the least and the largest of each bucket.

    values (bins, K); returns positions (points,) of bins' centres, and values (points, K). Lines
    with fewer than two points to a bucket come back as they are.
    """
    n_bins = len(values)
    if n_bins <= 2 * max_buckets:
        return np.arange(n_bins) + 0.5, values
    edges = bucket_edges(n_bins, max_buckets)
    positions = edges[:-1, None] + np.diff(edges)[:, None] * np.array([0.25, 0.75])
    points = np.empty((2 * max_buckets, values.shape[1]), dtype=values.dtype)
    for i, (a, b) in enumerate(pairwise(edges)):
        points[2 * i] = np.fmin.reduce(values[a:b], axis=0)
        points[2 * i + 1] = np.fmax.reduce(values[a:b], axis=0)
    return positions.ravel(), points
