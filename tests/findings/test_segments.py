"""Lengths, bounds and ids of segments agree; ranges of time become bins."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.data import Segments
from motifold.findings.times import bins_of


def test_three_ways_to_say_the_same():
    segments = Segments([2, 1, 3])
    assert segments.ids.tolist() == [0, 0, 1, 2, 2, 2]
    assert list(segments) == [(0, 2), (2, 3), (3, 6)]
    assert segments.bounds.tolist() == [[0, 2, 2], [2, 3, 3], [3, 6, 6]]
    assert Segments.of(6, segments=list("aabccc")) == segments == Segments.of(6, [2, 1, 3])
    rows = np.arange(6)
    assert [part.tolist() for part in segments.split(rows)] == [[0, 1], [2], [3, 4, 5]]
    assert all(np.shares_memory(part, rows) for part in segments.split(rows))


@pytest.mark.parametrize(("a", "b"), [(0, 6), (1, 6), (0, 3), (2, 3), (1, 5), (4, 5), (4, 99)])
def test_a_part_of_them(a, b):
    segments = Segments([2, 1, 3])
    part = segments.within(a, b)
    ids = segments.ids[a:b]
    assert part == Segments.of(len(ids), segments=ids)
    assert segments.breaks(a, b).tolist() == [t for t in (2, 3) if a < t < b]


def test_where_a_motif_is_whole():
    segments = Segments([4, 2])
    assert segments.left.tolist() == [4, 3, 2, 1, 2, 1]
    assert segments.whole(3).tolist() == [True, True, False, False, False, False]
    assert segments.inner(2).tolist() == [False, True, True, False, False, False]


def test_ranges_of_time():
    assert bins_of(None, 10.0, 50) == (0, 50)
    assert bins_of((1, 2), 10.0, 50) == (10, 20)
    assert bins_of((1, 2), None, 50) == (1, 2)
    assert bins_of((4, 9), 10.0, 50, cut=True) == (40, 50)
    for bad in ((4, 9), (-1, 2), (2, 2)):
        with pytest.raises(ValueError, match="0 to 5 seconds"):
            bins_of(bad, 10.0, 50)
