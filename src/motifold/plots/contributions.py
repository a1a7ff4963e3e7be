"""What each motif contributes: its share, and the part of the data it explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec

from motifold.data.given import takes_recordings
from motifold.estimator import CNMF
from motifold.findings.decomposition import Contributions, Decomposition
from motifold.plots.ordering import Order, order_of_fit
from motifold.plots.printed import Style, column_width, in_style
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
_PALE = 0.6  # of white upon a bar


@in_style
@takes_recordings
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
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    """Draw the part of the data that each motif explains, and its share of the power.

    On top is the data, or without it the reconstruction; below, one row for each motif: a bar for
    its share, and, on a colour scale common to the motifs, the part of the reconstruction it
    makes. The share of motif k is ⟨2X − X̂, X̂_k⟩/‖X‖² over the stretch drawn: shares add up to
    what all motifs explain together, and with the rest to 100 %. The pale end of a bar is what lies
    where other motifs are as well, ⟨X̂ − X̂_k, X̂_k⟩/‖X‖²; only the full one would be lost without
    the motif. Of a model with another loss than squared error it is the deviance that is divided,
    at each entry by what each motif has of the change from the mean of the feature to X̂. No pyplot
    figure is made and nothing is shown.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features), list, Recording, or None
        The recording; None puts the reconstruction in its place. NaN, a missing entry, is drawn
        grey and does not count.
    activations, lengths
        As in ``plot_factors``.
    motifs : sequence of int or None
        Which motifs to draw, as positions in ``components_``; None draws all.
    rate, time_range, feature_axis, feature_label, figure, starts, order, style
        As in ``plot_factors``.

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
    features = order_of_fit(features, order, fit)
    return draw_contributions(fit, features, view, _chosen(motifs, fit.H.shape[1]), figure)


def draw_contributions(
    fit: Decomposition,
    features: Features,
    view: View,
    motifs: list[int],
    figure: Figure | SubFigure | None = None,
    *,
    residual: bool = False,
    bars: bool = True,
) -> Figure:
    """The picture of ``plot_contributions``, of a recording that is taken apart already.

    With ``residual`` what is left of the data is on top, on the data's scale, not the data;
    without ``bars`` the names of the motifs alone are at the left.
    """
    found = Contributions(fit)
    name = "reconstruction" if fit.X is None else "data"

    def rows(a: int, b: int) -> Images:
        reference, parts = found.block(a, b)
        images = {name: reference} | {f"motif {k}": part for k, part in enumerate(parts)}
        return images | {"residual": np.abs(reference - fit.rows(a, b))} if residual else images

    images = view.pooled(rows)
    height = float(np.clip(7 / len(motifs), 0.4, 1.4))  # inches of a motif's row
    figure = prepared_figure(figure, (_WIDTH, 2.6 + height * len(motifs)))
    grid = GridSpec(
        1 + len(motifs),
        3,
        figure=figure,
        width_ratios=_columns(bars),
        height_ratios=[max(1.4, height)] + [height] * len(motifs),
    )
    shown = "residual" if residual else name
    top = figure.add_subplot(grid[0, 1], label=shown)
    norm = scale(images[name])
    image = features.draw_image(top, images[shown], view.span, **shades(norm))
    top.set_title(f"|{name} − reconstruction|" if residual else name, fontsize="medium")
    top.tick_params(labelbottom=False)
    features.draw_labels(top)
    draw_colorbar(figure, image, grid[0, 2], "value\n(data units)")
    lanes = {
        f"motif {k}": figure.add_subplot(grid[1 + i, 1], sharex=top, sharey=top, label=f"motif {k}")
        for i, k in enumerate(motifs)
    }
    _draw_parts(lanes, images, features, view)
    draw_colorbar(figure, lanes[f"motif {motifs[0]}"].images[0], grid[1:, 2])
    for axes in (top, *lanes.values()):
        mark_segments(axes, fit.segments.breaks(view.start, view.stop), view.rate)
    if not bars:
        for k in motifs:
            lanes[f"motif {k}"].set_ylabel(f"motif {k}", color=colour(k), fontweight="bold")
        return figure
    axes = figure.add_subplot(grid[1:, 0], label="shares")
    _draw_shares(axes, found, motifs)
    axes.set_xlabel(f"share of {fit.loss.explains} (%)")
    _tell_sums(axes, figure, partial(_sums, fit, found, name, view.stop - view.start))
    return figure


def _tell_sums(axes: Axes, figure: Figure | SubFigure, sums: Callable[..., str]) -> None:
    """What the shares add up to, where there is room for it."""
    if column_width() is not None:  # the corner is too narrow
        figure.supxlabel(sums(" ", ", ", "\n"), fontsize="small")
        return
    # In the free corner beside the data, not in a title, for which the layout would leave room
    # above every row.
    told: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    text = axes.annotate(sums(), (0, 1), (0, 6), fontsize="small", va="bottom", **told)
    text.set_in_layout(False)


def _columns(bars: bool) -> list[float]:
    """Widths of the bars, the images and their scale."""
    if not bars:
        return [0.01, 8, 0.15]
    return [2, 8, 0.2] if column_width() is None else [3, 8, 0.3]


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


def _sums(
    fit: Decomposition,
    found: Contributions,
    name: str,
    n_bins: int,
    after: str = "\n",
    between: str = "\n",
    pale: str = "\n",
) -> str:
    """How the shares add up, and what the pale ends of the bars are, with what is between them."""
    parts = {"motifs": float(found.shares.sum())}
    if fit.model.background_ is not None:
        parts["background"] = found.background
    parts["not explained"] = 1 - found.explained
    told = between.join(f"{what} {100 * share:.1f}%" for what, share in parts.items())
    where = "" if n_bins == len(fit.H) else " here"
    told = f"Of the {name}'s {fit.loss.explains}{where}:{after}{told}"
    if found.overlaps is not None:
        told += f"{pale}(pale: where other{after}motifs are as well)"
    return told


def _draw_shares(axes: Axes, found: Contributions, motifs: list[int]) -> None:
    """Bars, each beside its motif's row, pale at the end where the motif overlaps with others."""
    percent = 100 * found.shares[motifs]
    lanes = range(len(motifs))
    bars = axes.barh(lanes, percent, height=0.6, color=[colour(k) for k in motifs])
    if found.overlaps is not None:
        pale = np.clip(100 * found.overlaps[motifs], 0, np.maximum(percent, 0))
        axes.barh(lanes, pale, height=0.6, left=percent - pale, color="white", alpha=_PALE)
    axes.bar_label(bars, fmt="%.1f", padding=3, fontsize="small")
    axes.set_ylim(len(motifs) - 0.5, -0.5)
    axes.set_xlim(min(0.0, 1.25 * percent.min()), 1.3 * max(percent.max(), 1))  # for the numbers
    axes.set_yticks(lanes, labels=[f"motif {k}" for k in motifs])
    for k, label in zip(motifs, axes.get_yticklabels(), strict=True):
        label.set(color=colour(k), fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
