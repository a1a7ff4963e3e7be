"""The page in a real browser, served by the command itself."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from browser import missing

import motifold
from motifold import find_events
from motifold.findings.annotations import annotations_path, read_annotations

RATE = 50.0
WAIT = 60_000  # ms that a loaded machine may take for anything
pytestmark = pytest.mark.slow


@contextlib.contextmanager
def served(folder, *options):
    """The address of the page of ``motifold explore``, until the block ends."""
    if any(importlib.util.find_spec(name) is None for name in ("panel", "holoviews")):
        missing("panel and holoviews are not installed: pip install '.[explore]'")
    command = [sys.executable, "-m", "motifold.cli", "explore", "model.npz", "x.npy"]
    command += ["--rate", str(RATE), "--no-browser", "--json", *options]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("}"):
                break
        assert lines, process.stderr.read()
        try:
            yield json.loads("".join(lines))["url"]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=WAIT / 1000)
            finally:
                process.kill()  # where it ended already this does nothing
    assert process.returncode == 130


@pytest.fixture(scope="module")
def files(tmp_path_factory, model, X):
    """The files of a fit, of another one and of the recording."""
    place = tmp_path_factory.mktemp("explored")
    model.save(place / "model.npz")
    np.save(place / "x.npy", X)
    other = motifold.CNMF(2, 9, random_state=1).fit(X)
    other.save(place / "other.npz")
    return place


@pytest.fixture(scope="module")
def url(files):
    """Of a page that tests look at, but say nothing to."""
    with served(files) as found:
        yield found


@pytest.fixture
def folder(files, tmp_path):
    """A place of its own for a test that says something."""
    for name in ("model.npz", "x.npy"):
        shutil.copy(files / name, tmp_path)
    return tmp_path


@contextlib.contextmanager
def opened(browser, url):
    """A tab with the page, drawn."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(WAIT)
    tab.asked = []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("websocket", lambda socket: tab.asked.append(socket.url))
    tab.goto(url)
    tab.get_by_text("motif 0 ·").wait_for()
    wait_until(tab, lambda: len(tab.evaluate(PICTURES)) >= 2)
    tab.wait_for_load_state("networkidle")
    yield tab
    context.close()


@pytest.fixture
def page(url, browser):
    with opened(browser, url) as tab:
        yield tab


@pytest.fixture
def own_page(folder, browser):
    with served(folder) as found, opened(browser, found) as tab:
        yield tab


def said(folder):
    return read_annotations(
        annotations_path(folder / "model.npz"), motifold.load(folder / "model.npz")
    )


def wait_until(page, condition):
    """Poll from the browser's side: what the page does has no time of its own."""
    for _ in range(WAIT // 100):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"it did not happen; the pictures show {page.evaluate(X_RANGE)}")


MARKS = """() => {
  const models = [...window.Bokeh.documents[0].all_models];
  return models.find((m) => m.glyph && m.glyph.type === "Scatter").data_source.data.time.length;
}"""
X_RANGE = """() => {
  const figures = [...window.Bokeh.documents[0].all_models].filter(
    (m) => m.type === "Figure" && m.x_range.bounds);
  return figures.map((f) => [f.x_range.start, f.x_range.end]);
}"""
PICTURES = """() => {
  const sources = [...window.Bokeh.documents[0].all_models].filter(
    (m) => m.type === "ColumnDataSource" && m.data.image && m.data.dw);
  return sources.map((s) => [s.data.x[0], s.data.dw[0]]);
}"""


def test_it_loads_and_nothing_comes_from_outside(page, url):
    host = re.match(r"http://(127\.0\.0\.1:\d+)/", url)[1]
    token = url.split("/")[3]
    asked = [found for found in page.asked if not found.startswith(("data:", "blob:"))]
    assert len(asked) > 5
    for found in asked:
        assert re.match(rf"(http|ws)://{re.escape(host)}/{token}/", found), found
    assert page.title() == "model.npz on x.npy"
    assert page.get_by_text("3000 bins × 30 features, 3 motifs").is_visible()


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
}


def status(url, path, headers=None):
    """What the server of ``url`` says to a path, be it to a request or to a handshake."""
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=WAIT / 1000)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse().status


def test_without_the_token_there_is_nothing(url):
    token = url.split("/")[3]
    assert len(token) >= 32
    wrong = token.swapcase()
    script, socket = "static/js/bokeh.min.js", "explore/ws"
    assert status(url, f"/{token}/explore") == 200
    assert status(url, f"/{token}/{script}") == 200
    for path in ("", "explore", script, "favicon.ico", f"{wrong}/explore", f"{wrong}/{script}"):
        assert status(url, f"/{path}") == 404, path
    for path in (socket, "ws", f"{wrong}/{socket}"):
        assert status(url, f"/{path}", HANDSHAKE) == 404, path
    # With the token, but from a page of somebody else.
    foreign = {**HANDSHAKE, "Origin": "http://evil.example"}
    assert status(url, f"/{token}/{socket}", foreign) == 403


def test_a_wheel_zooms_both_pictures_and_they_are_drawn_anew(page):
    (left, right), lanes = page.evaluate(X_RANGE)
    assert lanes == [left, right]
    canvases = [page.locator("canvas").nth(i) for i in range(page.locator("canvas").count())]
    boxes = [box for canvas in canvases if (box := canvas.bounding_box())]
    widest = max(boxes, key=lambda box: (box["width"], box["height"]))
    page.mouse.move(widest["x"] + widest["width"] / 2, widest["y"] + widest["height"] / 2)
    page.mouse.wheel(0, -200)

    def drawn_anew():
        (a, b), lanes = page.evaluate(X_RANGE)
        if b - a > 0.9 * (right - left) or lanes != [a, b]:
            return False
        bin_ = 1 / RATE
        pictures = page.evaluate(PICTURES)[:2]
        return all(
            abs(x - a) <= bin_ and abs(x + width - b) <= bin_ + 1e-6 for x, width in pictures
        )

    wait_until(page, drawn_anew)


def test_the_whole_recording_is_one_click_away(page):
    page.get_by_role("button", name="Whole recording").click()
    wait_until(page, lambda: page.evaluate(X_RANGE)[0] == [0, 60])


def test_a_slider_changes_the_marks_and_is_saved(own_page, folder, model):
    page = own_page
    loose = len(find_events(model, rate=RATE).where(motif=0))
    assert page.get_by_text(f"motif 0 · {loose} events").is_visible()
    handle = page.locator(".noUi-handle").first
    handle.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    strict = len(find_events(model, rate=RATE, threshold=0.6).where(motif=0))
    assert strict < loose
    page.get_by_text(f"motif 0 · {strict} events").wait_for()
    page.get_by_role("button", name="Whole recording").click()
    in_all = strict + sum(len(find_events(model, rate=RATE).where(motif=k)) for k in (1, 2))
    wait_until(page, lambda: page.evaluate(MARKS) == in_all)
    wait_until(page, lambda: said(folder) and said(folder).motifs[0].threshold == 0.6)
    with page.expect_download() as saving:
        page.get_by_text("Events as CSV").click()
    text = saving.value.path().read_text()
    assert sum(line.startswith("0,") for line in text.splitlines()) == strict


def test_what_is_done_is_what_is_saved(own_page, folder, model):
    page = own_page
    page.get_by_role("button", name="Next ▶").click()
    page.get_by_text("not judged yet").wait_for()
    page.get_by_role("button", name="Reject").click()
    page.locator(".verdict.rejected").wait_for()
    page.get_by_role("button", name="Next ▶").click()
    page.get_by_text("not judged yet").wait_for()
    page.get_by_role("button", name="Accept").click()
    page.locator(".verdict.accepted").wait_for()
    name = page.get_by_label("Name")
    name.fill("<b>trill</b>")
    name.press("Enter")
    page.get_by_role("button", name="<b>trill</b> (0)").wait_for()
    page.get_by_text("motif 2 ·").click()
    page.get_by_label("Counts as").select_option("1: motif 1")
    page.get_by_text("counts as motif 1").wait_for()
    page.get_by_text("motif 1 ·").click()
    page.locator("input[type=checkbox]").first.click()  # "Hide"
    page.get_by_text("motif 1 · hidden").wait_for()
    found = said(folder)
    assert [note.name for note in found.motifs] == ["<b>trill</b>", "", ""]
    assert [note.merged_into for note in found.motifs] == [None, None, 1]
    assert [note.hidden for note in found.motifs] == [False, True, False]
    (verdicts,) = found.recordings
    bins = find_events(model, rate=RATE).where(motif=0)["bin"].tolist()
    ((_, rejected),), ((_, accepted),) = verdicts.rejected, verdicts.accepted
    assert bins.index(accepted) == bins.index(rejected) + 1


def test_a_click_on_a_mark_shows_its_event(page):
    marks = """() => {
      const doc = window.Bokeh.documents[0];
      const figures = [...doc.all_models].filter((m) => m.type === "Figure" && m.x_range.bounds);
      const figure = figures.find((f) => f.renderers.some(
        (r) => r.glyph && r.glyph.type === "Scatter"));
      const source = figure.renderers.find((r) => r.glyph.type === "Scatter").data_source;
      const view = window.Bokeh.index.find_one_by_id(figure.id);
      const box = view.el.getBoundingClientRect();
      const frame = view.frame ?? view.canvas_view.frame;
      const at = Math.floor(source.data.time.length / 2);
      return [box.left + frame.x_scale.compute(source.data.time[at]),
              box.top + frame.y_scale.compute(source.data.motif[at]), source.data.time[at]];
    }"""
    x, y, time = page.evaluate(marks)
    page.mouse.click(x, y + 3)
    page.get_by_text(f"at {time - 0.5 / RATE:.2f} s").wait_for()


def test_what_is_seen_can_be_kept(page):
    for ending, begins in (("PNG", b"\x89PNG"), ("SVG", b"<?xml")):
        with page.expect_download() as saving:
            page.get_by_text(f"This view as {ending}").click()
        assert saving.value.path().read_bytes().startswith(begins)


def test_two_fits_side_by_side(files, browser):
    with served(files, "--compare", "other.npz") as found:
        tab = browser.new_page(viewport={"width": 1400, "height": 1400})
        tab.set_default_timeout(WAIT)
        tab.goto(found)
        tab.get_by_text("Two fits").wait_for()
        wait_until(tab, lambda: len(tab.evaluate(X_RANGE)) == 3)
        left, right = tab.evaluate(X_RANGE)[0]
        assert tab.evaluate(X_RANGE) == [[left, right]] * 3
        assert tab.locator("img").first.is_visible()
        tab.close()
