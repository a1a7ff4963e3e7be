"""What a sweep says of K, λ and L, with the suggested choice marked."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from motifold.findings.choices import find_holdout_curve, losses_of, mean_by
from motifold.findings.sweeping import Sweep
from motifold.findings.table import Table
from motifold.plots.printed import Style, in_style, points
from motifold.plots.style import PALETTE, prepared_figure

_CHOICE: dict[str, Any] = {"color": PALETTE[2], "linewidth": 6, "alpha": 0.3, "zorder": 0}


@in_style
def plot_n_components(
    sweep: Sweep, *, figure: Figure | SubFigure | None = None, style: Style | None = None
) -> Figure:
    """Draw test error, DISSX and the number of significant motifs over the number of motifs.

    Dots are runs. The line of the test error is the mean over held-out blocks, of each the run
    that fitted its training data best; the others are means over all runs.

    Parameters
    ----------
    sweep : Sweep
        As from ``motifold.sweep`` with several values of ``n_components``.
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "test_error", "dissx" and "n_significant"; what was
        not measured is left out. The suggested value is a broad line, a broken one where it is
        the most that was tried.

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_n_components
    >>> X = make_sequences(300, 12, 2, 6, activation_probability=0.05, random_state=0).X
    >>> found = motifold.sweep(
    ...     X, n_components=[1, 2, 3], n_lags=6, n_seeds=2, tol=1e-2, n_jobs=1, progress=False
    ... )
    >>> [axes.get_label() for axes in plot_n_components(found).axes]
    ['test_error', 'dissx', 'n_significant']
    """
    table = sweep.table
    panels = {
        "test_error": _label_of_errors(table),
        "dissx": "DISSX between seeds",
        "n_significant": "significant motifs",
    }
    measured = [
        name
        for name in panels
        if not np.isnan(table[name].astype(float)).all()
        and not (name == "n_significant" and not table["n_tested"].any())
    ]
    figure = prepared_figure(figure, (1.0 + 3.2 * len(measured), 3.4))
    for i, name in enumerate(measured):
        axes = figure.add_subplot(1, len(measured), i + 1, label=name)
        values, means = mean_by(table, "n_components", name)
        curve = find_holdout_curve(table)
        if name == "test_error" and curve is not None:
            values, means = curve.n_components.astype(float), curve.mean
        _draw_runs(axes, table["n_components"], table[name].astype(float))
        axes.plot(values, means, color=PALETTE[0], marker="o", markersize=points(5))
        if name == "n_significant":
            axes.plot(values, values, color="0.6", linestyle=":", zorder=0)
            axes.annotate("all", (values[-1], values[-1]), color="0.4", ha="right", va="bottom")
        if name == "test_error":
            axes.set_ylim(top=min(axes.get_ylim()[1], 1.05))
        _mark(axes, sweep.suggested.get("n_components"), values.max(), "most")
        axes.set_xlabel("number of motifs, K")
        axes.set_ylabel(panels[name])
        _whole_numbers(axes, values)
        if name == "n_significant":
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    return figure


@in_style
def plot_crossover(sweep: Sweep, *, ax: Axes | None = None, style: Style | None = None) -> Axes:
    """Draw the two costs over ``x_ortho``, each scaled to run from 0 to 1, and where they cross.

    Parameters
    ----------
    sweep : Sweep
        As from ``motifold.sweep`` with several values of ``x_ortho``.
    ax : matplotlib.axes.Axes or None
        Where to draw; None makes a new figure.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_crossover
    >>> X = make_sequences(200, 10, 2, 5, activation_probability=0.05, random_state=0).X
    >>> weights = [1e-4, 1e-3, 1e-2, 1e-1]
    >>> found = motifold.sweep(
    ...     X, n_components=3, n_lags=5, x_ortho=weights, n_seeds=1, test=None, tol=1e-2, n_jobs=1,
    ...     progress=False,
    ... )
    >>> plot_crossover(found).get_xscale()
    'log'
    """
    crossover = sweep.crossover
    if ax is None:
        ax = prepared_figure(None, (5.2, 3.6)).add_subplot()
    ax.set_xscale("log")
    ax.plot(
        crossover.weights, crossover.reconstruction, "o-", color=PALETTE[0], label="reconstruction"
    )
    ax.plot(crossover.weights, crossover.x_ortho, "s--", color=PALETTE[1], label="x-ortho")
    ax.set_ylim(-0.05, 1.18)  # room for the name of the suggested value
    crossing, suggested = crossover.crossing, crossover.suggested
    if crossing is not None:
        # Up to where the names begin, so that it goes through none of them.
        ax.plot([crossing] * 2, [-0.05, 1.05], color="black", linestyle=":", linewidth=points(1))
        ax.annotate(
            f"crossover {crossing:.2g}",
            (crossing, 1.02),
            xycoords=("data", "axes fraction"),
            ha="center",
            fontsize="small",
        )
    left = None
    if crossing is not None and suggested is not None:
        left = bool(suggested < crossing)  # away from the line
    _mark(ax, suggested, left=left)
    ax.set_xlabel("x_ortho, λ")
    ax.set_ylabel("cost (scaled to 0 … 1)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


@in_style
def plot_motif_lengths(
    sweep: Sweep, *, figure: Figure | SubFigure | None = None, style: Style | None = None
) -> Figure:
    """Draw effective length and onset of every motif over the number of lags.

    A dot is a motif, larger where it has more of the power. Motifs on the diagonal fill all their
    lags, and may be longer; where the dots leave it, more lags change nothing. The suggested value
    is a broad line, a broken one where it is the longest that was tried.

    Parameters
    ----------
    sweep : Sweep
        As from ``motifold.sweep`` with several values of ``n_lags``.
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "length" and "onset".

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_motif_lengths
    >>> X = make_sequences(200, 10, 2, 5, activation_probability=0.05, random_state=0).X
    >>> found = motifold.sweep(
    ...     X, n_components=2, n_lags=[3, 6], n_seeds=1, test=None, n_jobs=1, progress=False
    ... )
    >>> [axes.get_label() for axes in plot_motif_lengths(found).axes]
    ['length', 'onset']
    """
    motifs = sweep.motifs
    figure = prepared_figure(figure, (8.0, 3.6))
    lags = np.unique(motifs["n_lags"])
    for i, (name, label) in enumerate(
        [("length", "effective length (lags)"), ("onset", "onset (lags)")]
    ):
        axes = figure.add_subplot(1, 2, i + 1, label=name)
        sizes = 4 + 60 * motifs["share"].astype(float)
        axes.scatter(
            _jittered(motifs["n_lags"]),
            motifs[name],
            s=sizes,
            color=PALETTE[0],
            alpha=0.35,
            linewidth=0,
        )
        axes.plot(lags, lags, color="0.6", linestyle=":", zorder=0)
        _mark(axes, sweep.suggested.get("n_lags"), lags.max(), "longest")
        _whole_numbers(axes, lags)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number of lags, L")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=-0.5)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _label_of_errors(table: Table) -> str:
    by_ratios = all(loss.by_ratios for loss in losses_of(table))
    return "held-out deviance (relative)" if by_ratios else "test error (relative)"


def _draw_runs(axes: Axes, positions: Any, values: Any) -> None:
    axes.scatter(_jittered(positions), values, s=10, color="0.5", alpha=0.6, linewidth=0)


def _jittered(positions: Any) -> Any:
    """Positions moved a little, always alike, so that equal ones can be told apart."""
    positions = positions.astype(float)
    steps = np.diff(np.unique(positions))
    width = 0.12 * (steps.min() if steps.size else 1)
    return positions + np.random.default_rng(0).uniform(-width, width, len(positions))


def _whole_numbers(axes: Axes, values: Any) -> None:
    """Ticks at the values that were tried, if they are not too many, and never between."""
    if len(values) <= 12:
        axes.set_xticks(values, labels=[f"{value:g}" for value in values])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _mark(
    axes: Axes, value: Any, last: Any = None, which: str = "most", *, left: bool | None = None
) -> None:
    """The suggested value: a broad pale line, named; broken if it is the ``last`` that was tried.

    ``left``: on which side the name is; None where there is room.
    """
    if value is None:
        return
    at_the_end = value == last
    look = _CHOICE | {"linewidth": points(_CHOICE["linewidth"])}
    axes.axvline(value, **look, linestyle=(0, (1.5, 0.7)) if at_the_end else "-")
    if left is None:
        place = axes.transAxes.inverted().transform(axes.transData.transform((value, 0)))[0]
        left = bool(place > 0.6)  # no room to the right
    text = f"suggested: {value:.3g}" + (f",\nthe {which} tried" if at_the_end else "")
    axes.annotate(
        text,
        (value, 0.98),
        (-6 if left else 6, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        ha="right" if left else "left",
        color=PALETTE[2],
        fontsize="small",
    )
