"""Each motif's skewness against that of its shuffled copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from motifold.findings.shuffles import Significance
from motifold.plots.printed import Style, in_style, points
from motifold.plots.style import colour, inches_of, prepared_figure

_P_VALUE = 0.55  # inches of a p-value in type of the usual size
_FACES = {"not significant": "white"}  # of dots in the legend


@in_style
def plot_significance(
    result: Significance, *, ax: Axes | None = None, style: Style | None = None
) -> Axes:
    """Draw the statistic of each motif over the distribution of its nulls.

    A grey violin is the null distribution, a filled dot, in the motif's colour, a significant motif
    (Bonferroni), an open one another; the p-value stands above. Motifs that were not tested have a
    cross.

    Parameters
    ----------
    result : Significance
        As from ``motifold.significance``.
    ax : matplotlib.axes.Axes or None
        Where to draw; None makes a new figure.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from motifold import significance
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_significance
    >>> data = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0)
    >>> ax = plot_significance(significance(data.X, data.components, random_state=0))
    >>> ax.get_ylabel()
    'skewness of the overlap'
    """
    K = len(result.tested)
    if ax is None:
        ax = prepared_figure(None, (2.0 + 0.7 * max(K, 4), 3.6)).add_subplot()
    positions = np.arange(K)
    tested = result.tested
    if tested.any():
        nulls = ax.violinplot(
            list(result.null[tested]), positions[tested], widths=0.7, showextrema=False
        )
        for body in nulls["bodies"]:  # type: ignore[attr-defined]
            body.set(facecolor="0.6", edgecolor="none", alpha=0.7)
        nulls["bodies"][0].set_label("shuffled")  # type: ignore[index]
    inks = [colour(k) for k in range(K)]
    kinds = {
        "significant": (result.significant, "o", inks, inks),
        "not significant": (tested & ~result.significant, "o", ["white"] * K, inks),
        "not tested": (~tested, "x", inks, None),
    }
    for label, (which, marker, faces, edges) in kinds.items():
        at = np.flatnonzero(which)
        if not at.size:
            continue
        look: dict[str, Any] = {"marker": marker, "s": points(points(40))}
        if edges is not None:
            look["edgecolors"] = [edges[k] for k in at]
        ax.scatter(at, result.statistic[at], c=[faces[k] for k in at], zorder=3, **look)
        # In the legend a dot of no motif's colour.
        look = {"marker": marker, "s": points(points(40)), "c": [_FACES.get(label, "0.3")]}
        ax.scatter([], [], label=label, edgecolors=None if marker == "x" else "0.3", **look)
    crowded = inches_of(ax)[0] / K < _P_VALUE * points(1)
    _write_p_values(ax, result, upright=crowded)
    ax.set_xticks(positions)
    ax.set_xlim(-0.6, K - 0.4)
    ax.margins(y=0.3 if crowded else 0.15)
    ax.set_xlabel("motif")
    ax.set_ylabel("skewness of the overlap")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _write_p_values(ax: Axes, result: Significance, *, upright: bool) -> None:
    """Above all that is drawn of a motif."""
    top = np.fmax(result.statistic, np.nan_to_num(result.null, nan=-np.inf).max(axis=1))
    for k in np.flatnonzero(result.tested):
        ax.annotate(
            f"p = {result.p_value[k]:.2g}",
            (k, top[k]),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            rotation=90 if upright else 0,
        )
