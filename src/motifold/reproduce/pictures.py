"""The two pictures of the demo: sequences that were hidden, and a race of algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.plots import plot_loss
from motifold.plots.style import colour, motif_map, prepared_figure
from motifold.reproduce.hidden import N_LAGS, RATE, Found, Hidden, n_found

_SIZE = (11.0, 7.4)  # inches
_DRAWN = 600  # time bins
_GREY = "0.6"
_ABOVE = 13  # rows above the neurons, for the marks
_SPIKE = 0.15  # of a smoothed spike, that a motif explains where the spike is its own


def draw_story(hidden: Hidden, found: Found) -> Any:
    """Spikes as recorded; the same spikes, sorted and with the sequences in colour; the motifs."""
    drawn = min(_DRAWN, len(hidden.counts))
    figure = prepared_figure(None, _SIZE)
    K, N = len(found.explained), hidden.counts.shape[1]
    grid = figure.add_gridspec(2, K + 1, width_ratios=[9, *[1] * K], height_ratios=[1, 1.18])
    before = figure.add_subplot(grid[0, 0], label="as recorded")
    after = figure.add_subplot(grid[1, 0], label="sorted", sharex=before)
    motifs = [figure.add_subplot(grid[1, 1 + k], label=f"motif {k}") for k in range(K)]

    bins, neurons = np.nonzero(hidden.counts[:drawn])
    _draw_spikes(before, bins, neurons, "0.25")
    owner = owners(hidden, found)[bins, neurons]
    rows = np.argsort(found.order.order)[neurons]
    _draw_spikes(after, bins, rows, [_GREY if k < 0 else colour(int(k)) for k in owner])
    _mark_events(after, found, drawn)
    for k, axes in enumerate(motifs):
        _draw_motif(axes, found, k, N)

    for axes, name in ((before, "neuron, as recorded"), (after, "the same neurons, sorted")):
        axes.set(ylabel=name, yticks=[], xlim=(0, drawn / RATE))
        axes.spines[["top", "right"]].set_visible(False)
    before.set(ylim=(N, -1))
    before.set_title(f"{drawn / RATE:g} seconds of {N} neurons: nothing to be seen", loc="left")
    before.tick_params(labelbottom=False)
    after.set(ylim=(N, -_ABOVE), xlabel="time (s)")
    after.set_title("The same spikes: three sequences recur (▾)", loc="left")
    motifs[0].set_title("What recurs: the motifs", loc="left")
    _say_more(figure.add_subplot(grid[0, 1:], label="numbers"), hidden, found)
    return figure


def owners(hidden: Hidden, found: Found) -> npt.NDArray[np.intp]:
    """The motif of each entry, −1 where it is in none: its neuron's, near an event, explained."""
    T = len(hidden.counts)
    near = np.zeros((len(found.explained), T), dtype=bool)
    for k, first in zip(found.events["motif"], found.events["bin"], strict=True):
        near[int(k), int(first) : int(first) + N_LAGS] = True
    parts = np.where(near[:, :, None], found.explained, 0)
    own = parts[found.order.motif, :, np.arange(parts.shape[2])].T
    return np.where(own > _SPIKE, found.order.motif, -1)


def _draw_spikes(axes: Any, bins: Any, rows: Any, colours: Any) -> None:
    axes.vlines((bins + 0.5) / RATE, rows - 0.1, rows + 0.9, color=colours, linewidth=1.4)


def _mark_events(axes: Any, found: Found, drawn: int) -> None:
    """A mark above the neurons for each event, in a row for each motif."""
    first, motif = found.events["bin"].astype(int), found.events["motif"].astype(int)
    for k in np.unique(motif):
        times = first[(motif == k) & (first < drawn)] / RATE
        axes.scatter(times, np.full(len(times), 3.6 * k - 11), s=38, marker="v", color=colour(k))


def _draw_motif(axes: Any, found: Found, k: int, N: int) -> None:
    image = found.model.components_[k][:, found.order.order].T
    span = (0, N_LAGS / RATE, N, 0)
    axes.imshow(image, aspect="auto", cmap=motif_map(k), extent=span, interpolation="nearest")
    axes.set(ylim=(N, -_ABOVE), yticks=[], xticks=[0, N_LAGS / RATE], xlabel="lag (s)" * (k == 1))
    axes.spines[["top", "right", "left"]].set_visible(False)


def _say_more(axes: Any, hidden: Hidden, found: Found) -> None:
    """What was hidden and what was found of it, in all of the recording."""
    hits, there, false = n_found(hidden, found)
    lines = [
        f"In all {len(hidden.counts) / RATE:g} seconds:",
        f"{there} occurrences hidden,",
        f"{hits} of them found,",
        f"{false} event{'s' * (false != 1)} where none is.",
        "",
        "Which neurons belong",
        "together, in which order",
        "and when was found from",
        "the spikes alone.",
    ]
    axes.axis("off")
    axes.text(0, 1, "\n".join(lines), va="top", linespacing=1.5, transform=axes.transAxes)


def draw_race(fits: dict[str, list[Any]], title: str) -> Any:
    """Loss against time of each algorithm, from the same starts."""
    figure = prepared_figure(None, (7.0, 4.2))
    plot_loss(fits, ax=figure.add_subplot(), title=title, log="both")
    return figure
