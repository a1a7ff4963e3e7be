"""Pictures of findings: what is marked, how many panels, what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from motifold.findings import FeatureOrder, Significance, Sweep, Table, event_triggered_average
from motifold.plots import (
    plot_crossover,
    plot_event_average,
    plot_events,
    plot_match,
    plot_motif_lengths,
    plot_n_components,
    plot_raster,
    plot_significance,
)
from motifold.plots.style import colour


def table_of(test_error: bool = True) -> Table:
    """Runs whose test error is lowest, and on which seeds agree best, at three motifs."""
    errors = {1: 0.9, 2: 0.6, 3: 0.3, 4: 0.3, 5: 0.31}
    agreement = {1: 0.0, 2: 0.2, 3: 0.05, 4: 0.2, 5: 0.3}
    return Table(
        [
            {
                "n_components": K,
                "n_lags": L,
                "x_ortho": weight,
                "block": seed,
                "loss": 0.2 + 0.1 * weight,
                "x_ortho_cost": 1 / (weight + 0.01),
                "train_loss": 0.1,
                "test_error": errors[K] if test_error else np.nan,
                "dissx": agreement[K],
                "n_tested": K,
                "n_significant": min(K, 3),
            }
            for K in errors
            for seed in range(2)
            for L in (10, 20)
            for weight in (0.0, 0.1, 1.0, 10.0)
        ]
    )


def sweep_of(test_error: bool = True) -> Sweep:
    motifs = [
        {"n_lags": L, "seed": 0, "motif": 0, "onset": 1, "length": 8, "share": 1.0}
        for L in (10, 20)
    ]
    return Sweep(table_of(test_error), Table(motifs))


def marked(axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text().startswith("suggested")]


def test_the_suggested_number_of_motifs_is_marked_in_every_panel():
    figure = plot_n_components(sweep_of())
    assert [axes.get_label() for axes in figure.axes] == ["test_error", "dissx", "n_significant"]
    assert marked(figure.axes[0]) == ["suggested by this: 3"]
    assert all(marked(axes) == ["suggested: 3"] for axes in figure.axes[1:])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.9, 0.6, 0.3, 0.3, 0.31])


def test_what_is_predicted_is_drawn_where_it_decides():
    found = sweep_of()
    shares = {1: 0.1, 2: 0.2, 3: 0.35, 4: 0.36, 5: 0.36}
    for record in found.table:
        record["predicted"] = shares[record["n_components"]]
    figure = plot_n_components(Sweep(Table(found.table.records), found.motifs))
    assert [axes.get_label() for axes in figure.axes] == ["predicted", "dissx", "n_significant"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), list(shares.values()))
    assert marked(figure.axes[0]) == ["suggested by this: 3"]
    assert all(marked(axes) == ["suggested: 3"] for axes in figure.axes[1:])


def test_the_test_error_is_drawn_too_where_it_decides_over_what_is_predicted():
    found = sweep_of()
    shares = {1: 0.02, 2: 0.023, 3: 0.024, 4: 0.022, 5: 0.021}
    for record in found.table:  # of the first block alone
        record["predicted"] = 2 * shares[record["n_components"]] * (record["block"] == 0)
        record["predicted"] += 0.001 * (record["n_components"] == 3) * record["block"]
    sweep = Sweep(Table(found.table.records), found.motifs)
    assert sweep.evidence["n_components"] == "test_error"
    figure = plot_n_components(sweep)
    labels = ["predicted", "test_error", "dissx", "n_significant"]
    assert [axes.get_label() for axes in figure.axes] == labels
    names = [marked(axes)[0] for axes in figure.axes]
    assert names == ["suggested: 3", "suggested by this: 3", "suggested: 3", "suggested: 3"]


def test_the_axis_says_which_error():
    found = sweep_of()
    assert plot_n_components(found).axes[0].get_ylabel() == "test error (relative)"
    for record in found.table:
        record["beta_loss"] = 1
    by_kl = Sweep(Table(found.table.records), found.motifs)
    assert plot_n_components(by_kl).axes[0].get_ylabel() == "held-out deviance (relative)"


def test_what_was_not_measured_is_left_out():
    figure = plot_n_components(sweep_of(test_error=False))
    assert [axes.get_label() for axes in figure.axes] == ["dissx", "n_significant"]


def test_crossover_and_lengths_are_marked():
    sweep = sweep_of()
    axes = plot_crossover(sweep)
    assert sweep.crossover.suggested in (0.1, 1.0, 10.0)
    assert marked(axes) == [f"suggested: {sweep.crossover.suggested:.3g}"]
    assert axes.get_xscale() == "log"
    figure = plot_motif_lengths(sweep)
    assert [axes.get_label() for axes in figure.axes] == ["length", "onset"]
    assert marked(figure.axes[0]) == ["suggested by this: 10"]
    assert marked(figure.axes[1]) == ["suggested: 10"]


def test_a_suggestion_at_the_end_of_the_range_looks_and_reads_like_it():
    motifs = [
        {"n_lags": L, "seed": 0, "motif": 0, "onset": 0, "length": L, "share": 1.0}
        for L in (10, 20)
    ]
    figure = plot_motif_lengths(Sweep(table_of(), Table(motifs)))
    assert marked(figure.axes[0]) == ["suggested by this: 20,\nthe longest tried"]
    line, inside = figure.axes[0].lines[-1], plot_motif_lengths(sweep_of()).axes[0].lines[-1]
    assert line.is_dashed()
    assert not inside.is_dashed()


def test_the_length_is_suggested_by_the_curve_that_is_drawn():
    sweep = sweep_of()
    for record in sweep.table:
        record["predicted"] = {10: 0.5, 20: 0.8}[record["n_lags"]] - 0.1 * (record["block"] == 1)
    figure = plot_motif_lengths(Sweep(Table(sweep.table.records), sweep.motifs))
    assert [axes.get_label() for axes in figure.axes] == ["predicted", "length", "onset"]
    curve = figure.axes[0].lines[0]
    np.testing.assert_allclose(curve.get_xydata(), [[10, 0.45], [20, 0.75]])
    assert all(len(marked(axes)) == 1 for axes in figure.axes)
    assert figure.axes[0].get_ylim()[1] > 0.9, "the name of the suggestion is above the dots"


def test_numbers_of_motifs_are_whole():
    figure = plot_n_components(sweep_of())
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == list("12345")
    counts = figure.axes[-1].get_yticks()
    np.testing.assert_array_equal(counts, np.round(counts))
    records = [
        record | {"n_components": record["n_components"] + more}
        for more in (0, 5, 10)
        for record in table_of()
    ]
    figure = plot_n_components(Sweep(Table(records), sweep_of().motifs))
    figure.draw_without_rendering()
    ticks = figure.axes[0].get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


@pytest.mark.parametrize("steepness", [0.3, 1.0, 3.0])
def test_no_line_goes_through_the_names_of_the_crossover(steepness):
    table = table_of()
    for record in table:
        record["x_ortho_cost"] = 1 / (record["x_ortho"] + 0.01) ** steepness
    axes = plot_crossover(Sweep(table, sweep_of().motifs))
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    for line in axes.lines:
        path = line.get_path().interpolated(50)
        points = line.get_transform().transform(path.vertices)
        for box in boxes:
            assert not any(box.contains(*point) for point in points), line.get_label()


def test_significant_others_and_untested_look_different():
    null = np.random.default_rng(0).normal(size=(3, 100))
    null[2] = np.nan
    yes, no = np.array([True, False, False]), np.array([True, True, False])
    result = Significance(
        statistic=np.array([4.0, 0.5, 1.0]),
        p_value=np.array([0.01, 0.3, np.nan]),
        tested=no,
        bonferroni=yes,
        holm=yes,
        null=null,
        alpha=0.05,
    )
    axes = plot_significance(result)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["shuffled", "significant", "not significant", "not tested"]
    assert [text.get_text() for text in axes.texts] == ["p = 0.01", "p = 0.3"]
    dots = [found for found in axes.collections if len(found.get_offsets()) and found.get_paths()]
    inks = {
        int(x): to_hex(ink, keep_alpha=False).upper()
        for found in dots
        if found.get_zorder() == 3 and np.isfinite(found.get_offsets()).all()
        for (x, _), ink in zip(found.get_offsets(), found.get_edgecolors(), strict=True)
    }
    assert inks == {k: colour(k).upper() for k in range(3)}, "each dot has its motif's colour"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2"]
    left, right = axes.get_xlim()
    assert left < -0.35, "the first null is as wide as 0.7"
    assert right > 2.35


@pytest.fixture
def events() -> Table:
    rows = [(0, 1.0, 1.0), (2, 1.5, 2.0), (0, 3.0, 0.5)]
    return Table(
        [
            {"motif": m, "segment": 0, "time": t, "bin": int(10 * t), "strength": s}
            for m, t, s in rows
        ]
    )


def test_events_by_motif(events):
    axes = plot_events(events)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["motif 0", "motif 2"]
    segments = axes.collections[0].get_segments()
    assert [segment[0, 0] for segment in segments] == [1.0, 3.0]
    heights = [np.ptp(segment[:, 1]) for segment in segments]
    assert heights[1] == pytest.approx(heights[0] / 2)


def test_events_without_a_rate_are_in_bins(events):
    assert plot_events(events).get_xlabel() == "time (s)"
    for record in events:
        record["time"] = float(record["bin"])
    assert plot_events(events).get_xlabel() == "time (bins)"


def test_averages_say_what_they_are_and_of_which_channel(events):
    rng = np.random.default_rng(0)
    one, two = (
        plot_event_average(event_triggered_average(rng.random((100, n)), events, (-1, 1), rate=20))
        for n in (1, 2)
    )
    assert one.axes[0].get_ylabel() == "mean ± standard error (data units)"
    assert [axes.lines[0].get_color() for axes in one.axes] == [colour(0), colour(2)]
    assert not any(axes.get_legend() for axes in one.axes)
    shown = two.axes[-1].get_legend().get_texts()
    assert [text.get_text() for text in shown] == ["channel 0", "channel 1"]


def test_averages_as_lines_or_images(events):
    few = event_triggered_average(
        np.random.default_rng(0).random((100, 2)), events, (-1, 1), rate=20
    )
    figure = plot_event_average(few)
    assert [axes.get_label() for axes in figure.axes] == ["motif 0", "motif 2"]
    assert not figure.axes[0].images
    many = event_triggered_average(
        np.random.default_rng(0).random((100, 9)), events, (-1, 1), rate=20
    )
    figure = plot_event_average(many)
    image = figure.axes[0].images[0]
    assert figure.axes[-1].get_label() == "colorbar"
    np.testing.assert_array_equal(image.get_array(), many.mean[0].T)


def test_raster_is_sorted(events):
    X = np.random.default_rng(0).random((50, 4))
    order = FeatureOrder(np.array([2, 0, 3, 1]), np.array([0, -1, 0, 2]), np.array([3, -1, 1, 0]))
    figure = plot_raster(X, order, events=events, rate=10)
    data = next(axes for axes in figure.axes if axes.get_label() == "data")
    np.testing.assert_array_equal(data.images[0].get_array(), X[:, [2, 0, 3, 1]].T)
    above = next(axes for axes in figure.axes if axes.get_label() == "events")
    np.testing.assert_allclose(above.collections[0].get_offsets()[:, 0], [1.0, 1.5, 3.0])
    part = plot_raster(X, order, events=events, rate=10, time_range=(1.2, 2.0))
    data, above = (
        next(axes for axes in part.axes if axes.get_label() == label)
        for label in ("data", "events")
    )
    np.testing.assert_allclose(above.collections[0].get_offsets()[:, 0], [1.5])
    np.testing.assert_allclose(data.get_xlim(), (1.15, 1.95), atol=0.06)
    with pytest.raises(ValueError, match="4 features"):
        plot_raster(X[:, :3], order)
    strip = next(axes for axes in figure.axes if axes.get_label() == "motifs")
    assert sorted(text.get_text() for text in strip.texts) == ["0", "2", "none"]
    assert figure.axes[-1].get_label() == "colorbar"
    labels = [axes.get_label() for axes in plot_raster(X, order).axes]
    assert labels == ["motifs", "data", "colorbar"], "without events there is no strip for them"


def test_matched_motifs_are_drawn_below_their_partners_and_shifted_onto_them():
    a = np.zeros((3, 8, 4))
    for k in range(3):
        a[k, 2:4, k] = 1.0
    b = np.roll(a[[2, 0]], 3, axis=1)  # in another order, later, and one is missing
    figure = plot_match(a, b)
    above, below = figure.subfigs
    assert [axes.get_title() for axes in below.axes] == ["motif 1\n1.00", "none", "motif 0\n1.00"]
    assert "how similar" in figure.get_supxlabel()
    for k, axes in enumerate(below.axes):
        drawn, partner = (part.images[0].get_array() for part in (axes, above.axes[k]))
        np.testing.assert_allclose(drawn, 0 if k == 1 else partner)
    with pytest.raises(ValueError, match="same lags"):
        plot_match(a, b[:, :5])


def test_events_that_rest_on_less_look_like_it(events):
    for record, observed, cut in zip(events, (1.0, 0.6, 0.5), (False, True, True), strict=True):
        record |= {"observed": observed, "partial": cut}
    events.columns += ["observed", "partial"]
    whole, other = plot_events(events).collections
    assert whole.get_alpha().tolist() == [1.0, 0.5]
    (_, solid), (_, dotted) = whole.get_linestyles()
    assert solid is None
    assert dotted is not None
    assert other.get_alpha().tolist() == [0.6]
    order = FeatureOrder(np.arange(4), np.array([0, 0, 2, 2]), np.zeros(4, dtype=int))
    figure = plot_raster(np.ones((50, 4)), order, events=events, feature_names=list("abcd"))
    above = next(axes for axes in figure.axes if axes.get_label() == "events")
    assert above.collections[0].get_facecolors()[:, 3].tolist() == [1, 0, 0]  # hollow
    data = next(axes for axes in figure.axes if axes.get_label() == "data")
    assert [label.get_text() for label in data.get_yticklabels()] == list("abcd")
    with pytest.raises(ValueError, match="feature_names"):
        plot_raster(np.ones((50, 4)), order, feature_names=["a"])
    many = FeatureOrder(np.arange(60), np.zeros(60, dtype=int), np.zeros(60, dtype=int))
    crowded = plot_raster(np.ones((50, 60)), many, feature_names=range(60))
    data = next(axes for axes in crowded.axes if axes.get_label() == "data")
    assert not data.yaxis.get_tick_params()["labelright"]


def test_the_average_of_a_spectrogram_is_right_side_up():
    """Neighbours that are correlated have the first at the bottom, others at the top."""
    rng = np.random.default_rng(0)
    events = Table([{"motif": 0, "segment": 0, "time": 2.0}])
    noise = rng.random((500, 40))
    smooth = np.apply_along_axis(np.convolve, 1, noise, np.ones(9), mode="same")
    for signal, upwards in [(smooth, True), (noise, False)]:
        average = event_triggered_average(signal, events, (-1, 1), rate=100)
        bottom, top = plot_event_average(average).axes[0].get_ylim()
        assert (bottom < top) == upwards
    average = event_triggered_average(noise, events, (-1, 1), rate=100)
    figure = plot_event_average(average, feature_axis=np.linspace(0, 4000, 40))
    assert figure.axes[0].get_ylabel() == "frequency (Hz)"
    bottom, top = figure.axes[0].get_ylim()
    assert bottom < top
