"""The classic factor figure: motifs at the left, activations on top, the data and its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec
from matplotlib.image import AxesImage

from motifold.data.given import takes_recordings
from motifold.estimator import CNMF
from motifold.findings.decomposition import Decomposition
from motifold.plots.decimate import envelope
from motifold.plots.motifs import draw_lags
from motifold.plots.ordering import Order, order_of_fit
from motifold.plots.printed import Style, column_width, in_style
from motifold.plots.style import (
    Features,
    check_rate,
    colour,
    draw_colorbar,
    in_time,
    mark_segments,
    mark_unknown,
    motif_map,
    prepared_figure,
    scale,
    shades,
)
from motifold.plots.view import Images, View

_WIDTH = 12.8  # inches of the figure
_HEIGHTS = {1: 5.8, 2: 8.2}  # by the number of images in the middle
_MANY_COLUMNS = 5  # from so many on, motifs are too narrow for all their labels
_MANY_LANES = 20
_MIDDLE = 8  # motifs' widths that the recording has


@dataclass(frozen=True)
class _Panels:
    """What is drawn of one stretch of time."""

    motifs: npt.NDArray[Any]  # (K, L, N)
    times: npt.NDArray[Any]  # (points,) of the activations, in bins from the view's start
    activations: npt.NDArray[Any]  # (points, K), as shares of what fills a lane
    recordings: Images  # "data" and "reconstruction"
    view: View
    breaks: npt.NDArray[Any]  # bins at which a new segment starts
    unknown: npt.NDArray[np.bool_]  # (bins, K): activations that rest on little
    features: Features


@in_style
@takes_recordings
def plot_factors(
    model: CNMF,
    X: Any = None,
    *,
    activations: Any = None,
    lengths: Any = None,
    mask: Any = None,
    figure: Figure | SubFigure | None = None,
    rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    sort_features: bool | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    show: Literal["both", "data", "reconstruction"] = "both",
    starts: Any = None,
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    """Draw the factors of a fitted model beside the data they explain.

    Motifs are at the left, each in a colour of its own and on its own scale; on top, in the same
    colours, are the activations; then the data and, on the same scale, the reconstruction. All
    images share the axis of the features. Lanes of activations share a scale, set by the motifs
    that no segment's end cuts off and no missing entries hide; what exceeds it is drawn at the
    lane's top. Lanes are grey where a motif is hidden or cut off, so that its activation rests on
    little and is no event. Long recordings are drawn by the extremes of some two thousand stretches
    of time, so that no event gets lost.

    No pyplot figure is made and nothing is shown: save the figure by ``savefig``, or give
    ``figure=plt.figure()``.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features), list, Recording, or None
        The recording; None leaves the data out. NaN, a missing entry, is drawn grey.
    activations : array-like of shape (n_samples, n_components), list of such arrays, or None
        Those of X. None means those of the training data; for another recording give
        ``model.transform(X)``.
    lengths : sequence of int or None
        Rows of each segment of ``activations``; None means those of the fit, or one segment where
        ``activations`` is one array. Dotted lines mark where a segment starts.
    mask : array-like of bool, of shape (n_samples, n_features), or None
        True where the recording was observed; what was not is drawn grey. NaN in X says the same,
        and of the training data the model knows it.
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    rate : float or None
        Time bins per second; given, axes are in seconds, else in bins.
    time_range : (float, float) or None
        Start and end of the stretch to draw, in the units of the time axis; None draws all.
    sort_features : bool or None
        As it was before there was ``order``: True is "sorted", False "own", None what ``order``
        says.
    feature_axis : array-like of shape (n_features,) or None
        A number for each feature that rises (or falls) all along, such as its frequency in Hz;
        greater is drawn higher.
    feature_label : str or None
        What the features are; None means "frequency (Hz)" with ``feature_axis``, else "feature".
    show : {"both", "data", "reconstruction"}, default="both"
        What to draw in the middle; without X "both" is the reconstruction alone.
    starts : sequence of float or None
        Seconds at which each segment begins, as ``Recording.starts``: time is in that clock.
        Several segments are drawn side by side, and the ticks tell their times; where their clocks
        overlap (each begins at 0, say), time counts through them all. None counts from 0.
    order : {"auto", "sorted", "own"}, FeatureOrder or sequence of int, default="auto"
        In which order features are drawn, as in ``plot_motifs``.
    style : {"paper", "paper-2"} or None
        As wide as one column of print, or two, in type that can be read there; see ``paper``.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "motif 0", …, "activations", "data",
        "reconstruction" and "colorbar".

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_factors
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> figure = plot_factors(model, X, rate=100, time_range=(0.5, 2))
    >>> [axes.get_label() for axes in figure.axes]
    ['motif 0', 'motif 1', 'activations', 'data', 'reconstruction', 'colorbar']
    """
    check_rate(rate)
    fit = Decomposition.of(model, X, activations, lengths, mask)
    view = View.from_range(time_range, rate, fit.segments.lengths, starts)
    names = getattr(model, "feature_names_in_", None)
    features = Features.from_options(fit.shape[1], feature_axis, feature_label, names)
    if sort_features is not None:
        order = "sorted" if sort_features else "own"
    features = order_of_fit(features, order, fit)
    return draw_factors(fit, features, view, show=show, figure=figure)


def draw_factors(
    fit: Decomposition,
    features: Features,
    view: View,
    *,
    show: str = "both",
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """The picture of ``plot_factors``, of a recording that is taken apart already."""
    times, H = envelope(fit.H[view.start : view.stop])
    panels = _Panels(
        motifs=fit.model.components_,
        times=times,
        activations=H / fit.ceiling(view.start, view.stop),
        recordings=_recordings(fit, view, show),
        view=view,
        breaks=fit.segments.breaks(view.start, view.stop),
        unknown=fit.unknown(view.start, view.stop),
        features=features,
    )
    size = (_WIDTH, _HEIGHTS[len(panels.recordings)])
    return _draw(panels, prepared_figure(figure, size))


def _recordings(fit: Decomposition, view: View, show: str) -> Images:
    """The images in the middle."""
    if show not in ("both", "data", "reconstruction"):
        raise ValueError(f'show must be "both", "data" or "reconstruction", not {show!r}.')
    if fit.X is None and show == "data":
        raise ValueError('show="data" must have the data: give X.')

    def rows(a: int, b: int) -> Images:
        data = {} if fit.X is None or show == "reconstruction" else {"data": fit.X[a:b]}
        return data if show == "data" else data | {"reconstruction": fit.rows(a, b)}

    return view.pooled(rows)


# --- drawing --------------------------------------------------------------------------------


def _draw(panels: _Panels, figure: Figure) -> Figure:
    K, n_images = len(panels.motifs), len(panels.recordings)
    n_columns = -(-K // n_images)  # motifs wrap onto as many rows as there are images of data
    middle = max(_MIDDLE if column_width() is None else _MIDDLE / 2, 1.5 * n_columns)
    grid = GridSpec(
        1 + n_images,
        n_columns + 2,
        figure=figure,
        width_ratios=[1] * n_columns + [middle, 0.2],
        height_ratios=[min(1.6, 0.2 + 0.08 * K)] + [1] * n_images,
    )
    motifs = _draw_motifs(figure, grid, panels)
    top = figure.add_subplot(grid[0, n_columns], label="activations")
    _draw_activations(top, panels)
    image = _draw_recordings(figure, grid, panels, top, motifs[0])
    draw_colorbar(figure, image, grid[1:, n_columns + 1])
    return figure


def _draw_motifs(figure: Figure, grid: GridSpec, panels: _Panels) -> list[Axes]:
    """One image per motif, in the columns at the left; only the outer ones bear labels."""
    n_columns = grid.ncols - 2
    is_narrow = n_columns >= _MANY_COLUMNS or (column_width() or _WIDTH) < _WIDTH / 2
    last_row = (len(panels.motifs) - 1) // n_columns
    drawn: list[Axes] = []
    for k, motif in enumerate(panels.motifs):
        row, column = divmod(k, n_columns)
        shared = drawn[0] if drawn else None
        axes = figure.add_subplot(
            grid[1 + row, column], sharex=shared, sharey=shared, label=f"motif {k}"
        )
        drawn.append(axes)
        norm = Normalize(0, motif.max() or 1)
        duration = in_time(len(motif), panels.view.rate)
        panels.features.draw_image(axes, motif, (0, duration), cmap=motif_map(k), norm=norm)
        title = f"{k}" if is_narrow else f"motif {k}"
        axes.set_title(title, color=colour(k), fontweight="bold", fontsize="medium")
        panels.features.draw_labels(axes, shown=column == 0)
        is_labelled = row == last_row and (column == 0 or not is_narrow)
        draw_lags(axes, len(motif), panels.view.rate, shown=is_labelled, zero=not is_narrow)
    return drawn


def _draw_activations(axes: Axes, panels: _Panels) -> None:
    """One lane per motif, the first on top, all on one scale."""
    K = panels.activations.shape[1]
    times = panels.view.place(panels.view.start + panels.times)
    heights = 0.95 * np.minimum(panels.activations, 1)
    floors = np.arange(K)[::-1]
    for k, floor in enumerate(floors):
        mark_unknown(axes, panels.unknown[:, k], panels.view, floor)
        trace = floor + heights[:, k]
        axes.fill_between(times, floor, trace, color=colour(k), linewidth=0, alpha=0.3)
        axes.plot(times, trace, color=colour(k), linewidth=1)
    axes.set_ylim(-0.05, K)
    labelled = range(0, K, -(-K // _MANY_LANES))
    axes.set_yticks(floors[labelled], labels=[str(k) for k in labelled])
    for k, label in zip(labelled, axes.get_yticklabels(), strict=True):
        label.set(color=colour(k), fontweight="bold", verticalalignment="bottom")
    axes.set_ylabel("motif")
    axes.set_title("activations", fontsize="medium")
    axes.tick_params(labelbottom=False)
    axes.spines[["top", "right"]].set_visible(False)
    mark_segments(axes, panels.breaks, panels.view.rate)


def _draw_recordings(
    figure: Figure, grid: GridSpec, panels: _Panels, top: Axes, left: Axes
) -> AxesImage:
    """The data and the reconstruction on one scale, below each other."""
    norm = scale(next(iter(panels.recordings.values())))
    for row, (name, recording) in enumerate(panels.recordings.items(), start=1):
        axes = figure.add_subplot(grid[row, grid.ncols - 2], sharex=top, sharey=left, label=name)
        image = panels.features.draw_image(axes, recording, panels.view.span, **shades(norm))
        axes.set_title(name, fontsize="medium")
        axes.tick_params(labelbottom=row == len(panels.recordings))
        no_motif_beside = row > len(panels.motifs)
        panels.features.draw_labels(axes, shown=no_motif_beside)
        mark_segments(axes, panels.breaks, panels.view.rate)
    panels.view.label_time(axes)
    return image
