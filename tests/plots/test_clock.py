"""Pictures in the recording's own clock."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF, find_events, sort_features
from motifold.datasets import make_sequences
from motifold.findings import event_triggered_average
from motifold.findings.times import Clock
from motifold.plots import plot_contributions, plot_factors, plot_raster, plot_reconstruction

X = make_sequences(200, 6, 2, 5, random_state=0).X


@pytest.fixture(scope="module")
def models():
    """Of one segment, and of two."""
    options = {"random_state": 0, "tol": 1e-2, "max_iter": 60}
    return CNMF(2, 5, **options).fit(X), CNMF(2, 5, **options).fit(X, lengths=[120, 80])


def pictures(model, **options):
    yield plot_factors(model, X, **options)
    yield plot_reconstruction(X, model, **options)
    yield plot_contributions(model, X, **options)
    yield plot_raster(X, sort_features(model), lengths=model.lengths_, **options)


def axes_of(figure, name="data"):
    return next(axes for axes in figure.axes if axes.get_label() == name)


def test_one_segment(models):
    for figure in pictures(models[0], rate=10, starts=[1000.0], time_range=(1005, 1010)):
        assert axes_of(figure).get_xlim() == pytest.approx((1005, 1010))
    for figure in pictures(models[0], rate=10):
        assert axes_of(figure).get_xlim() == pytest.approx((0, 20))
    with pytest.raises(ValueError, match="1000 to 1020 seconds"):
        plot_factors(models[0], X, rate=10, starts=[1000.0], time_range=(5, 10))
    with pytest.raises(ValueError, match="each of the 1 segments"):
        plot_factors(models[0], X, rate=10, starts=[1.0, 2.0])


def test_several_segments_side_by_side(models):
    for figure in pictures(models[1], rate=10, starts=[100.0, 300.0]):
        axes = axes_of(figure)
        assert axes.get_xlim() == pytest.approx((0, 20))
        tell = axes.xaxis.get_major_formatter()
        assert [tell(x) for x in (0, 5, 12, 15)] == ["100", "105", "300", "303"]
    for figure in pictures(models[1], rate=10, starts=[100.0, 300.0], time_range=(110, 302)):
        assert axes_of(figure).get_xlim() == pytest.approx((10, 14))


def test_clocks_that_overlap_count_through(models):
    figure = plot_factors(models[1], X, rate=10, starts=[0.0, 0.0], time_range=(11, 13))
    assert axes_of(figure).get_xlim() == pytest.approx((11, 13))
    clock = Clock.of(10, [120, 80], [0.0, 0.0])
    assert clock.times([0, 119, 120]).tolist() == [0, 11.9, 12]


def test_times_between_segments_are_at_their_ends():
    clock = Clock.of(10, [120, 80], [100.0, 300.0])
    assert clock.bins_of((200, 305)) == (120, 170)
    assert clock.bins_of((105, 200)) == (50, 120)


def test_events_and_averages(models):
    here, there = (find_events(models[1], rate=10, starts=s) for s in (None, (100.0, 300.0)))
    shift = np.array([100.0, 300.0])[here["segment"].astype(int)]
    np.testing.assert_allclose(there["time"].astype(float), here["time"].astype(float) + shift)
    options = {"window": (-0.5, 0.5), "rate": 10, "lengths": [120, 80]}
    expected = event_triggered_average(X, here, **options)
    found = event_triggered_average(X, there, **options, starts=(100.0, 300.0))
    np.testing.assert_array_equal(found.mean, expected.mean)
    with pytest.raises(ValueError, match="each of the 2 segments"):
        find_events(models[1], rate=10, starts=(1.0,))
