"""What each motif contributes: its share, and the part of the data it explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec

from motifold.estimator import CNMF
from motifold.findings.decomposition import Contributions, Decomposition
from motifold.plots.style import (
    Features,
    check_rate,
    colour,
    draw_colorbar,
    mark_segments,
    prepared_figure,
    scale,
    shades,
)
from motifold.plots.view import Images, View

_WIDTH = 11.0  # inches of the figure


def plot_contributions(
    model: CNMF,
    X: Any = None,
    *,
    activations: Any = None,
    lengths: Any = None,
    motifs: Sequence[int] | None = None,
    rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    figure: Figure | SubFigure | None = None,
    starts: Any = None,
) -> Figure:
    """Draw the part of the data that each motif explains, and its share of the power.

    On top is the data, or without it the reconstruction; below, one row for each motif: a bar for
    its share, and, on a colour scale common to the motifs, the part of the reconstruction it
    makes. The share of motif k is Σ(2X·X̂_k − X̂_k²)/ΣX² over the stretch drawn, floored at zero:
    what it explains alone. Motifs that overlap explain less together than their shares add up to.
    Of a model with another loss than squared error, the share is that of X̂ which the motif makes.
    No pyplot figure is made and nothing is shown.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or None
        The recording; None puts the reconstruction in its place. NaN, a missing entry, is drawn
        grey and does not count.
    activations, lengths
        As in ``plot_factors``.
    motifs : sequence of int or None
        Which motifs to draw, as positions in ``components_``; None draws all.
    rate, time_range, feature_axis, feature_label, figure, starts
        As in ``plot_factors``; features are not sorted.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "data" (or "reconstruction") and "colorbar",
        "motif 0", …, "colorbar" and "shares".

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_contributions
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> figure = plot_contributions(model, X, rate=100)
    >>> [axes.get_label() for axes in figure.axes]
    ['data', 'colorbar', 'motif 0', 'motif 1', 'colorbar', 'shares']
    """
    check_rate(rate)
    fit = Decomposition.of(model, X, activations, lengths)
    view = View.from_range(time_range, rate, fit.segments.lengths, starts)
    names = getattr(model, "feature_names_in_", None)
    features = Features.from_options(fit.shape[1], feature_axis, feature_label, names)
    return draw_contributions(fit, features, view, _chosen(motifs, fit.H.shape[1]), figure)


def draw_contributions(
    fit: Decomposition,
    features: Features,
    view: View,
    motifs: list[int],
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """The picture of ``plot_contributions``, of a recording that is taken apart already."""
    found = Contributions(fit)
    name = "reconstruction" if fit.X is None else "data"

    def rows(a: int, b: int) -> Images:
        reference, parts = found.block(a, b)
        return {name: reference} | {f"motif {k}": part for k, part in enumerate(parts)}

    images = view.pooled(rows)
    height = float(np.clip(7 / len(motifs), 0.4, 1.4))  # inches of a motif's row
    figure = prepared_figure(figure, (_WIDTH, 2.6 + height * len(motifs)))
    grid = GridSpec(
        1 + len(motifs),
        3,
        figure=figure,
        width_ratios=[2, 8, 0.2],
        height_ratios=[max(1.4, height)] + [height] * len(motifs),
    )
    top = figure.add_subplot(grid[0, 1], label=name)
    norm = scale(images[name])
    image = features.draw_image(top, images[name], view.span, **shades(norm))
    top.set_title(name, fontsize="medium")
    top.tick_params(labelbottom=False)
    features.draw_labels(top)
    draw_colorbar(figure, image, grid[0, 2], "value")
    lanes = {
        f"motif {k}": figure.add_subplot(grid[1 + i, 1], sharex=top, sharey=top, label=f"motif {k}")
        for i, k in enumerate(motifs)
    }
    _draw_parts(lanes, images, features, view)
    draw_colorbar(figure, lanes[f"motif {motifs[0]}"].images[0], grid[1:, 2])
    for axes in (top, *lanes.values()):
        mark_segments(axes, fit.segments.breaks(view.start, view.stop), view.rate)
    axes = figure.add_subplot(grid[1:, 0], label="shares")
    _draw_shares(axes, found, motifs)
    # Not in a title, for which the layout would leave room above every row.
    axes.set_xlabel(_told_of_shares(fit, found, name))
    return figure


def _chosen(motifs: Sequence[int] | None, K: int) -> list[int]:
    chosen = list(range(K)) if motifs is None else [int(k) for k in motifs]
    if not chosen or not all(0 <= k < K for k in chosen) or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"motifs must be different positions from 0 to {K - 1}, at least one; they are "
            f"{motifs}."
        )
    return chosen


def _draw_parts(lanes: dict[str, Axes], images: Images, features: Features, view: View) -> None:
    """The part of each motif in its row, all on the scale of the strongest."""
    norm = max((scale(images[name]) for name in lanes), key=lambda norm: float(norm.vmax or 0))
    for name, axes in lanes.items():
        features.draw_image(axes, images[name], view.span, **shades(norm))
        features.draw_labels(axes, shown=False)
        axes.tick_params(labelbottom=False, left=False)
    axes.tick_params(labelbottom=True)
    view.label_time(axes)


def _told_of_shares(fit: Decomposition, found: Contributions, name: str) -> str:
    together = f"all motifs together: {100 * found.explained:.1f}"
    if not fit.loss.by_ratios:
        return f"share of the {name}'s power (%)\n{together}"
    return f"share of the reconstruction (%)\n{together} of the deviance"


def _draw_shares(axes: Axes, found: Contributions, motifs: list[int]) -> None:
    """Bars, each beside its motif's row."""
    percent = 100 * found.shares[motifs]
    bars = axes.barh(range(len(motifs)), percent, height=0.6, color=[colour(k) for k in motifs])
    axes.bar_label(bars, fmt="%.1f", padding=3, fontsize="small")
    axes.set_ylim(len(motifs) - 0.5, -0.5)
    axes.set_xlim(0, 1.25 * (percent.max() or 1))  # room for the numbers
    axes.set_yticks(range(len(motifs)), labels=[f"motif {k}" for k in motifs])
    for k, label in zip(motifs, axes.get_yticklabels(), strict=True):
        label.set(color=colour(k), fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
