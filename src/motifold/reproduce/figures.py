"""The counterparts of the paper's Figures 2 to 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from motifold.files import written_whole
from motifold.findings.matching import match_motifs
from motifold.io import Recording
from motifold.plots import plot_loss, plot_motifs
from motifold.plots.style import Features, prepared_figure
from motifold.plots.style import scale as colour_scale
from motifold.reproduce.experiments import Experiment
from motifold.reproduce.measures import Runs
from motifold.reproduce.runs import ACCELERATIONS, ALGORITHMS, Run

_DPI = 120
_SLICE = 5.0  # seconds of speech beside its curves
_SLICE_START = 60.0
_TITLES = {"published": "as published", "accelerated": "accelerated"}

Recordings = dict[str, Recording]


def draw_figures(
    experiment: Experiment, runs: Sequence[Run], recordings: Recordings, out: Path
) -> list[Path]:
    """Draw the figures of an experiment into the folder ``out``; their paths."""
    paths = []
    for name, draw in _FIGURES[experiment.name].items():
        path = out / f"{name}.png"
        figure = draw(experiment, runs, recordings)
        with written_whole(path) as file:
            figure.savefig(file, format="png", dpi=_DPI)
        paths.append(path)
    return paths


def _draw_losses(panels: Any, experiment: Experiment, runs: Sequence[Run]) -> None:
    """One column for each data set, one row for each form; a column shares its axes."""
    for column, data in enumerate(experiment.data_sets):
        fits = Runs([run for run in runs if run.data == data.name])
        for row, form in enumerate(ACCELERATIONS):
            axes = panels[row][column]
            curves = {name: fits.of(name, form) for name in ALGORITHMS}
            plot_loss(curves, ax=axes, title=f"{data.title}, {_TITLES[form]}", log=None)
            if row or column:
                axes.get_legend().remove()


def _figure_2(experiment: Experiment, runs: Sequence[Run], _: Recordings) -> Any:
    figure = prepared_figure(None, (15, 7))
    panels = figure.subplots(2, len(experiment.data_sets), sharex="col", sharey="col")
    _draw_losses(panels, experiment, runs)
    for axes in panels[0]:
        axes.set_xlabel("")
    for axes in panels[:, 1:].flat:
        axes.set_ylabel("")
    return figure


def _figure_3(experiment: Experiment, runs: Sequence[Run], _: Recordings) -> Any:
    figure = prepared_figure(None, (11, 4.2))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    _draw_losses([[axes] for axes in panels], experiment, runs)
    panels[1].set_ylabel("")
    return figure


def _figure_4(experiment: Experiment, runs: Sequence[Run], recordings: Recordings) -> Any:
    figure = prepared_figure(None, (15, 4.2))
    left, middle, right = figure.subplots(1, 3)
    middle.sharex(left)
    middle.sharey(left)
    _draw_losses([[left], [middle]], experiment, runs)
    middle.set_ylabel("")
    recording = recordings["digits"]
    rate = recording.rate or 1.0
    T = len(recording.X)
    first = min(round(_SLICE_START * rate), max(0, T - round(_SLICE * rate)))
    part = recording.X[first : first + round(_SLICE * rate)]
    features = Features.from_options(part.shape[1], recording.feature_axis, None)
    span = (first / rate, (first + len(part)) / rate)
    features.draw_image(right, part, span, cmap="Greys", norm=colour_scale(part))
    features.draw_labels(right)
    right.set_xlabel("time (s)")
    right.set_title("a slice of the data")
    return figure


def _motifs_of(experiment: Experiment, runs: Sequence[Run], recordings: Recordings) -> Any:
    """A block of motifs for each algorithm, those of the first start, in the order of HALS."""
    data = experiment.data_sets[0]
    recording = recordings[data.name]
    fits = Runs([run for run in runs if run.data == data.name])
    rows = -(-data.K // 10)
    figure = prepared_figure(None, (1.2 + 1.2 * min(max(data.K, 4), 10), 3 * (0.8 + 1.9 * rows)))
    reference = fits.of("HALS")[0].components
    blocks: Any = figure.subfigures(len(ALGORITHMS), 1)
    for block, name in zip(blocks, ALGORITHMS, strict=True):
        motifs = fits.of(name)[0].components
        match = match_motifs(reference, motifs)
        ordered = motifs[match.order]
        titles = [f"{k}" for k in range(data.K)]
        if name != "HALS":
            titles = [
                f"{k} ({score:.2f})"
                for k, score in zip(titles, match.similarity.tolist(), strict=True)
            ]
        plot_motifs(
            ordered,
            rate=recording.rate,
            feature_axis=recording.feature_axis,
            feature_label=data.feature_label,
            titles=titles,
            figure=block,
        )
        note = "" if name == "HALS" else " (in brackets: similarity to the motif of HALS)"
        block.suptitle(f"{name}{note}", fontweight="bold")
    return figure


_Draw = Callable[[Experiment, Sequence[Run], Recordings], Any]
_FIGURES: dict[str, dict[str, _Draw]] = {
    "synthetic": {"figure2": _figure_2},
    "songbird": {"figure3": _figure_3, "songbird_motifs": _motifs_of},
    "speech": {"figure4": _figure_4, "figure5": _motifs_of},
}
