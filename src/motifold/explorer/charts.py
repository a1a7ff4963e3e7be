"""The pictures of the page, by HoloViews, made anew when the view or a note changes."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
from bokeh.models import FixedTicker, PanTool, WheelZoomTool

from motifold.explorer.marks import Marks, clicked, marks_in
from motifold.explorer.picture import (
    LANE,
    Lane,
    Show,
    View,
    lane_pixels,
    lanes_of,
    placed,
    recording_pixels,
)
from motifold.explorer.session import Session
from motifold.explorer.subject import Order, Subject
from motifold.findings.decomposition import Decomposition
from motifold.plots.style import round_ticks

hv.extension("bokeh", logo=False)

_FIRST_VIEW = 60  # motifs, end to end, that the first view holds at least
_NAMED = 40  # features in view, up to which they have their names at the axis
_NAMES = 20  # at most, or they would lie over one another
_LANE_PIXELS, _LANES_LEAST, _LANES_MOST = 56, 170, 620
_LATE = 2000  # milliseconds in which a busy browser may still tell of a view that was left
_TOOLS = ["xpan", "xwheel_zoom", "box_zoom", "reset"]
_FONT = {"labels": "9pt", "ticks": "8.5pt", "title": "10pt"}

Range = tuple[float, float]
Tick = hv.streams.Stream.define("Tick", count=0)


class Charts:
    """The recording above, activations with their events beneath, linked in time.

    Parameters
    ----------
    session : what is shown
    other : the same recording taken apart by another model, if there is one, and how its motifs
        answer to the session's: the number of each, or −1
    """

    def __init__(self, session: Session, other: Subject | None = None, matched: Any = None) -> None:
        self.session = session
        self.other, self.matched = other, matched
        self.show: Show = "data and motifs"
        self.is_sorted = not session.subject.has_own_order
        self.selected: tuple[int, int] | None = None  # motif and number of the event
        self.marks: Marks = marks_in(session, 0, 1)
        self._figures: dict[str, Any] = {}
        self._left: tuple[Range, Range] | None = None  # the view that was left, and for which
        start = self._first_view()
        N = session.subject.fit.shape[1]
        self.range = hv.streams.RangeXY(x_range=start, y_range=(0.0, float(N)))
        self.range.add_subscriber(self._told)
        self._tick = Tick()
        self.panels = self._built(start, N)
        self.tap = hv.streams.Tap(source=self._lanes)

    # --- what is in view --------------------------------------------------------------------

    @property
    def view(self) -> View:
        """What is looked at."""
        return View.of(self.session.subject, self.range.x_range, self.range.y_range)

    @property
    def order(self) -> Order | None:
        """Of the features."""
        return self.session.subject.sorted_order if self.is_sorted else None

    def refresh(self) -> None:
        """Draw everything anew."""
        self._tick.event(count=self._tick.count + 1)

    def look_at(self, left: float, right: float) -> None:
        """Move the view to a stretch of the axis of time, as much of it as there is."""
        end = self.session.subject.clock.end
        width = min(right - left, end)
        left = min(max(0.0, left), end - width)
        self._left = moved = self.range.x_range, (left, left + width)
        self._move(left, left + width)
        if self._document is not None:
            self._document.add_timeout_callback(lambda: self._settled(moved), _LATE)

    @property
    def _document(self) -> Any:
        """The page's; None before it is shown."""
        return next((figure.document for figure in self._figures.values()), None)

    def _settled(self, moved: tuple[Range, Range]) -> None:
        if self._left is moved:
            self._left = None

    def _move(self, left: float, right: float) -> None:
        for figure in self._figures.values():
            figure.x_range.update(start=left, end=right)
        self.range.event(x_range=(left, right), y_range=self.range.y_range)

    def _told(self, x_range: Range | None = None, **_: Any) -> None:
        """A browser that was busy tells late of the view that was left: once, it is not obeyed."""
        if self._left is None or x_range is None:
            return
        before, now = self._left
        if tuple(x_range) == before != now:
            self._left = None
            if self._document is None:
                self._move(*now)
            else:  # not from within what is being told
                self._document.add_next_tick_callback(lambda: self._move(*now))
        elif tuple(x_range) != now:  # somebody moved on
            self._left = None

    def at(self, x: float, y: float) -> tuple[int, int] | None:
        """The event that a click on the activations is meant for."""
        left, right = self.range.x_range
        shown = self.session.annotations.shown
        return clicked(self.marks, x, y, right - left, len(shown))

    def _first_view(self) -> tuple[float, float]:
        subject = self.session.subject
        T, n_bins = len(subject.fit.H), _FIRST_VIEW * subject.model.components_.shape[1]
        # Without X: the activations that count are known already, and X may be long.
        counted = Decomposition(subject.model, subject.activations, subject.fit.segments)
        a, b = (0, T) if n_bins >= T else counted.busiest(n_bins)
        return subject.clock.position(a), subject.clock.position(b)

    # --- the elements -----------------------------------------------------------------------

    def _built(self, start: tuple[float, float], N: int) -> list[Any]:
        streams = [self.range, self._tick]
        recording = hv.DynamicMap(self._recording, streams=streams)
        self.range.source = recording
        box = hv.DynamicMap(self._box, streams=streams)
        self._lanes = hv.DynamicMap(self._activations, streams=streams)
        levels = hv.DynamicMap(self._levels, streams=streams)
        points = hv.DynamicMap(self._points, streams=streams)
        common = {"responsive": True, "default_tools": [], "tools": _TOOLS, "fontsize": _FONT}
        common |= {"active_tools": ["xpan", "xwheel_zoom"], "xlim": start, "framewise": False}
        common |= {"show_legend": False}
        label = self.session.subject.features.label
        above = (recording * box).opts(
            hv.opts.RGB(hooks=[self._axes_of("recording")]),
            hv.opts.Overlay(
                height=340, ylim=(0, N), ylabel=label, xlabel="", toolbar="right", **common
            ),
        )
        n = len(self.session.annotations.motifs)
        height = min(max(_LANES_LEAST, 50 + _LANE_PIXELS * n), _LANES_MOST)
        below = (self._lanes * levels * points).opts(
            hv.opts.RGB(hooks=[self._axes_of("activations")]),
            hv.opts.Overlay(
                height=height, ylabel="", xlabel=self.time_label, toolbar=None, **common
            ),
        )
        panels = [above, below]
        if self.other is not None:
            others = hv.DynamicMap(self._other_activations, streams=streams)
            panels.append(
                others.opts(
                    hv.opts.RGB(
                        hooks=[self._axes_of("other")],
                        height=height,
                        ylabel="",
                        xlabel=self.time_label,
                        toolbar=None,
                        **common,
                    )
                )
            )
        return panels

    @property
    def time_label(self) -> str:
        """What the axis of time is."""
        return f"time ({self.session.subject.clock.scale})"

    def _recording(self, x_range: Any, y_range: Any, count: int) -> Any:
        view = self.view
        pixels, (a, b) = recording_pixels(self.session, view, self.show, self.order)
        return self._rgb(pixels, a, b, view.bottom, view.top, "feature")

    def _activations(self, x_range: Any, y_range: Any, count: int) -> Any:
        view, lanes = self.view, lanes_of(self.session)
        pixels, (a, b) = lane_pixels(self.session.subject, view.a, view.b, lanes)
        return self._rgb(pixels, a, b, 0, max(1, len(lanes)), "motif")

    def _other_activations(self, x_range: Any, y_range: Any, count: int) -> Any:
        assert self.other is not None
        view = self.view
        lanes = self.other_lanes
        pixels, (a, b) = lane_pixels(self.other, view.a, view.b, lanes)
        return self._rgb(pixels, a, b, 0, max(1, len(lanes)), "other")

    @property
    def other_lanes(self) -> list[Lane]:
        """The activations of the other fit, beneath those that they answer to."""
        lanes = []
        for k in self.session.annotations.shown:
            members = [int(self.matched[j]) for j in self.session.annotations.members(k)]
            lanes.append(Lane([j for j in members if j >= 0], self.session.colour(k)))
        return lanes

    def _rgb(self, pixels: Any, a: int, b: int, bottom: float, top: float, name: str) -> Any:
        position = self.session.subject.clock.position
        bounds = (position(a), float(bottom), position(b), float(top))
        return hv.RGB(np.ascontiguousarray(pixels), bounds=bounds, kdims=["time", name])

    def level_heights(self) -> list[float]:
        """Where the threshold of each motif is, in its lane."""
        shown = self.session.annotations.shown
        ceilings = self.session.subject.ceilings
        shares = [self.session.level(k) / ceilings[k] for k in shown]
        return [len(shown) - 1 - i + LANE * s for i, s in enumerate(shares) if s <= 1]

    def _levels(self, x_range: Any, y_range: Any, count: int) -> Any:
        view, position = self.view, self.session.subject.clock.position
        left, right = position(view.a), position(view.b)
        rows = [(left, height, right, height) for height in self.level_heights()]
        return hv.Segments(rows, kdims=["time", "motif", "x1", "y1"]).opts(
            color="#444444", line_dash="dotted", line_width=1
        )

    def _points(self, x_range: Any, y_range: Any, count: int) -> Any:
        """The events; rejected ones are hollow, accepted ones have a dark rim."""
        view = self.view
        self.marks = marks = marks_in(self.session, view.a, view.b)
        inks = [self.session.colour(k) for k in marks.motif]
        said = np.array(marks.verdict, dtype=object)
        chosen = [pair == self.selected for pair in zip(marks.motif, marks.number, strict=True)]
        rim = np.where(said == "accepted", "#000000", np.array(inks, dtype=object))
        fill = np.where(said == "rejected", "#ffffff", np.array(inks, dtype=object))
        sizes = np.where(chosen, 12, 7)
        vdims = ["rim", "fill", "size"]
        data = (marks.x, marks.y, rim, fill, sizes)
        return hv.Points(data, kdims=["time", "motif"], vdims=vdims).opts(
            line_color="rim", fill_color="fill", size="size", marker="inverted_triangle"
        )

    def _box(self, x_range: Any, y_range: Any, count: int) -> Any:
        """Where the chosen event is, over the recording."""
        rows = []
        if self.selected is not None:
            k, i = self.selected
            t = int(self.session.occurrences(k).bins[i])
            subject = self.session.subject
            end = t + subject.model.components_.shape[1]
            N = subject.fit.shape[1]
            rows = [(subject.clock.position(t), 0, subject.clock.position(end), N)]
        return hv.Rectangles(rows, kdims=["time", "feature", "x1", "y1"]).opts(
            fill_alpha=0.04, fill_color="#000000", line_color="#000000", line_width=1.2
        )

    # --- the axes ---------------------------------------------------------------------------

    def _axes_of(self, name: str) -> Any:
        """What HoloViews calls after each drawing of a picture."""

        def finish(plot: Any, element: Any) -> None:
            self._figures[name] = figure = plot.state
            clock = self.session.subject.clock
            figure.x_range.bounds = (0, clock.end)
            left, right = self.range.x_range
            _write(figure.xaxis[0], clock.ticks(left, right))
            if name == "recording":
                _write(figure.yaxis[0], self.feature_ticks())
            else:
                figure.y_range.update(start=0, end=max(1, len(self.session.annotations.shown)))
                _write(figure.yaxis[0], self.lane_ticks(name))
                figure.ygrid[0].visible = False
            figure.min_border_left, figure.min_border_right = 100, 40
            figure.toolbar.logo = None
            for tool in figure.toolbar.tools:
                if isinstance(tool, (PanTool, WheelZoomTool)):
                    tool.dimensions = "width"  # features are zoomed by a box
            figure.outline_line_color = "#d0d5da"

        return finish

    def feature_ticks(self) -> list[tuple[float, str]]:
        """What is written at the axis of the features."""
        subject, view = self.session.subject, self.view
        features, order = subject.features, placed(subject, self.order)
        if features.axis is not None and not self.is_sorted and len(order) > 1:
            values = features.axis[order]
            return [(p + 0.5, text) for p, text in round_ticks(values, view.bottom, view.top - 1)]
        n = view.top - view.bottom
        step = -(-n // _NAMES) if n <= _NAMED else -(-n // 10)
        if n > _NAMED and not self.is_sorted:
            step = int(10 ** np.ceil(np.log10(step)))
            step = step // 2 if n / step < 5 else step
            at = [p for p in range(view.bottom, view.top) if order[p] % step == 0]
        else:
            at = list(range(view.bottom, view.top, step))
        if n > _NAMED and self.is_sorted:
            return []  # numbers of neighbours that are none say nothing
        names = features.each[order[at]]
        return [(p + 0.5, _short(name)) for p, name in zip(at, names, strict=True)]

    def lane_ticks(self, name: str) -> list[tuple[float, str]]:
        """What is written beside the lanes."""
        shown, notes = self.session.annotations.shown, self.session.annotations
        titles = [_short(notes.title(k)) for k in shown]
        if name == "other":
            partners = [lane.members for lane in self.other_lanes]
            titles = [", ".join(f"other {j}" for j in members) or "none" for members in partners]
        return [(len(shown) - 1 - i + 0.4, title) for i, title in enumerate(titles)]


def _write(axis: Any, ticks: list[tuple[float, str]]) -> None:
    axis.ticker = FixedTicker(ticks=[place for place, _ in ticks])
    axis.major_label_overrides = dict(ticks)


def _short(name: Any, at_most: int = 16) -> str:
    text = f"{name:.6g}" if isinstance(name, float) else str(name)
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
