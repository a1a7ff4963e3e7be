"""Loss against time, for several fits: the paper's Figures 2 to 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from motifold.findings.courses import Course, median_course
from motifold.model.losses import SQUARED, loss_of
from motifold.plots.decimate import MAX_COLUMNS
from motifold.plots.printed import Style, in_style, points
from motifold.plots.style import LINE_STYLES, MARKERS, colour, prepared_figure

_SIZE = (6.4, 4.2)  # inches
_WIDE_TIMES = 30.0  # a span of times, as a ratio, from which on their axis is better logarithmic
_WIDE_LOSSES = 10.0


@in_style
def plot_loss(
    curves: Any,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    log: Literal["auto", "x", "y", "both"] | None = "auto",
    style: Style | None = None,
) -> Axes:
    """Draw the loss of fits against the seconds they took.

    Where a label has several fits, each is a thin line and the bold one is their median at each
    time, from when all have started; a fit that ended keeps its last loss. Labels differ in
    colour, line style and marks, so that they can be told apart in grey print. Of a model with
    several starts (``n_init``) the course is that of the best one, and time counts from its start.

    Parameters
    ----------
    curves : CNMF, history, list of them, or dict of str to such
        Fitted models, or their histories, which have ``.seconds`` and ``.loss``, arrays of equal
        length; in a dict, by the names that the legend gives them.
    ax : matplotlib.axes.Axes or None
        Where to draw; None makes a new figure, which is ``plot_loss(…).figure``.
    title : str or None
        Title of the axes.
    log : {"auto", "x", "y", "both"} or None, default="auto"
        Which axes are logarithmic; "auto" decides by how far times and losses spread. Times and
        losses of zero cannot be drawn there and are left out.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn upon.

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_loss
    >>> X = make_sequences(200, 20, 2, 8, random_state=0).X
    >>> fits = {
    ...     solver: [
    ...         CNMF(2, 8, solver=solver, random_state=seed, tol=0, max_iter=20).fit(X)
    ...         for seed in range(3)
    ...     ]
    ...     for solver in ("mu", "hals")
    ... }
    >>> ax = plot_loss(fits, title="three starts each")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['mu (median of 3)', 'hals (median of 3)']
    >>> plot_loss(fits["hals"][0]).get_xlabel()
    'time (s)'
    """
    if log not in ("auto", "x", "y", "both", None):
        raise ValueError(f'log must be "auto", "x", "y", "both" or None, not {log!r}.')
    named = curves if isinstance(curves, Mapping) else {"": curves}
    groups = {label: _curves_of(fits, label) for label, fits in named.items()}
    if not groups:
        raise ValueError("curves is empty: give at least one label with its history.")
    if ax is None:
        ax = prepared_figure(None, _SIZE).add_subplot()
    log_x, log_y = _logarithmic(log, [curve for runs in groups.values() for curve in runs])
    for i, (label, runs) in enumerate(groups.items()):
        drawable = [_drawable(run, log_x, log_y) for run in runs]
        _draw_group(ax, i, label, drawable, has_marks=len(groups) > 1)
    _label_axes(ax, log_x, log_y, _loss_label(named.values()))
    if any(_has_starts(fit) for fits in named.values() for fit in _listed(fits)):
        ax.set_xlabel("time since the best start began (s)")
    if title is not None:
        ax.set_title(title)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False)
    return ax


def _listed(fits: Any) -> list[Any]:
    return list(fits) if isinstance(fits, (list, tuple)) else [fits]


def _has_starts(fit: Any) -> bool:
    """Whether it is a model of which only the best of several starts has its course told."""
    return hasattr(fit, "history_") and getattr(fit, "n_init", 1) > 1


def _curves_of(fits: Any, label: str) -> list[Course]:
    """The curves of one label, checked."""
    fits = _listed(fits)
    where = f"curves[{label!r}]" if label else "curves"
    if not fits:
        raise ValueError(f"{where} is empty: give at least one history.")
    found = []
    for i, fit in enumerate(fits):
        history = getattr(fit, "history_", fit)
        place = f"{where}[{i}]" if label or len(fits) > 1 else where
        if not (hasattr(history, "seconds") and hasattr(history, "loss")):
            raise TypeError(
                f"{place} must be a history with .seconds and .loss or a fitted model, not "
                f"{type(fit).__name__}."
            )
        seconds, loss = np.asarray(history.seconds, float), np.asarray(history.loss, float)
        if seconds.ndim != 1 or seconds.shape != loss.shape or seconds.size == 0:
            raise ValueError(
                f"{place}: seconds and loss must be arrays of equal length, at least 1; their "
                f"shapes are {seconds.shape} and {loss.shape}."
            )
        found.append((seconds - seconds[0] if _has_starts(fit) else seconds, loss))
    return found


def _logarithmic(log: str | None, curves: list[Course]) -> tuple[bool, bool]:
    """Whether the axis of time and the axis of loss are logarithmic."""
    if log != "auto":
        return log in ("x", "both"), log in ("y", "both")
    # From the end of the first iteration: the start's own time says nothing of the fit's pace.
    firsts = [seconds[min(1, len(seconds) - 1)] for seconds, _ in curves]
    lasts = [seconds[-1] for seconds, _ in curves]
    first = min((time for time in firsts if time > 0), default=np.inf)
    losses = np.concatenate([loss for _, loss in curves])
    losses = losses[np.isfinite(losses) & (losses > 0)]
    wide = losses.size > 0 and float(losses.max()) > _WIDE_LOSSES * float(losses.min())
    return max(lasts) > _WIDE_TIMES * first, wide


def _drawable(curve: Course, log_x: bool, log_y: bool) -> Course:
    seconds, loss = curve
    kept = np.isfinite(loss)
    if log_x:
        kept &= seconds > 0
    if log_y:
        kept &= loss > 0
    return seconds[kept], loss[kept]


def _draw_group(ax: Axes, i: int, label: str, runs: list[Course], *, has_marks: bool) -> None:
    runs = [run for run in runs if run[0].size]
    if len(runs) > 1:
        for seconds, loss in runs:
            ax.plot(seconds, loss, color=colour(i), linewidth=points(0.7), alpha=0.45, label="_run")
        label = f"{label} (median of {len(runs)})".lstrip()
    seconds, loss = median_course(runs, MAX_COLUMNS) if runs else (np.empty(0), np.empty(0))
    ax.plot(
        seconds,
        loss,
        color=colour(i),
        linewidth=points(2.2),
        linestyle=LINE_STYLES[i % len(LINE_STYLES)],
        marker=MARKERS[i % len(MARKERS)] if has_marks else None,  # they tell labels apart
        markersize=points(6),
        markevery=(0.04 * (i % 4), 0.2),  # shares of the axes' diagonal, apart from each other
        label=label or "_this fit",
    )


def _loss_label(groups: Iterable[Any]) -> str:
    """What the losses are; a history alone does not tell."""
    losses = {
        loss_of(getattr(fit, "beta_loss", SQUARED.beta)) for fits in groups for fit in _listed(fits)
    }
    only = losses.pop()
    if losses or not only.by_ratios:
        return "relative loss"
    return f"relative deviance ({only.title})"


def _label_axes(ax: Axes, log_x: bool, log_y: bool, label: str) -> None:
    ax.set_xlabel("time (s)")
    ax.set_ylabel(label)
    if not log_x and ax.get_xlim()[0] > 0:
        ax.set_xlim(left=0)  # the time before the first loss is the fit's, too
    if log_x:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(_plainly))
        ax.xaxis.set_minor_formatter(NullFormatter())
    if log_y:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(_plainly))
        # Powers of ten alone would leave the axis bare.
        low, high = ax.get_ylim()
        shown = _plainly if high < _WIDE_LOSSES * low else _round
        few = high < _WIDE_LOSSES**2 * low
        ax.yaxis.set_minor_formatter(FuncFormatter(shown) if few else NullFormatter())
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


def _round(value: float, _: Any = None) -> str:
    """Of the ticks between powers of ten those at 2 and 5."""
    return _plainly(value) if f"{value:e}"[0] in "25" else ""


def _plainly(value: float, _: Any = None) -> str:
    return f"{value:g}"
