"""The grid of motifs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from motifold import CNMF
from motifold.plots import plot_motifs


def test_each_motif_is_drawn_on_its_own_scale(model: CNMF) -> None:
    figure = plot_motifs(model.components_, order="own")
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3
    for axes, motif in zip(figure.axes, model.components_, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), motif.T)
        assert axes.images[0].get_clim() == (0, motif.max())


def test_a_shared_scale_has_a_colour_bar(model: CNMF) -> None:
    figure = plot_motifs(model, shared_scale=True)
    assert [axes.get_label() for axes in figure.axes][-1] == "colorbar"
    limits = {axes.images[0].get_clim() for axes in figure.axes[:3]}
    assert limits == {(0, model.components_.max())}


def test_lags_in_bins_or_seconds(model: CNMF) -> None:
    bins, seconds = plot_motifs(model).axes[0], plot_motifs(model, rate=50).axes[0]
    assert (bins.get_xlabel(), seconds.get_xlabel()) == ("lag (bins)", "lag (s)")
    assert (bins.get_xlim(), seconds.get_xlim()) == ((0, 10), (0, 0.2))
    assert bins.get_ylabel() == "feature (sorted)"


def test_frequencies_run_upwards(model: CNMF) -> None:
    axes = plot_motifs(model, feature_axis=np.linspace(0, 4000, 40)).axes[0]
    assert axes.get_ylim() == (-0.5, 39.5)
    assert axes.get_ylabel() == "frequency (Hz)"


def test_forty_motifs_are_four_rows_of_ten() -> None:
    figure = plot_motifs(np.random.default_rng(0).random((40, 5, 6)))
    places = [axes.get_subplotspec() for axes in figure.axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [
        divmod(k, 10) for k in range(40)
    ]
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes[:10]]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False] * 30 + [True] * 10


def test_a_row_that_is_not_full_leaves_no_motif_without_lags() -> None:
    figure = plot_motifs(np.ones((11, 5, 6)))  # 6 + 5
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False] * 5 + [True] * 6


def test_titles(model: CNMF) -> None:
    figure = plot_motifs(model, titles=["a", "b", "c"])
    assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="titles must name each of the 3"):
        plot_motifs(model, titles=["a"])


def test_draws_into_a_part_of_a_figure(model: CNMF) -> None:
    figure = Figure(layout="constrained")
    left, right = figure.subfigures(1, 2)
    assert plot_motifs(model, figure=left) is left
    plot_motifs(model, figure=right, shared_scale=True)
    figure.draw_without_rendering()
    assert len(figure.axes) == 7


@pytest.mark.parametrize("components", [np.ones((3, 4)), np.ones((0, 3, 4)), CNMF(2, 3), "text"])
def test_what_is_no_set_of_motifs_is_refused(components: object) -> None:
    with pytest.raises(ValueError, match=r"components must be|is not fitted"):
        plot_motifs(components)
