"""Decimation keeps the extremes, and few points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from motifold.plots.decimate import bucket_edges, envelope, pool


@pytest.mark.parametrize(("n_bins", "buckets"), [(1, 5), (5, 5), (7, 5), (1000, 7), (10**6, 2000)])
def test_edges_cover_all_bins_evenly(n_bins: int, buckets: int) -> None:
    edges = bucket_edges(n_bins, buckets)
    widths = np.diff(edges)
    assert (edges[0], edges[-1]) == (0, n_bins)
    assert len(widths) == min(n_bins, buckets)
    assert widths.min() >= 1
    assert widths.max() - widths.min() <= 1


def test_pooling_takes_the_largest_of_each_bucket() -> None:
    values = np.random.default_rng(0).random((103, 4))
    edges = bucket_edges(103, 10)
    expected = [[max(values[a:b, n]) for n in range(4)] for a, b in pairwise(edges)]
    np.testing.assert_array_equal(pool(values, edges), expected)


def test_pooling_passes_over_missing_values() -> None:
    values = np.array([[1.0], [np.nan], [np.nan], [np.nan]])
    np.testing.assert_array_equal(pool(values, bucket_edges(4, 2)), [[1.0], [np.nan]])


def test_short_images_are_not_touched() -> None:
    values = np.ones((6, 2))
    assert pool(values, bucket_edges(6, 10)) is values


def test_an_envelope_keeps_single_spikes() -> None:
    values = np.full((10_000, 2), 5.0)
    values[1234, 0], values[7777, 1] = 9.0, -3.0
    positions, points = envelope(values, 50)
    assert points.shape == (100, 2)
    assert positions.shape == (100,)
    assert np.all(np.diff(positions) > 0)
    assert (points.max(), points.min()) == (9.0, -3.0)
    assert abs(positions[points[:, 0].argmax()] - 1234) <= 10_000 / 50
    assert abs(positions[points[:, 1].argmin()] - 7777) <= 10_000 / 50


def test_short_lines_are_not_touched() -> None:
    values = np.random.default_rng(0).random((100, 2))
    positions, points = envelope(values, 50)
    assert points is values
    np.testing.assert_array_equal(positions, np.arange(100) + 0.5)
