"""The page without a browser: its widgets and pictures follow what is said."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest
from browser import missing

import motifold
from motifold.findings.annotations import read_annotations

pytestmark = pytest.mark.slow  # to import panel takes some seconds


@pytest.fixture
def page(session):
    if any(importlib.util.find_spec(name) is None for name in ("panel", "holoviews")):
        missing("panel and holoviews are not installed: pip install '.[explore]'")
    from motifold.explorer.page import Page

    found = Page(session)
    found.layout.get_root()  # draws everything once
    return found


def test_in_a_notebook_it_is_a_panel_object(page, model, X, tmp_path):
    import panel as pn

    assert isinstance(motifold.explore(model, X, rate=50.0), pn.viewable.Viewable)
    model.save(tmp_path / "m.npz")
    shown = motifold.explore(tmp_path / "m.npz", X, rate=50.0, compare=tmp_path / "m.npz")
    assert shown.select(pn.pane.PNG)  # the motifs in pairs


def test_widgets_say_what_is_set(page, session, model):
    page.notes.name.value = "trill"
    page.notes.ink.value = "#112233"
    page.notes.choose(2)
    assert (page.notes.name.value, page.notes.merge.value) == ("", -1)
    page.notes.merge.value = 1
    page.notes.choose(1)
    page.notes.hidden.value = True
    found = read_annotations(session.path, model)
    assert found == session.annotations
    assert (found.motifs[0].name, found.motifs[0].colour) == ("trill", "#112233")
    assert found.motifs[2].merged_into == 1
    assert found.motifs[1].hidden
    assert found.shown == [0]


def test_events_one_by_one(page, session):
    page.closer.after.clicks += 1
    k, i = page.closer.chosen
    first = session.occurrences(k).event(i)
    page.closer.reject.clicks += 1
    assert session.verdicts.rejected == {first}
    assert page.closer.chosen == (k, i)  # it stays in sight
    page.closer.after.clicks += 1
    assert page.closer.chosen == (k, i + 1)
    page.closer.before.clicks += 1
    page.closer.undo.clicks += 1
    assert session.verdicts.of(first) is None


def test_the_view_follows_the_event(page, session):
    page.charts.look_at(0.0, 2.0)
    page.notes.choose(1)
    seen = set()
    for _ in range(5):
        page.closer.after.clicks += 1
        at = session.subject.clock.position(session.occurrences(1).bins[page.closer.chosen[1]])
        left, right = page.charts.range.x_range
        assert left <= at <= right
        assert right - left == pytest.approx(2.0)
        seen.add(page.closer.chosen[1])
    assert len(seen) == 5


def test_a_view_that_was_left_does_not_come_back(page):
    """On a slow machine the browser's word of it may arrive after the click."""
    charts = page.charts
    before = charts.range.x_range
    charts.look_at(0.0, 2.0)
    charts.range.event(x_range=before, y_range=charts.range.y_range)
    assert charts.range.x_range == (0.0, 2.0)
    charts.range.event(x_range=before, y_range=charts.range.y_range)  # somebody goes there
    assert charts.range.x_range == before


def test_wherever_one_moves_from_there_one_stays(page):
    charts = page.charts
    before = charts.range.x_range
    charts.look_at(0.0, 2.0)
    for x_range in ((3.0, 5.0), before):
        charts.range.event(x_range=x_range, y_range=charts.range.y_range)
        assert charts.range.x_range == x_range


def test_an_event_that_is_none_any_more_is_let_go(page, session):
    weakest = int(np.argmin(session.occurrences(0).strengths))
    page.closer.show((0, weakest), None)
    page._choose((0, weakest))
    session.note(0, threshold=1.5)
    assert page.closer.chosen is None
    strongest = int(np.argmax(session.occurrences(0).strengths))
    page._choose((0, strongest))
    session.note(0, threshold=0.1)
    k, i = page.closer.chosen
    assert session.occurrences(k).strengths[i] == session.occurrences(k).strengths.max()


def test_what_cannot_be_saved_is_told(page, session, monkeypatch):
    def full(path, annotations):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("motifold.explorer.session.write_annotations", full)
    page.notes.name.value = "lost"
    assert page.notes.name.value == ""
    assert "Not saved: No space left on device" in page._status.object


def test_what_is_seen_as_files(page, tmp_path):
    page.charts.look_at(10.0, 12.0)
    png = page._export("png").getvalue()
    svg = page._export("svg").getvalue().decode()
    assert png.startswith(b"\x89PNG")
    assert "motif 0" in svg  # the comment beside the outlines of the text
    page.notes.hidden.value = True
    assert "motif 0" not in page._export("svg").getvalue().decode()


def test_all_motifs_may_be_hidden(page, session):
    for k in range(3):
        session.note(k, hidden=True)
    page.layout.get_root()
    page.closer.after.clicks += 1
    assert page.closer.chosen is None
    assert page._export("png").getvalue().startswith(b"\x89PNG")


def test_two_windows_show_the_same(page, session):
    from motifold.explorer.page import Page

    other = Page(session)
    page.notes.name.value = "trill"
    assert other.notes.name.value == "trill"
    other.close()
    page.notes.name.value = "call"
    assert other.notes.name.value == "trill"


def test_a_missing_library_is_told(monkeypatch, model, X):
    import sys

    monkeypatch.setitem(sys.modules, "panel", None)
    with pytest.raises(ImportError, match=r'pip install "motifold\[explore\]"'):
        motifold.explore(model, X)


def test_a_slider_that_moved_on_is_not_put_back(page, session):
    """On a slow machine a slider is already further when what it said before is noted."""
    for slider, attribute, said, ahead in (
        (page.notes.threshold, "threshold", 0.31, 0.32),
        (page.notes.refractory, "refractory", 0.1, 0.2),
    ):
        slider._process_events({"value": ahead, "value_throttled": said})  # as from the browser
        assert getattr(session.annotations.motifs[0], attribute) == said
        assert slider.value == ahead
        slider._process_events({"value_throttled": ahead})
        assert getattr(session.annotations.motifs[0], attribute) == ahead


def test_names_of_features_do_not_lie_over_one_another(page, session):
    names = page.charts.feature_ticks()
    assert len(names) <= 20 < session.subject.fit.shape[1] <= 40
    assert len({text for _, text in names}) == len(names)


def test_what_was_held_out_is_not_another_recording(X):
    split = motifold.hold_out(X, 0.3, gap=11)
    fitted = motifold.CNMF(2, 8, random_state=0, max_iter=5, tol=0)
    fitted.fit(X[split.train], segments=split.train_segments)
    told = "not the recording of the fit"
    assert told in str(motifold.explore(fitted, X).select(is_header)[0].object)
    fitted.held_out_ = split
    shown = str(motifold.explore(fitted, X).select(is_header)[0].object)
    assert told not in shown
    assert "30% of the recording of the fit was held out" in shown


def is_header(pane):
    return "<h1>" in str(getattr(pane, "object", ""))


def test_the_marks_at_the_row_of_an_event_are_explained(page):
    assert not page.closer._legend.visible
    page.closer.after.clicks += 1
    assert page.closer._legend.visible
    assert "black ends" in page.closer._legend.object
    assert re.search(r"motif 0</b>, event \d+ of \d+, at", page.closer._told.object)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_two_fits_have_their_features_in_the_order_of_the_page(model, X, monkeypatch, is_sorted):
    from motifold.explorer import export
    from motifold.explorer.subject import Subject

    drawn = []

    def drawing(*motifs, **options):
        drawn.append(plot_match(*motifs, **options))
        return drawn[-1]

    plot_match = export.plot_match
    monkeypatch.setattr(export, "plot_match", drawing)
    subject = Subject.of(model, X, 50.0)
    order = np.random.default_rng(0).permutation(30) if is_sorted else None
    export.pairs_file(subject, subject, order)
    first = drawn[0].axes[0]
    assert first.get_ylabel() == ("feature (sorted)" if is_sorted else "feature")
    shown = model.components_[0].T if order is None else model.components_[0].T[order]
    image = first.images[0].get_array()
    assert any(np.allclose(way, shown) for way in (image, image[::-1]))
