"""What is seen, as files: drawn once more by matplotlib, so that it can be printed."""

from __future__ import annotations

import io

import numpy as np

from motifold.explorer.charts import Charts
from motifold.explorer.picture import lane_pixels, lanes_of, recording_pixels
from motifold.explorer.subject import Order, Subject
from motifold.plots.explored import Panel, draw_explored
from motifold.plots.match import plot_match

_DPI = 150


def figure_file(charts: Charts, ending: str, title: str) -> bytes:
    """The view as a picture, "png" or "svg"."""
    figure = draw_explored(
        _panels(charts),
        charts.range.x_range,
        charts.session.subject.clock.ticks(*charts.range.x_range),
        charts.time_label,
        title,
    )
    file = io.BytesIO()
    figure.savefig(file, format=ending, dpi=_DPI)
    return file.getvalue()


def _panels(charts: Charts) -> list[Panel]:
    session, view = charts.session, charts.view
    subject, position = session.subject, session.subject.clock.position
    pixels, (a, b) = recording_pixels(session, view, charts.show, charts.order)
    extent = (position(a), position(b), float(view.bottom), float(view.top))
    panels = [Panel(pixels, extent, subject.features.label, charts.feature_ticks())]
    lanes, marks = lanes_of(session), charts.marks
    n = max(1, len(lanes))
    pixels, (a, b) = lane_pixels(subject, view.a, view.b, lanes)
    inks = [session.colour(int(k)) for k in marks.motif]
    panels.append(
        Panel(
            pixels,
            (position(a), position(b), 0.0, float(n)),
            "",
            charts.lane_ticks("activations"),
            list(zip(marks.x.tolist(), marks.y.tolist(), inks, marks.verdict, strict=True)),
            charts.level_heights(),
        )
    )
    if charts.other is not None:
        pixels, (a, b) = lane_pixels(charts.other, view.a, view.b, charts.other_lanes)
        extent = (position(a), position(b), 0.0, float(n))
        panels.append(Panel(pixels, extent, "", charts.lane_ticks("other")))
    return panels


def pairs_file(one: Subject, other: Subject, order: Order | None) -> bytes:
    """The motifs of two fits in pairs, as a PNG."""
    first, second = (np.asarray(subject.model.components_) for subject in (one, other))
    L = max(first.shape[1], second.shape[1])
    padded = [np.pad(W, ((0, 0), (0, L - W.shape[1]), (0, 0))) for W in (first, second)]
    figure = plot_match(
        *padded,
        rate=one.clock.rate,
        feature_axis=None if order is not None else one.features.axis,
        feature_label=one.features.label,
        order="own" if order is None else order,
    )
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI)
    return file.getvalue()
