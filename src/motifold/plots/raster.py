"""The recording with its features sorted by motif and lag, and the events on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from motifold.data import Segments
from motifold.data.given import takes_recordings
from motifold.data.validation import is_list_of_segments
from motifold.findings.decomposition import stacked
from motifold.findings.profiles import FeatureOrder, sort_features
from motifold.findings.table import Table
from motifold.plots.printed import Style, in_style, points
from motifold.plots.style import (
    Features,
    check_rate,
    colour,
    draw_colorbar,
    inches_of,
    mark_segments,
    prepared_figure,
    scale,
    shades,
)
from motifold.plots.view import View

_NAMED_FEATURES = 40
_LINE = 12  # points of a motif's name, from line to line
_NO_MOTIF = "0.85"  # the grey of features that are in none


@in_style
@takes_recordings
def plot_raster(
    model: Any = None,
    X: Any = None,
    *,
    order: FeatureOrder | None = None,
    events: Table | None = None,
    rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    feature_names: Any = None,
    figure: Figure | SubFigure | None = None,
    lengths: Any = None,
    starts: Any = None,
    style: Style | None = None,
) -> Figure:
    """Draw a recording with its features sorted, so that sequences show as diagonals.

    A strip at the left has the colour of each feature's motif, grey for those in none, and its
    number where there is room; marks on top, in the same colours, are the events, hollow where the
    end of a segment cuts them off. Long recordings are drawn by the largest value of neighbouring
    bins. ``plot_raster(X, order)``, the order of 0.1, is understood as well.

    Parameters
    ----------
    model : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or motifs, by which the features are sorted.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        The recording.
    order : FeatureOrder or None
        As from ``motifold.sort_features``, in place of a model.
    events : Table or None
        As from ``motifold.find_events``.
    rate : float or None
        Time bins per second; given, time is in seconds, else in bins.
    time_range : (float, float) or None
        The stretch to draw, in the units of the time axis; None draws all.
    feature_names : sequence of length n_features or None
        Names of the features, in their own order: at the right, where they fit (up to 40).
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    lengths : sequence of int or None
        Rows of each segment of X; None means one, or those of a list.
    starts : sequence of float or None
        Seconds at which each segment begins, as ``Recording.starts``: time is in that clock.
        Several segments are drawn side by side, and the ticks tell their times; where their clocks
        overlap (each begins at 0, say), time counts through them all. None counts from 0.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "events" (where there are any), "motifs", "data" and
        "colorbar".

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_raster
    >>> data = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0)
    >>> figure = plot_raster(data.components, data.X, rate=10)
    >>> [axes.get_label() for axes in figure.axes]
    ['motifs', 'data', 'colorbar']
    """
    check_rate(rate)
    order, X = _told_apart(model, X, order)
    data = stacked(X)
    if data.ndim != 2 or data.shape[1] != len(order.order):
        raise ValueError(
            f"X must have the {len(order.order)} features (columns) that were sorted; its shape is "
            f"{data.shape}."
        )
    if lengths is None and is_list_of_segments(X):
        lengths = [part.shape[0] for part in X]
    segments = Segments.of(len(data), lengths)
    view = View.from_range(time_range, rate, segments.lengths, starts)
    figure = prepared_figure(figure, (11.0, 5.0))
    has_events = events is not None and len(events) > 0
    heights = [0.1, 1] if has_events else [1]
    grid = figure.add_gridspec(
        len(heights), 3, width_ratios=[0.015, 1, 0.015], height_ratios=heights
    )
    above = figure.add_subplot(grid[0, 1], label="events") if has_events else None
    strip = figure.add_subplot(grid[-1, 0], label="motifs")
    axes = figure.add_subplot(grid[-1, 1], label="data", sharex=above)
    image = view.pooled(lambda a, b: {"data": data[a:b][:, order.order]})["data"]
    features = Features(order.order, "feature (sorted by motif and lag)")
    drawn = features.draw_image(
        axes, image, view.span, **shades(scale(image)), interpolation="nearest"
    )
    view.label_time(axes)
    axes.tick_params(labelleft=False, left=False)
    mark_segments(axes, segments.breaks(view.start, view.stop), rate)
    _draw_names(axes, order, feature_names)
    _draw_strip(strip, order, features)
    if above is not None:
        _draw_events(above, events, view)
    draw_colorbar(figure, drawn, grid[-1, 2])
    return figure


def _told_apart(model: Any, X: Any, order: Any) -> tuple[FeatureOrder, Any]:
    """The order of the features, and the recording, in whichever order they were given."""
    if isinstance(X, FeatureOrder) and order is None:
        model, X, order = None, model, X
    elif X is None and isinstance(order, FeatureOrder):
        model, X = None, model
    if X is None or (model is None and order is None):
        raise TypeError(
            "plot_raster must have a fitted model and the recording, plot_raster(model, X), or a "
            "recording and the order of its features, plot_raster(X, sort_features(motifs))."
        )
    return sort_features(model) if order is None else order, X


def _draw_names(axes: Axes, order: FeatureOrder, names: Any) -> None:
    """Ticks at the right with the names of the features, if they are not too many to read."""
    if names is None:
        return
    N = len(order.order)
    if len(names) != N:
        raise ValueError(f"feature_names must name each of the {N} features, not {len(names)}.")
    if N > _NAMED_FEATURES:
        return
    labels = [str(names[n]) for n in order.order]
    axes.set_yticks(range(N), labels=labels, parse_math=False)
    axes.tick_params(axis="y", right=True, labelright=True, labelsize="x-small")


def _draw_strip(strip: Axes, order: FeatureOrder, features: Features) -> None:
    """A bar for each run of features of the same motif."""
    motifs = order.motif[order.order]
    for row, k in enumerate(motifs):
        shade = colour(int(k)) if k >= 0 else _NO_MOTIF
        strip.axhspan(row - 0.5, row + 0.5, color=shade, linewidth=0)
    for k, centre in _with_room(motifs, strip):
        strip.annotate(
            str(k) if k >= 0 else "none",
            (0, centre),
            (-4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            color=colour(int(k)) if k >= 0 else "0.4",
        )
    strip.set_ylim(features.limits)
    letters = max(len(str(k)) if k >= 0 else len("none") for k in motifs)
    strip.set_ylabel("feature, by motif and lag of its peak", labelpad=points(8 + 6 * letters))
    strip.set_xticks([])
    strip.set_yticks([])


def _with_room(motifs: npt.NDArray[np.intp], strip: Axes) -> list[tuple[int, float]]:
    """Motifs, and the middle of their runs, whose names do not collide: larger ones first."""
    line = points(_LINE) / 72 / (inches_of(strip)[1] / len(motifs))  # in rows
    found: list[tuple[int, float]] = []
    values, counts = np.unique(motifs, return_counts=True)
    for k in values[np.argsort(-counts, kind="stable")].tolist():
        centre = float(np.flatnonzero(motifs == k).mean())
        if all(abs(centre - other) >= line for _, other in found):
            found.append((k, centre))
    return found


def _draw_events(above: Axes, events: Any, view: View) -> None:
    above.axis("off")
    above.set_title("events", fontsize="medium")
    bins, motifs = events["bin"].astype(float), events["motif"]
    drawn = (view.edges[0] <= bins) & (bins < view.edges[-1])
    shades = [colour(int(k)) for k in motifs[drawn]]
    faces = shades
    if "partial" in events.columns:  # hollow: the end of the segment cuts it off
        cut = events["partial"][drawn].astype(bool)
        faces = ["none" if hollow else shade for hollow, shade in zip(cut, shades, strict=True)]
    places = view.place(bins[drawn]), motifs[drawn]
    above.scatter(
        *places,
        facecolors=faces,
        edgecolors=shades,
        marker="v",
        s=points(points(16)),
        clip_on=False,
    )
    above.set_ylim(events["motif"].max() + 0.7, -0.7)
