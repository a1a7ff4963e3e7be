"""What the explorer shows, as a figure for print: its pixels, and lines over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from motifold.plots.style import prepared_figure

_WIDTH, _PICTURE, _LANE = 10.0, 3.2, 0.32  # inches
_MARKS = {"accepted": (True, "black"), "rejected": (False, None), "": (True, None)}


@dataclass(frozen=True)
class Panel:
    """One picture: pixels over a stretch of time, and what is written at its axes.

    ``marks`` are (x, y, colour, verdict); ``lines`` are heights.
    """

    pixels: npt.NDArray[Any]  # (rows, columns, 3), the first row on top
    extent: tuple[float, float, float, float]  # left, right, bottom, top
    label: str
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[tuple[float, float, str, str]] = ()
    lines: Sequence[float] = field(default=())


def draw_explored(
    panels: Sequence[Panel],
    span: tuple[float, float],
    ticks: Sequence[tuple[float, str]],
    label: str,
    title: str,
) -> Figure:
    """The panels below each other over one axis of time; the first is the recording."""
    heights = [_PICTURE, *(0.3 + _LANE * panel.extent[3] for panel in panels[1:])]
    figure = prepared_figure(None, (_WIDTH, sum(heights) + 0.8))
    axes = figure.subplots(
        len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw(ax, panel)
    axes[0].set_title(title, fontsize="medium", loc="left", parse_math=False)
    axes[-1].set_xlim(span)
    axes[-1].set_xticks([x for x, _ in ticks], labels=[text for _, text in ticks])
    axes[-1].set_xlabel(label)
    return figure


def _draw(ax: Axes, panel: Panel) -> None:
    ax.imshow(panel.pixels, aspect="auto", extent=panel.extent, interpolation="nearest")
    ax.set_ylim(panel.extent[2], panel.extent[3])
    places = [place for place, _ in panel.ticks]
    ax.set_yticks(places, labels=[text for _, text in panel.ticks], parse_math=False)
    ax.tick_params(axis="y", labelsize="small", length=0 if panel.lines else 3)
    ax.set_ylabel(panel.label)
    for height in panel.lines:
        ax.axhline(height, color="0.3", linewidth=0.7, linestyle=":")
    for x, y, colour, verdict in panel.marks:
        filled, rim = _MARKS[verdict]
        ax.plot(
            x,
            y,
            marker="v",
            markersize=4,
            markerfacecolor=colour if filled else "white",
            markeredgecolor=rim or colour,
            linestyle="none",
            clip_on=False,
        )
