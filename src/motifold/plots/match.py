"""The motifs of two fits in pairs, so that it can be seen how far they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure, SubFigure

from motifold.findings.matching import match_motifs
from motifold.plots.motifs import draw_motifs, grid_of
from motifold.plots.ordering import Order, order_of_motifs
from motifold.plots.printed import Style, in_style
from motifold.plots.style import Features, check_rate, prepared_figure


@in_style
def plot_match(
    a: Any,
    b: Any,
    *,
    max_shift: int | None = None,
    rate: float | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    figure: Figure | SubFigure | None = None,
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    r"""Draw the motifs of ``a``, and below each the motif of ``b`` that answers to it.

    Those of ``b`` are shifted to lie on their partners; above each stands which motif of ``b`` it
    is, and below that the similarity of the two. A motif of ``a`` without a partner has a blank
    one.

    Parameters
    ----------
    a, b : CNMF or array-like of shape (n_components, n_lags, n_features)
        Fitted models, or their motifs, with the same lags and features.
    max_shift
        As in ``motifold.matching.match_motifs``.
    rate, feature_axis, feature_label, figure, style
        As in ``plot_motifs``.
    order : {"auto", "sorted", "own"}, FeatureOrder or sequence of int, default="auto"
        As in ``plot_motifs``; features are sorted by the motifs of ``a``, in both rows.

    Returns
    -------
    matplotlib.figure.Figure
        Its two subfigures (``subfigs``) are those of ``plot_motifs``.

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_match
    >>> motifs = make_sequences(300, 20, 2, 8, random_state=0).components
    >>> figure = plot_match(motifs, motifs[::-1])
    >>> [axes.get_title() for axes in figure.subfigs[1].axes]
    ['motif 1\n1.00', 'motif 0\n1.00']
    """
    check_rate(rate)
    first, second = (np.asarray(getattr(fit, "components_", fit)) for fit in (a, b))
    match = match_motifs(first, second, max_shift=max_shift)
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"a and b must have the same lags to be drawn in pairs; a has {first.shape[1]}, b has "
            f"{second.shape[1]}."
        )
    titles = [
        f"motif {j}\n{similarity:.2f}" if j >= 0 else "none"
        for j, similarity in zip(match.order, match.similarity, strict=True)
    ]
    n_rows, n_columns = grid_of(len(first))
    figure = prepared_figure(figure, (1.6 + 1.2 * max(n_columns, 4), 1.2 + 4.8 * n_rows))
    figure.supxlabel(
        "above: motifs of the first; below: their partners in the second, and how similar",
        fontsize="small",
    )
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    named = getattr(a, "feature_names_in_", getattr(b, "feature_names_in_", None))
    features = Features.from_options(first.shape[2], feature_axis, feature_label, named)
    features = order_of_motifs(features, order, a, first)
    names = [f"motif {k}" for k in range(len(first))]
    draw_motifs(first, features, rate, names, figure=above)
    draw_motifs(match.align(second), features, rate, titles, figure=below)
    return figure
