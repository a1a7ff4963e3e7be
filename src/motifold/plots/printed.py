"""Figures for a paper: as wide as a column of print, with type that can be read there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, cast

import matplotlib
from matplotlib.figure import Figure

Style = Literal["paper", "paper-2"]

_WIDTHS = {1: 3.5, 2: 7.2}  # inches of one column of print and of two: 89 and 183 mm
_HIGHEST = 9.0  # inches of a page
_FLATTER = (
    0.6  # a figure narrowed to 1/x is lower by 1/x to this power: type does not shrink so far
)
_COLUMNS = {"paper": 1, "paper-2": 2}
_POINTS = 7.5  # of the type; "small" is 6.2, about the least that journals take
_USUAL_POINTS = 10.0
_LOOK: dict[str, Any] = {
    "font.size": _POINTS,
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "xtick.labelsize": "small",
    "ytick.labelsize": "small",
    "legend.fontsize": "small",
    "legend.handlelength": 1.8,
    "axes.labelpad": 2.0,
    "axes.titlepad": 3.0,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "figure.dpi": 300,
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
} | {
    f"{axis}tick.{which}.{what}": value
    for axis in "xy"
    for which in ("major", "minor")
    for what, value in {"width": 0.6, "size": 2.5, "pad": 2.0}.items()
}

_width: ContextVar[float | None] = ContextVar("width", default=None)
_Parameters = ParamSpec("_Parameters")
_Drawn = TypeVar("_Drawn")


@contextmanager
def paper(columns: Literal[1, 2] = 1) -> Iterator[None]:
    """Make the figures within as wide as one column of print, or as two, in type of 6 to 8 points.

    The same as ``style="paper"`` (or "paper-2") for every picture of the ``with`` block; others
    that are drawn there have its type and lines. Figures are 3.5 or 7.2 inches wide (89 and
    183 mm) and saved with 300 dots per inch: place them in the paper as they are.

    Parameters
    ----------
    columns : {1, 2}, default=1
        How many columns of print the figures fill.

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import paper, plot_motifs
    >>> motifs = make_sequences(300, 20, 3, 8, random_state=0).components
    >>> with paper(columns=2):
    ...     figure = plot_motifs(motifs)
    >>> float(figure.get_size_inches()[0])
    7.2
    """
    if columns not in _WIDTHS:
        raise ValueError(f"columns must be 1 or 2, not {columns!r}.")
    with matplotlib.rc_context(cast(Any, _LOOK)):
        token = _width.set(_WIDTHS[columns])
        try:
            yield
        finally:
            _width.reset(token)


def in_style(draw: Callable[_Parameters, _Drawn]) -> Callable[_Parameters, _Drawn]:
    """A plot function that heeds its argument ``style``, a keyword, and the context ``paper``."""

    @wraps(draw)
    def styled(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Drawn:
        style = kwargs.get("style")
        if style is not None:
            if style not in _COLUMNS:
                raise ValueError(f'style must be "paper", "paper-2" or None, not {style!r}.')
            with paper(_COLUMNS[str(style)]):  # type: ignore[arg-type]
                return _settled(draw(*args, **kwargs))
        drawn = draw(*args, **kwargs)
        return drawn if _width.get() is None else _settled(drawn)

    return styled


def _settled(drawn: Any) -> Any:
    """What was drawn, with the ticks that matplotlib makes as late as a figure is saved."""
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    figure = figure if isinstance(figure, Figure) else figure.get_figure(root=True)
    figure.draw_without_rendering()
    return drawn


def column_width() -> float | None:
    """Inches of the figures that are drawn for a paper; None for others."""
    return _width.get()


def size_of(size: tuple[float, float]) -> tuple[float, float]:
    """Inches of a figure that is ``size`` on a screen."""
    width = _width.get()
    if width is None:
        return size
    return width, min(_HIGHEST, size[1] * (width / size[0]) ** _FLATTER)


def points(size: float) -> float:
    """A width or size in points, smaller where the type is."""
    return size * float(matplotlib.rcParams["font.size"]) / _USUAL_POINTS
