"""What a sweep says of K, λ and L, with the suggested choice marked."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from motifold.findings.choices import best_n_components
from motifold.findings.curves import (
    find_holdout_curve,
    find_lag_curve,
    find_motif_curve,
    losses_of,
    mean_by,
)
from motifold.findings.sweeping import Sweep
from motifold.findings.table import Table
from motifold.plots.printed import Style, column_width, in_style, points
from motifold.plots.style import PALETTE, prepared_figure

_SIDE_BY_SIDE = 5.0  # inches of print that several panels need
_ROOM = 1.22  # the height of a panel with a name above its dots, as a share of the dots' own
_SHARE = "share predicted (held out)"
_CHOICE: dict[str, Any] = {"color": PALETTE[2], "linewidth": 6, "alpha": 0.3, "zorder": 0}


@in_style
def plot_n_components(
    sweep: Sweep, *, figure: Figure | SubFigure | None = None, style: Style | None = None
) -> Figure:
    """Draw what is predicted, DISSX and significant motifs over the number of motifs.

    Dots are runs. The line of what is predicted is the mean over held-out blocks, of each the run
    that fitted its training data best; the others are means over all runs. The test error is drawn
    so, too, where it decides, or where entries were held out, not blocks.

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
        Its axes are labelled (``get_label``) "predicted", "test_error", "dissx" and
        "n_significant"; what was not measured is left out. The suggested value is a broad line, a
        broken one where it is the most that was tried, and "by this" where it was read off.

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
    ['predicted', 'dissx', 'n_significant']
    """
    table = sweep.table
    by_error, by_prediction = find_holdout_curve(table), find_motif_curve(table)
    evidence = sweep.evidence.get("n_components")
    held_out = {} if by_prediction is None else {"predicted": _SHARE}
    if by_prediction is None or evidence == "test_error":
        held_out["test_error"] = _label_of_errors(table)
    panels = held_out | {
        "dissx": "disagreement of seeds (DISSX)",
        "n_significant": "significant motifs",
    }
    measured = [
        name
        for name in panels
        if not np.isnan(table[name].astype(float)).all()
        and not (name == "n_significant" and not table["n_tested"].any())
    ]
    figure, axes_of = _panels(figure, measured)
    for name, axes in axes_of.items():
        values, means = mean_by(table, "n_components", name)
        curve = {"test_error": by_error, "predicted": by_prediction}.get(name)
        if curve is not None:
            values, means = curve.n_components.astype(float), curve.mean
        _draw_runs(axes, table["n_components"], table[name].astype(float))
        axes.plot(values, means, color=PALETTE[0], marker="o", markersize=points(5))
        if name == "n_significant":
            axes.plot(values, values, color="0.6", linestyle=":", zorder=0)
            _name_all(axes, "all", values[-1])
        if name == "test_error":
            axes.set_ylim(top=min(axes.get_ylim()[1], 1.05))
        if name != "n_significant":
            _make_room_for_a_name(axes)
        suggested = sweep.suggested.get("n_components")
        _mark(axes, suggested, values.max(), "most", by_this=name == evidence)
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
    """Draw what is predicted of held-out data, and the extent of the motifs, over the lags.

    First, where it was measured, the share of the variance that is predicted of held-out data, by
    which the length is suggested: a grey dot is a run; the line is the mean over held-out blocks,
    of each the run that fitted its training data best. Then effective length and onset of every
    motif: a dot is a motif, larger where it has more of the power. Motifs on the diagonal fill all
    their lags, and may be longer; where the dots leave it, more lags change nothing. The suggested
    value is a broad line, a broken one where it is the longest that was tried.

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
        Its axes are labelled (``get_label``) "predicted" (where it was measured), "length" and
        "onset".

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
    predicted = _runs_of_lags(sweep.table)
    lags = np.unique(motifs["n_lags"])
    labels = {"length": "effective length (lags)", "onset": "onset (lags)"}
    figure, panels = _panels(figure, [*([] if predicted is None else ["predicted"]), *labels])
    if predicted is not None:
        _draw_predicted(panels["predicted"], predicted)
    for name, label in labels.items():
        axes = panels[name]
        sizes = 4 + 60 * motifs["share"].astype(float)
        axes.scatter(
            _jittered(motifs["n_lags"]),
            motifs[name],
            s=sizes,
            color=PALETTE[0],
            alpha=0.35,
            linewidth=0,
        )
        if name == "length":
            axes.plot(lags, lags, color="0.6", linestyle=":", zorder=0)
            _name_all(axes, "all lags", lags[-1])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.set_ylabel(label)
        axes.set_ylim(bottom=-0.5)
        if name != "length":
            _make_room_for_a_name(axes)
    for name, axes in panels.items():
        suggested, by_this = sweep.suggested.get("n_lags"), name == sweep.evidence.get("n_lags")
        _mark(axes, suggested, lags.max(), "longest", by_this=by_this)
        _whole_numbers(axes, lags)
        axes.set_xlabel("number of lags, L")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _panels(figure: Figure | SubFigure | None, names: list[str]) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each name, side by side; in a single column of print one below the other."""
    n, width = len(names), column_width()
    stacked = width is not None and width < _SIDE_BY_SIDE
    figure = prepared_figure(figure, (5.2, 2.4 * n) if stacked else (1.2 + 3.2 * n, 3.5))
    shape = (n, 1) if stacked else (1, n)
    return figure, {
        name: figure.add_subplot(*shape, i + 1, label=name) for i, name in enumerate(names)
    }


def _runs_of_lags(table: Table) -> Table | None:
    """The runs by which the number of lags is suggested; None without held-out data."""
    if find_lag_curve(table) is None:
        return None
    K = best_n_components(table).value
    chosen = table if K is None else table.where(n_components=K)
    return chosen if find_lag_curve(chosen) is not None else None


def _draw_predicted(axes: Axes, table: Table) -> None:
    curve = find_lag_curve(table)
    assert curve is not None
    _draw_runs(axes, table["n_lags"], table["predicted"].astype(float))
    axes.plot(curve.n_lags, curve.mean, color=PALETTE[0], marker="o", markersize=points(5))
    axes.set_ylabel(_SHARE)
    top = 1.02 * max(float(np.nanmax(table["predicted"].astype(float))), 0.01)
    axes.set_ylim(min(0.0, float(curve.mean.min())), top)
    _make_room_for_a_name(axes)


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


def _make_room_for_a_name(axes: Axes) -> None:
    """Two lines of small type above all that is drawn, where the suggested value is named."""
    low, high = axes.get_ylim()
    axes.set_ylim(top=low + _ROOM * (high - low))


def _name_all(axes: Axes, name: str, last: float) -> None:
    """Name the diagonal at its end, below where the suggested value is named."""
    axes.set_ylim(top=1.35 * last)
    axes.annotate(name, (last, last), color="0.4", ha="right", va="bottom", fontsize="small")


def _mark(
    axes: Axes,
    value: Any,
    last: Any = None,
    which: str = "most",
    *,
    by_this: bool = False,
    left: bool | None = None,
) -> None:
    """The suggested value: a broad pale line, named; broken if it is the ``last`` that was tried.

    ``by_this``: what is drawn here decided. ``left``: on which side the name is; None where there
    is room.
    """
    if value is None:
        return
    at_the_end = value == last
    look = _CHOICE | {"linewidth": points(_CHOICE["linewidth"])}
    axes.axvline(value, **look, linestyle=(0, (1.5, 0.7)) if at_the_end else "-")
    if left is None:
        place = axes.transAxes.inverted().transform(axes.transData.transform((value, 0)))[0]
        left = bool(place > 0.6)  # no room to the right
    text = f"suggested{' by this' * by_this}: {value:.3g}" + (
        f",\nthe {which} tried" if at_the_end else ""
    )
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
