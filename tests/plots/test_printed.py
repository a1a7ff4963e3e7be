"""Figures for a paper: of a column's width, all type of a size that can be read there."""

from __future__ import annotations

from itertools import combinations, pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import motifold
from motifold import CNMF
from motifold.findings import Significance, Table
from motifold.plots import (
    paper,
    plot_consensus,
    plot_contributions,
    plot_crossover,
    plot_event_average,
    plot_events,
    plot_factors,
    plot_loss,
    plot_match,
    plot_motif_lengths,
    plot_motifs,
    plot_n_components,
    plot_raster,
    plot_reconstruction,
    plot_significance,
)

EVENTS = Table(
    [
        {"motif": k, "segment": 0, "time": t, "bin": t, "strength": 1.0}
        for k, t in [(0, 20), (1, 90)]
    ]
)
PICTURES = {
    plot_factors: lambda model, X: (model, X),
    plot_motifs: lambda model, X: (model,),
    plot_contributions: lambda model, X: (model, X),
    plot_reconstruction: lambda model, X: (model, X),
    plot_match: lambda model, X: (model, model),
    plot_consensus: lambda model, X: (motifold.find_consensus([model, model]),),
    plot_raster: lambda model, X: (model, X),
    plot_loss: lambda model, X: (model,),
    plot_events: lambda model, X: (EVENTS,),
    plot_event_average: lambda model, X: (
        motifold.event_triggered_average(X, EVENTS, (-5, 5), rate=1),
    ),
    plot_significance: lambda model, X: (motifold.significance(X, model, n_null=60),),
}


def swept(X, **grid):
    quick = {"n_seeds": 2, "tol": 0.1, "n_null": 60, "n_jobs": 1, "progress": False}
    return (motifold.sweep(X, **{"n_components": 3, "n_lags": 5} | quick | grid),)


PICTURES |= {
    plot_n_components: lambda model, X: swept(X, n_components=[1, 2, 3]),
    plot_motif_lengths: lambda model, X: swept(X, n_lags=[3, 5, 7]),
    plot_crossover: lambda model, X: swept(X, x_ortho=[1e-4, 1e-2, 1], test=None, n_null=0),
}


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def written(figure: Figure) -> list[Text]:
    """All texts but those of ticks, some of which lie outside and are not drawn."""
    ticks = {
        label for axes in figure.findobj(Axes) for axis in (axes.xaxis, axes.yaxis)
        for which in ("major", "minor") for label in axis.get_ticklabels(which=which)
    }  # fmt: skip
    return [text for text in texts(figure) if text not in ticks]


def collisions(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts of which one is drawn over the other; ticks keep apart by themselves."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in written(figure)]
    return [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.parametrize("draw", PICTURES, ids=lambda draw: draw.__name__)
def test_every_picture_fits_a_column_and_can_be_read_there(draw, model, X):
    arguments = PICTURES[draw](model, X)
    for style, width in {"paper": 3.5, "paper-2": 7.2}.items():
        found = draw(*arguments, style=style)
        figure = found if isinstance(found, Figure) else found.figure
        assert figure.get_figwidth() == width
        assert figure.get_figheight() < 9.1
        figure.draw_without_rendering()  # as late as a figure is saved, outside of the style
        sizes = [text.get_fontsize() for text in texts(figure)]
        assert min(sizes) >= 6
        assert max(sizes) <= 8
        edge = 0.02
        box = figure.get_tightbbox()
        assert box.x0 > -edge
        assert box.x1 < width + edge
        inside = [text.get_window_extent() for axes in figure.axes for text in axes.texts]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in inside)
        assert collisions(figure) == []
    assert matplotlib.rcParams["font.size"] == 10, "the style has left something behind"


def test_the_context_is_the_same_for_all_pictures_within(model):
    with paper():
        within = plot_motifs(model)
    asked = plot_motifs(model, style="paper")
    assert within.get_size_inches().tolist() == asked.get_size_inches().tolist()
    assert {t.get_fontsize() for t in texts(within)} == {t.get_fontsize() for t in texts(asked)}
    given = Figure(figsize=(5, 5))
    plot_motifs(model, figure=given, style="paper")
    assert given.get_size_inches().tolist() == [5, 5], "a given figure keeps its size"


def test_titles_of_motifs_do_not_collide(X):
    motifs = np.random.default_rng(0).random((9, 5, 6))
    figure = plot_motifs(motifs, style="paper")
    figure.draw_without_rendering()
    rows = {}
    for axes in figure.axes:
        rows.setdefault(axes.get_subplotspec().rowspan.start, []).append(axes)
    for row in rows.values():
        boxes = [axes.title.get_window_extent() for axes in row]
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_many_motifs_do_not_collide_either(X):
    """P-values stand upright where there is no room, and the strip's numbers beside its label."""
    model = CNMF(9, 5, max_iter=5, tol=0, random_state=0).fit(X)
    model.components_[:, :, 0] = 0  # a feature in no motif
    many = np.random.default_rng(0).random((18, 5, 6))
    assert plot_match(many, many).get_figwidth() < 14  # in rows, as plot_motifs
    null = np.random.default_rng(0).normal(size=(9, 300))
    yes = np.ones(9, dtype=bool)
    found = Significance(null[:, 0] + 4, np.full(9, 0.0033), yes, yes, yes, null, 0.05)
    for figure in (
        plot_match(model, model, style="paper"),
        plot_match(model, model, style="paper-2"),
        plot_match(many, many),
        plot_significance(found, style="paper").figure,
        plot_raster(model, X, style="paper"),
        plot_contributions(model, X, style="paper"),
    ):
        figure.draw_without_rendering()
        assert collisions(figure) == []


@pytest.mark.parametrize("n_channels", [1, 9], ids=["lines", "image"])
def test_averages_of_many_motifs_stand_in_rows(n_channels):
    signal = np.random.default_rng(0).random((400, n_channels))
    times = np.random.default_rng(1).integers(20, 380, 500)
    records = [{"motif": i % 7, "segment": 0, "time": float(t)} for i, t in enumerate(times)]
    average = motifold.event_triggered_average(signal, Table(records), (-9, 15), rate=1)
    for style in (None, "paper", "paper-2"):
        figure = plot_event_average(average, style=style)
        figure.draw_without_rendering()
        assert figure.get_figwidth() < 16
        assert collisions(figure) == []
        for text in written(figure):
            box = text.get_window_extent()
            assert box.y0 >= 0, (style, text)
            assert box.y1 <= figure.bbox.y1, (style, text)


def test_what_is_suggested_is_named_where_no_dot_is(X):
    """Neither a run nor a mean lies below the name, wherever the suggestion is."""
    (by_number,) = swept(X, n_components=[1, 2, 3, 4])
    (by_length,) = swept(X, n_lags=[3, 5, 7, 9])
    for draw, found, name in (
        (plot_n_components, by_number, "n_components"),
        (plot_motif_lengths, by_length, "n_lags"),
    ):
        for value in np.unique(found.table[name])[1:]:
            found.suggested[name] = value
            for style in (None, "paper", "paper-2"):
                figure = draw(found, style=style)
                figure.draw_without_rendering()
                for axes in figure.axes:
                    (box,) = [
                        text.get_window_extent()
                        for text in axes.texts
                        if text.get_text().startswith("suggested")
                    ]
                    curve = next(line for line in axes.lines if line.get_linestyle() != ":")
                    dots = [*axes.collections[0].get_offsets(), *curve.get_xydata()]
                    places = axes.transData.transform(np.array(dots, dtype=float))
                    assert not box.count_contains(places), (value, style, axes.get_label())


def test_other_styles_are_refused(model):
    with pytest.raises(ValueError, match='style must be "paper"'):
        plot_motifs(model, style="poster")
    with pytest.raises(ValueError, match="columns must be 1 or 2"), paper(3):
        pass
