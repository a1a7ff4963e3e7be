"""Motifs as a grid of images, as in the paper's Figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure

from motifold.data.given import takes_recordings
from motifold.findings.decomposition import stacked
from motifold.findings.overlap import checked_motifs
from motifold.plots.ordering import Order, order_of_motifs
from motifold.plots.printed import Style, column_width, in_style
from motifold.plots.style import (
    IMAGE_MAP,
    Features,
    check_rate,
    in_time,
    prepared_figure,
    time_label,
)

_MAX_COLUMNS = 10
_CELL = (1.2, 1.9)  # inches of one motif
_LEAST = 0.6  # inches of its width in a paper


@in_style
@takes_recordings
def plot_motifs(
    components: Any,
    X: Any = None,
    *,
    rate: float | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    titles: Sequence[str] | None = None,
    shared_scale: bool = False,
    figure: Figure | SubFigure | None = None,
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    """Draw motifs as a grid of images, lag to the right and features upwards or downwards.

    A row holds up to ten motifs; up to about forty can be read on one page. No pyplot figure is
    made and nothing is shown.

    Parameters
    ----------
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or its motifs.
    X : array-like or sparse matrix of shape (n_samples, n_features), list, Recording, or None
        The recording, by which it is judged whether features have an order of their own; None
        judges by the motifs.
    rate : float or None
        Time bins per second; given, lags are in seconds, else in bins.
    feature_axis : array-like of shape (n_features,) or None
        A number for each feature that rises (or falls) all along, such as its frequency in Hz;
        greater is drawn higher; the frequencies of a sound (evenly spaced from zero to 1000 Hz or
        more) are drawn by octaves. None numbers the features, from the top.
    feature_label : str or None
        What the features are; None means "frequency (Hz)" with ``feature_axis``, else "feature".
    titles : sequence of str or None
        One for each motif; None means "motif 0", "motif 1", …
    shared_scale : bool, default=False
        One colour scale for all, with a colour bar. Else every motif has its own, from zero
        (blank) to its maximum (darkest).
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    order : {"auto", "sorted", "own"}, FeatureOrder or sequence of int, default="auto"
        In which order features are drawn. "sorted": by the motif that gives them most power, then
        by the lag of its peak, so that sequences show as diagonals (any motifs look like sequences
        so: it is no test). "own": as they are. "auto" sorts unless features have an order of their
        own: there is a ``feature_axis``, or neighbours are strongly correlated (median at least
        0.5, and 0.2 above that of random pairs), as in a spectrogram; then the first is at the
        bottom. Or an order, from ``motifold.sort_features`` or as positions.
    style : {"paper", "paper-2"} or None
        As wide as one column of print, or two, in type that can be read there; see ``paper``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; its axes are labelled (``get_label``) "motif 0", …, and "colorbar" where there
        is one.

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_motifs
    >>> sequences = make_sequences(300, 20, 3, 8, random_state=0)
    >>> figure = plot_motifs(sequences.components, rate=100)
    >>> [axes.get_label() for axes in figure.axes], figure.axes[0].get_xlabel()
    (['motif 0', 'motif 1', 'motif 2'], 'lag (s)')
    """
    check_rate(rate)
    motifs = checked_motifs(components, nonnegative=False)
    names = getattr(components, "feature_names_in_", None)
    features = Features.from_options(motifs.shape[2], feature_axis, feature_label, names)
    rows = None if X is None else stacked(X)
    features = order_of_motifs(features, order, components, motifs, rows)
    return draw_motifs(motifs, features, rate, titles, shared_scale, figure)


def draw_motifs(
    motifs: npt.NDArray[Any],
    features: Features,
    rate: float | None = None,
    titles: Sequence[str] | None = None,
    shared_scale: bool = False,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """The picture of ``plot_motifs``, of motifs (K, L, N) on a given axis of features."""
    K, L, _ = motifs.shape
    if titles is None:
        titles = [f"motif {k}" for k in range(K)]
    if len(titles) != K:
        raise ValueError(f"titles must name each of the {K} motifs; there are {len(titles)}.")
    n_rows, n_columns = grid_of(K)
    size = (1.2 + _CELL[0] * max(n_columns, 4), 0.6 + _CELL[1] * max(n_rows, 1.4))
    figure = prepared_figure(figure, size)
    grid = figure.add_gridspec(n_rows, n_columns)
    largest = [float(motif.max()) for motif in motifs]
    drawn: list[Axes] = []
    for k, (motif, title) in enumerate(zip(motifs, titles, strict=True)):
        row, column = divmod(k, n_columns)
        shared = drawn[0] if drawn else None
        axes = figure.add_subplot(
            grid[row, column], sharex=shared, sharey=shared, label=f"motif {k}"
        )
        norm = Normalize(0, (max(largest) if shared_scale else largest[k]) or 1)
        image = features.draw_image(
            axes, motif, (0, in_time(L, rate)), cmap=IMAGE_MAP, norm=norm, interpolation="nearest"
        )
        axes.set_title(title, fontsize="medium")
        features.draw_labels(axes, shown=column == 0)
        draw_lags(axes, L, rate, shown=k + n_columns >= K)  # none below
        drawn.append(axes)
    if shared_scale:
        bar = figure.colorbar(image, ax=drawn, label="value")
        bar.ax.set_label("colorbar")
    return figure


def grid_of(K: int) -> tuple[int, int]:
    """Rows and columns in which ``draw_motifs`` lays out so many motifs."""
    width = column_width()
    most = _MAX_COLUMNS if width is None else min(_MAX_COLUMNS, max(1, int((width - 0.5) / _LEAST)))
    n_rows = -(-K // most)
    return n_rows, -(-K // n_rows)


def draw_lags(axes: Axes, L: int, rate: float | None, *, shown: bool, zero: bool = True) -> None:
    """Ticks at the start and the end of the lags only: motifs are narrow."""
    end = in_time(L, rate)
    axes.set_xticks([0, end], labels=["0" if zero else "", f"{end:.3g}"])
    first, last = axes.get_xticklabels()  # inwards, so that neighbours do not collide
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    axes.tick_params(labelbottom=shown)
    if shown:
        axes.set_xlabel(time_label("lag", rate))
