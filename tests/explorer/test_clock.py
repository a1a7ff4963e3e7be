"""Times on the axis are the recording's own."""

from __future__ import annotations

import itertools

import pytest

from motifold.data import Segments
from motifold.explorer.clock import Clock, written


def texts(ticks):
    return [text for _, text in ticks]


def test_seconds():
    clock = Clock(Segments([1000]), 10.0)
    assert (clock.unit, clock.scale, clock.end) == ("s", "s", 100.0)
    assert texts(clock.ticks(0, 100)) == ["0", "20", "40", "60", "80", "100"]
    assert texts(clock.ticks(3.1, 3.5, about=4)) == ["3.1", "3.2", "3.3", "3.4", "3.5"]
    assert clock.told(13) == "1.3 s"


def test_bins():
    clock = Clock(Segments([100, 400]))
    assert clock.scale == "bins"
    assert texts(clock.ticks(0, 500)) == ["0", "100", "200", "300", "400", "500"]
    assert clock.told(250) == "bin 250 (segment 1)"
    # Nothing is written between two bins.
    assert texts(clock.ticks(10, 12)) == ["10", "11", "12"]


def test_a_recording_that_starts_at_an_hour_of_its_own():
    clock = Clock(Segments([100_000]), 10.0, (5000.0,))
    assert clock.scale == "h:min:s"
    ticks = clock.ticks(0, 10_000)
    assert ticks[0] == (400.0, "1:30:00")
    assert clock.told(131) == "1:23:33.1"


def test_segments_have_clocks_of_their_own():
    clock = Clock(Segments([100, 200]), 10.0, (50.0, 90.0))
    ticks = clock.ticks(0, 30)
    assert ticks[:3] == [(0.0, "50"), (5.0, "55"), (10.0, "90")]
    assert texts(ticks)[-1] == "110"
    assert clock.told(131) == "93.1 s (segment 1)"


def test_many_segments_are_numbered():
    clock = Clock(Segments([100] * 20), 10.0, tuple(7.0 * i for i in range(20)))
    assert texts(clock.ticks(0, 200))[:3] == ["#0", "#3", "#6"]
    assert texts(clock.ticks(15, 200))[0] == "#2"


@pytest.mark.parametrize("zoom", [3e-4, 0.01, 1.0, 40.0, 700.0, 86_000.0, 2e6])
def test_any_zoom_has_a_few_round_times(zoom):
    clock = Clock(Segments([30_000_000]), 10.0)
    left = 123.456
    ticks = clock.ticks(left, left + zoom)
    assert 2 <= len(ticks) <= 9
    assert all(left - 1e-6 <= place <= left + zoom + 1e-6 for place, _ in ticks)
    assert len(set(texts(ticks))) == len(ticks)
    steps = [b - a for (a, _), (b, _) in itertools.pairwise(ticks)]
    assert max(steps) - min(steps) < 1e-6 * max(steps) + 1e-9


def test_a_stretch_is_never_empty_nor_outside():
    clock = Clock(Segments([100]), 10.0)
    assert clock.bins(-5, 200) == (0, 100)
    assert clock.bins(3.0, 3.0) == (30, 31)
    assert clock.bins(50, 60) == (99, 100)
    assert clock.bins(0.1, 0.3) == (1, 3)


def test_written():
    assert written(599.5, 0.5) == "599.5"
    assert written(600, 60) == "10:00"
    assert written(3725.25, 0.01) == "1:02:05.25"
    assert written(-4000, 1) == "−1:06:40"
