"""The recording with its features sorted by motif and lag, and the events on top."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from motifold.data import Segments
from motifold.data.validation import is_list_of_segments
from motifold.findings.decomposition import stacked
from motifold.findings.profiles import FeatureOrder
from motifold.findings.table import Table
from motifold.plots.style import (
    Features,
    check_rate,
    colour,
    prepared_figure,
    scale,
    shades,
)
from motifold.plots.view import View

_NAMED_FEATURES = 40


def plot_raster(
    X: Any,
    order: FeatureOrder,
    *,
    events: Table | None = None,
    rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    feature_names: Any = None,
    figure: Figure | SubFigure | None = None,
    lengths: Any = None,
    starts: Any = None,
) -> Figure:
    """Draw a recording with its features sorted, so that sequences show as diagonals.

    A strip at the left has the colour of each feature's motif; marks on top, in the same colours,
    are the events, hollow where the end of a segment cuts them off. Long recordings are drawn by
    the largest value of neighbouring bins.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
    order : FeatureOrder
        As from ``motifold.sort_features``.
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

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "events", "motifs" and "data".

    Examples
    --------
    >>> from motifold import sort_features
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_raster
    >>> data = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0)
    >>> figure = plot_raster(data.X, sort_features(data.components), rate=10)
    >>> [axes.get_label() for axes in figure.axes]
    ['events', 'motifs', 'data']
    """
    check_rate(rate)
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
    grid = figure.add_gridspec(2, 2, width_ratios=[0.015, 1], height_ratios=[0.1, 1])
    above = figure.add_subplot(grid[0, 1], label="events")
    strip = figure.add_subplot(grid[1, 0], label="motifs")
    axes = figure.add_subplot(grid[1, 1], label="data", sharex=above)
    image = view.pooled(lambda a, b: {"data": data[a:b][:, order.order]})["data"]
    features = Features(order.order, "feature (sorted by motif and lag)")
    features.draw_image(axes, image, view.span, **shades(scale(image)), interpolation="nearest")
    view.label_time(axes)
    axes.tick_params(labelleft=False, left=False)
    _draw_names(axes, order, feature_names)
    _draw_strip(strip, order, features)
    _draw_events(above, events, view)
    return figure


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
        shade = colour(int(k)) if k >= 0 else "white"
        strip.axhspan(row - 0.5, row + 0.5, color=shade, linewidth=0)
    for k in np.unique(motifs[motifs >= 0]):
        centre = np.flatnonzero(motifs == k).mean()
        strip.annotate(
            str(k),
            (0, centre),
            (-4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            color=colour(int(k)),
        )
    strip.set_ylim(features.limits)
    strip.set_ylabel("feature, by motif and lag of peak", labelpad=14)
    strip.set_xticks([])
    strip.set_yticks([])


def _draw_events(above: Axes, events: Table | None, view: View) -> None:
    above.axis("off")
    if events is None or len(events) == 0:
        return
    bins, motifs = events["bin"].astype(float), events["motif"]
    drawn = (view.edges[0] <= bins) & (bins < view.edges[-1])
    shades = [colour(int(k)) for k in motifs[drawn]]
    faces = shades
    if "partial" in events.columns:  # hollow: the end of the segment cuts it off
        cut = events["partial"][drawn].astype(bool)
        faces = ["none" if hollow else shade for hollow, shade in zip(cut, shades, strict=True)]
    places = view.place(bins[drawn]), motifs[drawn]
    above.scatter(*places, facecolors=faces, edgecolors=shades, marker="v", s=16)
    above.set_ylim(events["motif"].max() + 0.7, -0.7)
