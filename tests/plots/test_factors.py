"""The factor figure: what is drawn where, and that nothing else is touched."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from copy import deepcopy

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.plots import (
    plot_contributions,
    plot_factors,
    plot_loss,
    plot_motifs,
    plot_reconstruction,
)

T, N, K, L = 200, 40, 3, 10
RATE = 50.0


def axes_of(figure: Figure) -> dict[str, Axes]:
    return {str(axes.get_label()): axes for axes in figure.axes}


def image_of(axes: Axes) -> np.ndarray:
    return np.asarray(axes.images[0].get_array())


def test_one_axes_for_everything(model: CNMF, X: np.ndarray) -> None:
    figure = plot_factors(model, X)
    motifs = [f"motif {k}" for k in range(K)]
    assert isinstance(figure, Figure)
    assert list(axes_of(figure)) == [*motifs, "activations", "data", "reconstruction", "colorbar"]
    assert len(figure.axes) == K + 4


def test_without_data_there_is_no_data_panel(model: CNMF) -> None:
    assert len(plot_factors(model).axes) == K + 3


def test_unsorted_images_are_the_arrays(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X, sort_features=False))
    X_hat = model.inverse_transform(model.activations_)
    np.testing.assert_array_equal(image_of(axes["data"]), X.T)
    np.testing.assert_allclose(image_of(axes["reconstruction"]), X_hat.T)
    for k in range(K):
        np.testing.assert_array_equal(image_of(axes[f"motif {k}"]), model.components_[k].T)


def test_data_and_reconstruction_share_scale_and_axes(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X))
    data, fit = axes["data"], axes["reconstruction"]
    assert data.images[0].get_clim() == fit.images[0].get_clim()
    assert data.get_xlim() == fit.get_xlim() == axes["activations"].get_xlim() == (0, T)
    assert data.get_ylim() == fit.get_ylim() == axes["motif 0"].get_ylim() == (N - 0.5, -0.5)


def test_colours_name_the_motifs(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X))
    traces = axes["activations"].lines
    titles = [axes[f"motif {k}"].title for k in range(K)]
    assert [title.get_text() for title in titles] == ["motif 0", "motif 1", "motif 2"]
    assert [line.get_color() for line in traces] == [title.get_color() for title in titles]
    assert len({line.get_color() for line in traces}) == K


def test_time_in_bins(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X, time_range=(50, 120), sort_features=False))
    assert axes["reconstruction"].get_xlabel() == "time (bins)"
    assert axes["motif 2"].get_xlabel() == "lag (bins)"
    assert axes["motif 0"].get_ylabel() == "feature"
    for name in ("data", "reconstruction"):
        assert axes[name].images[0].get_extent()[:2] == [50, 120]
        assert image_of(axes[name]).shape == (N, 70)
    X_hat = model.inverse_transform(model.activations_)
    np.testing.assert_array_equal(image_of(axes["data"]), X[50:120].T)
    np.testing.assert_allclose(image_of(axes["reconstruction"]), X_hat[50:120].T)


def test_time_in_seconds(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X, rate=RATE, time_range=(0.3, 2.3)))
    assert axes["reconstruction"].get_xlabel() == "time (s)"
    assert axes["motif 2"].get_xlabel() == "lag (s)"
    assert axes["data"].images[0].get_extent()[:2] == pytest.approx([0.3, 2.3])
    assert axes["motif 0"].images[0].get_extent()[:2] == pytest.approx([0, L / RATE])
    times = axes["activations"].lines[0].get_xdata()
    assert np.asarray(times)[[0, -1]] == pytest.approx([15.5 / RATE, 114.5 / RATE])


def test_features_are_sorted_by_motif_then_lag(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_factors(model, X))
    motifs = np.stack([image_of(axes[f"motif {k}"]) for k in range(K)])  # (K, N, L)
    power = np.square(motifs).sum(axis=2) * np.square(model.activations_).sum(axis=0)[:, None]
    motif = power.argmax(axis=0)
    lag = motifs[motif, np.arange(N)].argmax(axis=1)
    assert np.all(np.diff(motif * L + lag) >= 0)
    np.testing.assert_array_equal(np.sort(image_of(axes["data"]), axis=0), np.sort(X.T, axis=0))


def test_an_activation_at_the_end_does_not_sort_the_features(model: CNMF, X: np.ndarray) -> None:
    """It may be huge for what little is left of its motif."""
    model = deepcopy(model)
    model.components_[0, 0] = 0
    before = image_of(axes_of(plot_factors(model, X))["data"])
    model.activations_[-1, 0] = 1e6
    np.testing.assert_array_equal(image_of(axes_of(plot_factors(model, X))["data"]), before)


def test_few_features_are_named_in_their_new_order() -> None:
    data = make_sequences(100, 6, 2, 5, random_state=0).X
    model = CNMF(2, 5, random_state=0, tol=0, max_iter=20).fit(data)
    axes = axes_of(plot_factors(model, data))
    order = [int(label.get_text()) for label in axes["motif 0"].get_yticklabels()]
    np.testing.assert_array_equal(image_of(axes["data"]), data[:, order].T)


def test_segments_do_not_leak_and_are_marked(X: np.ndarray) -> None:
    model = CNMF(K, L, random_state=0, tol=0, max_iter=10).fit([X[:90], X[90:]])
    figure = plot_factors(model, [X[:90], X[90:]], time_range=(95, 150), sort_features=False)
    X_hat = model.inverse_transform(model.activations_, lengths=[90, 110])
    drawn = image_of(axes_of(figure)["reconstruction"])
    np.testing.assert_allclose(drawn, X_hat[95:150].T)
    marks = axes_of(plot_factors(model, X))["data"].lines
    assert [line.get_xdata()[0] for line in marks] == [90]


def test_a_motif_cut_off_by_the_end_does_not_flatten_the_lanes(model: CNMF) -> None:
    H = model.activations_.copy()
    H[-1, 0] = 1e6
    lanes = axes_of(plot_factors(model, activations=H))["activations"].lines
    heights = np.stack([np.asarray(line.get_ydata()) for line in lanes], axis=1) - [2, 1, 0]
    largest = H[: T - L + 1].max()
    np.testing.assert_allclose(heights, 0.95 * np.minimum(H / largest, 1), atol=1e-12)


def test_another_recording(model: CNMF, X: np.ndarray) -> None:
    new = X[:80]
    with pytest.raises(ValueError, match=r"activations=model\.transform"):
        plot_factors(model, new)
    axes = axes_of(plot_factors(model, new, activations=model.activations_[:80]))
    assert axes["data"].get_xlim() == (0, 80)


def test_missing_and_dead_parts_are_drawn(model: CNMF, X: np.ndarray) -> None:
    holes = X.copy()
    holes[:20, 3] = np.nan
    silent = CNMF(K, L, random_state=0).fit(np.zeros_like(X))
    for figure in (plot_factors(model, holes), plot_factors(silent, np.zeros_like(X))):
        figure.draw_without_rendering()


def test_activations_that_rest_on_little_are_grey(model: CNMF, X: np.ndarray) -> None:
    T, L = len(X), model.n_lags

    def grey(figure):
        top = next(axes for axes in figure.axes if axes.get_label() == "activations")
        bars = [part for part in top.collections if part.get_label() == "unknown"]
        return [[path.get_extents().intervalx.tolist() for path in b.get_paths()] for b in bars]

    ends = grey(plot_factors(model, X))  # where the motif would be cut off
    assert len(ends) == model.n_components
    assert all(len(lane) == 1 and T - L < lane[0][0] < lane[0][1] == T for lane in ends)
    mask = np.ones(X.shape, dtype=bool)
    mask[50 : 50 + 2 * L] = False
    holes = np.where(mask, X, np.nan)
    for figure in (
        plot_factors(model, X, mask=mask),
        plot_factors(model, holes),
        plot_factors(model, mask=mask),
    ):
        for lane in grey(figure):
            assert len(lane) == 2
            assert 50 - L < lane[0][0] <= 50 < 50 + L <= lane[0][1] <= 50 + 2 * L
    shown = next(a for a in plot_factors(model, X, mask=mask).axes if a.get_label() == "data")
    assert np.isnan(np.ma.filled(shown.images[0].get_array(), np.nan)).sum() == (~mask).sum()
    # A model that was fitted to such data knows it.
    fitted = CNMF(2, L, random_state=0, max_iter=20, tol=0).fit(X, mask=mask)
    assert all(len(lane) == 2 for lane in grey(plot_factors(fitted)))


def test_data_alone_or_reconstruction_alone(model: CNMF, X: np.ndarray) -> None:
    data = axes_of(plot_factors(model, X, show="data"))
    assert "reconstruction" not in data
    assert data["data"].get_xlabel() == "time (bins)"
    assert "data" not in axes_of(plot_factors(model, X, show="reconstruction"))


def test_frequencies_are_not_sorted_and_run_upwards(model: CNMF, X: np.ndarray) -> None:
    frequencies = np.linspace(0, 4000, N)
    axes = axes_of(plot_factors(model, X, feature_axis=frequencies))
    np.testing.assert_array_equal(image_of(axes["data"]), X.T)
    assert axes["data"].get_ylim() == axes["motif 0"].get_ylim() == (-0.5, N - 0.5)
    assert axes["motif 0"].get_ylabel() == "frequency (Hz)"
    axes = axes_of(plot_factors(model, X, feature_axis=frequencies, sort_features=True))
    assert axes["motif 0"].get_ylabel() == "frequency (Hz) (sorted)"


def test_a_million_bins_are_few_points(long_model: CNMF) -> None:
    X = np.zeros((10**6, 3))
    X[10, 1] = 1.0
    axes = axes_of(plot_factors(long_model, X, sort_features=False))
    assert image_of(axes["data"]).shape == image_of(axes["reconstruction"]).shape == (3, 2000)
    assert np.argwhere(image_of(axes["data"])).tolist() == [[1, 0]]
    for line in axes["activations"].lines:
        assert len(line.get_xdata()) == 4000
    first = np.asarray(axes["activations"].lines[0].get_xydata())
    assert first[:, 1].max() == pytest.approx(1.95)  # the one event, in the upper of two lanes
    assert abs(first[first[:, 1].argmax(), 0] - 123_456) <= 500


def test_many_motifs_have_labels_that_do_not_collide() -> None:
    model = CNMF(16, 4, acceleration=None, random_state=0, tol=0, max_iter=2)
    figure = plot_factors(model.fit(np.random.default_rng(0).random((60, 8))), rate=62.5)
    figure.draw_without_rendering()
    axes = [ax for ax in figure.axes if str(ax.get_label()).startswith("motif")]
    boxes = [ax.title.get_window_extent() for ax in axes]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert [bool(ax.get_xlabel()) for ax in axes] == [True] + [False] * 15


@pytest.mark.parametrize(
    "options",
    [
        {"time_range": (10, 10)},
        {"time_range": (-5, 10)},
        {"time_range": (0, T + 1)},
        {"time_range": (0, 10), "rate": RATE},
        {"rate": 0},
        {"show": "data"},
        {"show": "nothing"},
        {"feature_axis": [1, 2]},
        {"activations": np.ones((T, K + 1))},
    ],
)
def test_bad_options_are_refused(model: CNMF, options: dict) -> None:
    with pytest.raises(ValueError, match="must"):
        plot_factors(model, **options)


@pytest.mark.parametrize(
    "draw",
    [
        lambda model, X: plot_factors(model, X),
        lambda model, X: plot_motifs(model, shared_scale=True),
        lambda model, X: plot_loss({"a": [model, model]}).figure,
        lambda model, X: plot_reconstruction(X, model, residual=True),
        lambda model, X: plot_contributions(model, X),
    ],
    ids=["factors", "motifs", "loss", "reconstruction", "contributions"],
)
def test_nothing_else_is_touched(draw: Callable, model: CNMF, X: np.ndarray) -> None:
    arrays = (X, model.components_, model.activations_)
    copies = [array.copy() for array in arrays]
    before, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    draw(model, X).draw_without_rendering()
    assert pyplot.get_fignums() == before
    assert dict(matplotlib.rcParams) == settings
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_draws_into_a_given_figure(model: CNMF, X: np.ndarray) -> None:
    figure = Figure(figsize=(6, 4))
    assert plot_factors(model, X, figure=figure) is figure


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "motifold.plots")
    with pytest.raises(ImportError, match=r'pip install "motifold\[plots\]"'):
        importlib.import_module("motifold.plots")
