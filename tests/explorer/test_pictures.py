"""The pictures against what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.explorer.marks import clicked, marks_in
from motifold.explorer.picture import (
    Lane,
    View,
    lane_pixels,
    lanes_of,
    part_columns,
    placed,
    recording_pixels,
    rgb,
    shaded,
)
from motifold.explorer.session import Session
from motifold.explorer.snippets import snippet, window
from motifold.explorer.subject import Subject


def test_a_view_is_within_the_recording(subject):
    view = View.of(subject, (-3.0, 1e9), (-2.0, 99.0))
    assert (view.a, view.b, view.bottom, view.top) == (0, 3000, 0, 30)
    view = View.of(subject, (1.0, 2.0), (3.2, 5.1))
    assert (view.a, view.b, view.bottom, view.top) == (50, 100, 3, 6)


def test_data_is_dark_where_it_is_large(session, X):
    pixels, span = recording_pixels(session, View.of(session.subject, (0, 4), None), "data")
    assert pixels.shape == (30, 200, 3)
    assert span == (0, 200)
    darkness = 255 - pixels[..., 0].astype(float)
    shown = np.clip(X[:200] / session.subject.darkest, 0, 1).T  # the first feature on top
    assert np.corrcoef(darkness.ravel(), shown.ravel())[0, 1] > 0.999


def test_sorted_features_are_drawn_in_that_order(session):
    order = session.subject.sorted_order
    view = View.of(session.subject, (0, 4), None)
    plain, _ = recording_pixels(session, view, "data")
    ordered, _ = recording_pixels(session, view, "data", order)
    np.testing.assert_array_equal(ordered, plain[order])


def test_a_zoom_into_features_shows_those(session):
    whole, _ = recording_pixels(session, View.of(session.subject, (0, 4), None), "data")
    some, _ = recording_pixels(session, View.of(session.subject, (0, 4), (10, 15)), "data")
    np.testing.assert_array_equal(some, whole[15:20])


def test_what_a_motif_explains_has_its_colour(session):
    subject = session.subject
    event = int(session.occurrences(0).bins[np.argmax(session.occurrences(0).strengths)])
    part = subject.fit.part(0, event, event + 12)
    t, n = np.unravel_index(part.argmax(), part.shape)
    session.note(0, colour="#ff0000")
    view = View(event, event + 12, 0, 30)
    for show in ("data and motifs", "motifs"):
        pixels, _ = recording_pixels(session, view, show)
        red, green, blue = pixels[n, t].astype(int)
        assert red > 200
        assert green < 120
        assert blue < 120
    session.note(0, hidden=True)
    pixels, _ = recording_pixels(session, view, "motifs")
    assert pixels[n, t].min() > 150
    grey, _ = recording_pixels(session, view, "data and motifs")
    assert np.ptp(grey[n, t].astype(int)) < 100


def test_missing_entries_are_grey(model, X):
    holes = X.copy()
    holes[100:140, 4] = np.nan
    session = Session(Subject.of(model, holes, 50.0))
    pixels, _ = recording_pixels(session, View(90, 150, 0, 30), "data and motifs")
    assert (pixels[4, 10:50] == 199).all()
    assert (pixels[5, 10:50] != 199).any()


@pytest.mark.parametrize(("n_columns", "long", "likeness"), [(100, 16, 0.9), (30, 1, 0.9)])
def test_parts_of_long_columns_are_nearly_those_of_the_reconstruction(
    subject, monkeypatch, n_columns, long, likeness
):
    T, features = len(subject.fit.H), np.arange(30)
    columns = subject.X.columns(0, T, n_columns)
    exact = next(part_columns(subject, columns, features))
    expected = subject.fit.part(0, 0, T)
    ends = zip(*_ends(columns.edges), strict=True)
    expected = np.stack([expected[a:b].max(axis=0) for a, b in ends])
    np.testing.assert_allclose(exact, expected, rtol=1e-5)
    monkeypatch.setattr("motifold.explorer.picture._EXACT_WORK", 0)
    monkeypatch.setattr("motifold.explorer.picture._LONG", long)
    quick = next(part_columns(subject, columns, features))
    assert quick.shape == exact.shape
    assert np.corrcoef(quick.ravel(), exact.ravel())[0, 1] > likeness


def _ends(edges):
    return edges[:-1], edges[1:]


def test_lanes_are_as_high_as_the_activations(session):
    subject = session.subject
    lanes = lanes_of(session)
    pixels, span = lane_pixels(subject, 0, 500, lanes)
    assert span == (0, 500)
    height = (pixels.reshape(3, -1, 500, 3).min(axis=3) < 255).sum(axis=1)
    share = np.clip(subject.activations[:500] / subject.ceilings, 0, 1).T
    rows = pixels.shape[0] // 3
    np.testing.assert_array_equal(height, np.round(0.9 * rows * share))
    blank, _ = lane_pixels(subject, 0, 500, [Lane([], "#000000")])
    assert (blank == 255).all()


def test_features_run_upwards_where_they_are_values(model, X):
    from motifold.io import Recording

    downwards = Subject.of(model, X)
    assert placed(downwards, None).tolist() == list(range(30))[::-1]
    axis = np.linspace(0, 8000, 30)
    upwards = Subject.of(model, Recording(X, "X", 50.0, feature_axis=axis))
    assert placed(upwards, None).tolist() == list(range(30))
    assert upwards.has_own_order


def test_frequencies_are_written_where_they_are():
    """Of a sound, too, which other pictures draw by octaves; and at round values."""
    pytest.importorskip("holoviews")
    from motifold.explorer.charts import Charts
    from motifold.io import Recording

    X = np.random.default_rng(0).random((400, 129))
    fit = CNMF(1, 4, max_iter=2, tol=0, random_state=0).fit(X)
    axis = np.linspace(0, 4000, 129)
    recording = Recording(X, "/tmp/a.mat", 50.0, feature_axis=axis, options={"key": "SONG"})
    subject = Subject.of(fit, recording)
    assert subject.name == "a.mat (SONG)"
    ticks = Charts(Session(subject)).feature_ticks()
    assert [text for _, text in ticks] == ["0", "1000", "2000", "3000", "4000"]
    np.testing.assert_allclose([place for place, _ in ticks], [0.5, 32.5, 64.5, 96.5, 128.5])


def test_shades():
    pixels = shaded(np.array([[0.0, 2.0], [np.nan, 1.0]]), "#ff0000", 2.0)
    assert pixels[1, 0].tolist() == [255, 255, 255]
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[1, 1].tolist() == [199, 199, 199]
    assert rgb("#336699").tolist() == pytest.approx([0.2, 0.4, 0.6])


# --- marks ----------------------------------------------------------------------------------


def test_every_event_in_view_has_its_mark(session):
    session.judge(session.occurrences(1).event(0), "accepted")
    marks = marks_in(session, 500, 2000)
    for k in range(3):
        bins = session.occurrences(k).bins
        inside = np.flatnonzero((bins >= 500) & (bins < 2000))
        np.testing.assert_array_equal(marks.number[marks.motif == k], inside)
        places = marks.x[marks.motif == k]
        np.testing.assert_allclose(places, (bins[inside] + 0.5) / 50.0)
        assert set(np.floor(marks.y[marks.motif == k])) == {2 - k}
    assert marks_in(session, 0, 3000).verdict.count("accepted") == 1


def test_a_crowd_of_marks_is_thinned_to_the_strongest(session, monkeypatch):
    monkeypatch.setattr("motifold.explorer.marks._MAX_COLUMNS", 5)
    marks = marks_in(session, 0, 3000)
    strengths = session.occurrences(0).strengths
    chosen = marks.number[marks.motif == 0]
    assert len(chosen) <= 5
    assert strengths.argmax() in chosen


def test_a_click_finds_the_event_of_its_lane(session):
    marks = marks_in(session, 0, 3000)
    lanes = 3
    for i in (0, len(marks) // 2, len(marks) - 1):
        lane = np.floor(marks.y[i])
        found = clicked(marks, marks.x[i] + 0.01, lane + 0.1, 60.0, lanes)
        assert found == (marks.motif[i], marks.number[i])
    assert clicked(marks, 1e6, 0.5, 60.0, lanes) is None
    assert clicked(marks, marks.x[0], 7.0, 60.0, lanes) is None
    assert clicked(marks_in(session, 0, 1), 0.0, 0.5, 60.0, lanes) is None


# --- snippets -------------------------------------------------------------------------------


def test_a_snippet_is_the_recording_there(session, X):
    found = session.occurrences(0)
    i = int(np.argmax((found.bins > 20) & (found.bins < 2900)))
    t = int(found.bins[i])
    here = snippet(session, 0, i)
    a, b = here.lags
    np.testing.assert_array_equal(here.here, X[t + a : t + b])
    np.testing.assert_array_equal(here.motif[-a : -a + 12], session.subject.model.components_[0])
    expected = np.nanmean([window(session.subject, int(t), here.lags) for t in found.bins], axis=0)
    np.testing.assert_allclose(here.mean, expected)
    assert len(here.others) == len(found.bins) - 1
    assert here.aligned.shape == (len(found.bins), b - a)
    assert here.row == i
    assert 0.5 < here.likeness <= 1 + 1e-9


def test_a_rejected_event_is_seen_but_not_in_the_mean(session):
    session.judge(session.occurrences(0).event(1), "rejected")
    here = snippet(session, 0, 1)
    assert here.row is None
    assert len(here.others) == len(session.occurrences(0).bins) - 1


def test_beyond_a_segment_there_is_nothing(model, X):
    subject = Subject.of(model, [X[:1500], X[1500:]])
    there = window(subject, 1495, (-2, 10))
    assert np.isnan(there[7:]).all()
    np.testing.assert_array_equal(there[:7], X[1493:1500])
    assert np.isnan(window(subject, 1500, (-2, 10))[:2]).all()
