"""When motifs occur, and what a signal does around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from motifold.findings.averages import EventAverage
from motifold.findings.order import feature_correlation
from motifold.findings.table import Table
from motifold.plots.printed import Style, column_width, in_style, points
from motifold.plots.style import Features, colour, draw_colorbar, prepared_figure, scale, shades

_IN_A_ROW = 5  # motifs; in print fewer
_LEAST = 1.7  # inches of a motif in print, so that its title can be read
_LINES = 4  # up to so many channels are drawn as lines, more as an image


@in_style
def plot_events(
    events: Table, *, segment: int = 0, ax: Axes | None = None, style: Style | None = None
) -> Axes:
    """Draw the events of one segment: a row for each motif, taller where they are stronger.

    Events that the end of the segment cuts off are dotted, and those are pale of which not all was
    observed.

    Parameters
    ----------
    events : Table
        As from ``motifold.find_events``.
    segment : int, default=0
        Which segment to draw.
    ax : matplotlib.axes.Axes or None
        Where to draw; None makes a new figure.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from motifold.findings import Table
    >>> from motifold.plots import plot_events
    >>> rows = [(0, 1.0), (1, 1.5), (0, 3.0)]
    >>> events = Table([{"motif": m, "segment": 0, "time": t, "strength": 1.0} for m, t in rows])
    >>> [label.get_text() for label in plot_events(events).get_yticklabels()]
    ['motif 0', 'motif 1']
    """
    chosen = events.where(segment=segment)
    motifs = np.unique(events["motif"]).astype(int) if len(events) else np.arange(1)
    if ax is None:
        ax = prepared_figure(None, (9.0, 0.9 + 0.4 * max(len(motifs), 2))).add_subplot()
    for row, k in enumerate(motifs):
        these = chosen.where(motif=int(k))
        strengths = these["strength"].astype(float)
        heights = 0.8 * strengths / (strengths.max() if len(strengths) else 1)
        times = these["time"].astype(float)
        lines = ax.vlines(times, row + 0.4 - heights, row + 0.4, color=colour(int(k)))
        lines.set(linewidth=points(1.5), alpha=_paleness(these), linestyle=_styles(these))
    ax.set_yticks(range(len(motifs)), labels=[f"motif {k}" for k in motifs])
    ax.set_ylim(len(motifs) - 0.4, -0.6)
    ax.set_xlabel("time (bins)" if _in_bins(events) else "time (s)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _in_bins(events: Table) -> bool:
    """Whether they were found without a rate, so that their seconds are bins."""
    if "bin" not in events.columns or len(events) == 0:
        return False
    return bool(np.array_equal(events["time"].astype(float), events["bin"].astype(float)))


def _paleness(events: Table) -> Any:
    """Opacity of each event: that of one which was observed whole is 1."""
    if "observed" not in events.columns or len(events) == 0:
        return None
    return np.clip(events["observed"].astype(float), 0.3, 1)


def _styles(events: Table) -> Any:
    if "partial" not in events.columns or len(events) == 0:
        return "solid"
    return [":" if partial else "-" for partial in events["partial"]]


@in_style
def plot_event_average(
    average: EventAverage,
    *,
    feature_axis: Any = None,
    feature_label: str | None = None,
    figure: Figure | SubFigure | None = None,
    style: Style | None = None,
) -> Figure:
    """Draw what a signal does around the events of each motif.

    Up to four channels are lines with a band of one standard error, a single one in the colours of
    the motifs; more are an image, on a colour scale common to all motifs.

    Parameters
    ----------
    average : EventAverage
        As from ``motifold.event_triggered_average``.
    feature_axis, feature_label
        Of the channels, as in ``plot_motifs``. Without an axis the first channel is at the
        top or, where neighbours are strongly correlated, as frequencies are, at the bottom.
    figure : matplotlib.figure.Figure, SubFigure or None
        Where to draw; None makes a new one.
    style : {"paper", "paper-2"} or None
        As in ``plot_motifs``.

    Returns
    -------
    matplotlib.figure.Figure
        One axes for each motif, labelled (``get_label``) "motif 0", …, and of images "colorbar".

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import Table, event_triggered_average
    >>> from motifold.plots import plot_event_average
    >>> events = Table([{"motif": 0, "segment": 0, "time": 2.0}])
    >>> average = event_triggered_average(np.random.rand(500, 9), events, (-1, 1), rate=100)
    >>> [axes.get_label() for axes in plot_event_average(average).axes]
    ['motif 0', 'colorbar']
    """
    M, _, N = average.mean.shape
    width = column_width()
    most = _IN_A_ROW if width is None else max(1, int(width / _LEAST))
    n_rows = -(-M // most)
    n_columns = -(-M // n_rows)
    figure = prepared_figure(figure, (1.5 + 2.6 * n_columns, 0.4 + 3.0 * n_rows))
    is_image = N > _LINES
    widths = [1] * n_columns + [0.05] * is_image
    grid = figure.add_gridspec(n_rows, len(widths), width_ratios=widths)
    norm = scale(average.mean)
    features = _channels(average, feature_axis, feature_label)
    step = float(average.times[1] - average.times[0])
    span = (float(average.times[0]) - step / 2, float(average.times[-1]) + step / 2)
    first = None
    for m, k in enumerate(average.motifs):
        row, column = divmod(m, n_columns)
        axes = figure.add_subplot(grid[row, column], sharey=first, label=f"motif {k}")
        first = first or axes
        if not is_image:
            _draw_lines(axes, average, m, features)
            axes.tick_params(labelleft=column == 0)
        else:
            image = features.draw_image(axes, average.mean[m], span, **shades(norm))
            features.draw_labels(axes, shown=column == 0)
        axes.axvline(0, color="black", linewidth=1, linestyle=":")
        axes.set_title(f"motif {k}, n = {average.counts[m].max()}", fontsize="medium")
        is_lowest = m + n_columns >= M
        axes.tick_params(labelbottom=is_lowest)
        if is_lowest:
            axes.set_xlabel("time from event (s)")
    if is_image:
        draw_colorbar(figure, image, grid[:, n_columns], "mean value (data units)")
    else:
        assert first is not None
        told = "mean ± standard error (data units)"
        if n_rows == 1:
            first.set_ylabel(told)
        else:
            figure.supylabel(told, fontsize=first.yaxis.label.get_fontsize())
        if N > 1:
            axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _channels(average: EventAverage, feature_axis: Any, feature_label: str | None) -> Features:
    label = feature_label or ("channel" if feature_axis is None else None)
    features = Features.from_options(average.mean.shape[2], feature_axis, label)
    if feature_axis is None and feature_correlation(np.concatenate(average.mean)).shows_an_order:
        return replace(features, upwards=True)
    return features


def _draw_lines(axes: Axes, average: EventAverage, m: int, features: Features) -> None:
    N = average.mean.shape[2]
    for n in range(N):
        mean, error = average.mean[m, :, n], average.standard_error[m, :, n]
        ink = colour(n if N > 1 else int(average.motifs[m]))
        axes.plot(average.times, mean, color=ink, label=f"{features.label} {features.each[n]}")
        axes.fill_between(
            average.times, mean - error, mean + error, color=ink, alpha=0.25, linewidth=0
        )
    axes.spines[["top", "right"]].set_visible(False)
