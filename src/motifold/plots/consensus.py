"""The motifs that fits agree on, and in how many of them each was found."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure, SubFigure

from motifold.findings.consensus import Consensus
from motifold.plots.motifs import plot_motifs
from motifold.plots.ordering import Order
from motifold.plots.printed import Style, in_style

_SHOWN = 20


@in_style
def plot_consensus(
    consensus: Consensus,
    *,
    rate: float | None = None,
    feature_axis: Any = None,
    feature_label: str | None = None,
    figure: Figure | SubFigure | None = None,
    order: Order = "auto",
    style: Style | None = None,
) -> Figure:
    """Draw the motifs of a consensus, those found most often first.

    Above each stands in how many fits it was found, and the mean similarity of its copies to it;
    stable ones have a star. A line below says so. Motifs found only once are left out.

    Parameters
    ----------
    consensus : Consensus
        As from ``motifold.find_consensus``.
    rate, feature_axis, feature_label, figure, order, style
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from motifold import find_consensus
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_consensus
    >>> motifs = make_sequences(300, 20, 2, 8, random_state=0).components
    >>> figure = plot_consensus(find_consensus([motifs, motifs, motifs]))
    >>> figure.axes[0].get_title().split()
    ['3', 'of', '3', '*', '1.00']
    """
    shown = consensus.recurring[:_SHOWN].tolist() or [0]
    stars = [" *" if consensus.stable[m] else "" for m in shown]
    titles = [
        f"{consensus.found[m]} of {consensus.n_fits}{star}\n{consensus.similarity[m]:.2f}"
        for m, star in zip(shown, stars, strict=True)
    ]
    drawn = plot_motifs(
        consensus.components[shown],
        rate=rate,
        feature_axis=feature_axis,
        feature_label=feature_label,
        titles=titles,
        figure=figure,
        order=order,
    )
    told = "in how many fits (* stable), and how similar they are there"
    drawn.supxlabel(told, fontsize="small")
    return drawn
