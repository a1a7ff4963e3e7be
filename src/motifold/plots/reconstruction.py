"""The data above its reconstruction, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from motifold.data import Segments
from motifold.data.given import takes_recordings
from motifold.findings.decomposition import Decomposition, stacked
from motifold.plots.ordering import Order, order_of_fit, order_of_motifs
from motifold.plots.printed import Style, in_style
from motifold.plots.style import (
    Features,
    check_rate,
    draw_colorbar,
    mark_segments,
    prepared_figure,
    scale,
    shades,
)
from motifold.plots.view import Images, View

_WIDTH, _ROW = 9.6, 2.3  # inches of the figure, and of one recording's height

Rows = Callable[[int, int], npt.NDArray[Any]]  # bins a to b of a recording


@in_style
@takes_recordings
def plot_reconstruction(
    model: Any = None,
    X: Any = None,
    *,
    activations: Any = None,
    lengths: Any = None,
    reconstruction: Any = None,
    residual: bool = False,
    rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    figure: Figure | SubFigure | None = None,
    starts: Any = None,
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    """Draw the data above its reconstruction, on one colour scale and with shared axes.

    Long recordings are drawn by the largest values of some two thousand stretches of time. No
    pyplot figure is made and nothing is shown. ``plot_reconstruction(X, model)``, the order of 0.1,
    is understood as well, and so is ``plot_reconstruction(X, X_hat)`` of any reconstruction.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        The recording. NaN, a missing entry, is drawn grey.
    activations, lengths
        As in ``plot_factors``: for a recording that the model was not fitted to, give
        ``activations=model.transform(X)``.
    reconstruction : array-like of shape (n_samples, n_features), list of such, or None
        Any other reconstruction, in place of a model.
    residual : bool, default=False
        Draw below what is left, ``|X − reconstruction|``, on the same scale.
    rate, time_range, feature_axis, feature_label, figure, starts, order, style
        As in ``plot_factors``. Without a model features are not sorted.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "data", "reconstruction", "residual" and "colorbar".

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_reconstruction
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> figure = plot_reconstruction(model, X, residual=True, rate=100, time_range=(0, 2))
    >>> [axes.get_label() for axes in figure.axes]
    ['data', 'reconstruction', 'residual', 'colorbar']
    """
    check_rate(rate)
    made, X = _told_apart(model, X, reconstruction)
    data = stacked(X)
    if data.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features), not {data.shape}.")
    names = getattr(made, "feature_names_in_", None)
    features = Features.from_options(data.shape[1], feature_axis, feature_label, names)
    if hasattr(made, "inverse_transform"):
        fit = Decomposition.of(made, None, activations, lengths)
        _check_shape(data.shape, fit.shape)
        features = order_of_fit(features, order, replace(fit, X=data))
        rows, segments = fit.rows, fit.segments
    else:
        X_hat = stacked(made)
        _check_shape(data.shape, X_hat.shape)
        rows, segments = (lambda a, b: X_hat[a:b]), Segments.of(len(X_hat), lengths)
        own = isinstance(order, str) and order in ("auto", "sorted")
        features = order_of_motifs(features, "own" if own else order, None, X_hat, data)
    view = View.from_range(time_range, rate, segments.lengths, starts)
    breaks = segments.breaks(view.start, view.stop)
    return draw_reconstruction(data, rows, features, view, breaks, residual, figure)


def _told_apart(model: Any, X: Any, reconstruction: Any) -> tuple[Any, Any]:
    """What makes the reconstruction, and the recording, in whichever order they were given."""
    given = [value for value in (model, X, reconstruction) if value is not None]
    if len(given) != 2:
        raise TypeError(
            "plot_reconstruction must have a fitted model and the recording, "
            "plot_reconstruction(model, X), or a recording and its reconstruction."
        )
    first, second = given
    if hasattr(first, "inverse_transform"):
        return first, second
    return second, first


def draw_reconstruction(
    data: Any,
    rows: Rows,
    features: Features,
    view: View,
    breaks: npt.NDArray[Any],
    residual: bool = True,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """The picture of ``plot_reconstruction``: X̂ is ``rows``, segments start at ``breaks``."""

    def images_of(a: int, b: int) -> Images:
        X, X_hat = data[a:b], rows(a, b)
        images = {"data": X, "reconstruction": X_hat}
        return images | {"residual": np.abs(X - X_hat)} if residual else images

    images = view.pooled(images_of)
    figure = prepared_figure(figure, (_WIDTH, 0.6 + _ROW * len(images)))
    grid = figure.add_gridspec(len(images), 2, width_ratios=[40, 1])
    norm = scale(images["data"])  # of all
    first: Axes | None = None
    for row, (name, values) in enumerate(images.items()):
        axes = figure.add_subplot(grid[row, 0], sharex=first, sharey=first, label=name)
        first = first or axes
        image = features.draw_image(axes, values, view.span, **shades(norm))
        axes.set_title("|data − reconstruction|" if name == "residual" else name, fontsize="medium")
        features.draw_labels(axes)
        axes.tick_params(labelbottom=row == len(images) - 1)
        mark_segments(axes, breaks, view.rate)
    view.label_time(axes)
    draw_colorbar(figure, image, grid[:, 1])
    return figure


def _check_shape(shape: tuple[int, ...], found: tuple[int, ...]) -> None:
    if found != shape:
        raise ValueError(
            f"X must have the shape of its reconstruction: X has {shape}, the reconstruction "
            f"{found}. For another recording than the model was fitted to give also "
            "activations=model.transform(X)."
        )
