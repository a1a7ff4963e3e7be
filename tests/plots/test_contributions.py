"""Shares of power and parts of the reconstruction."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from motifold import CNMF
from motifold.plots import plot_contributions


def axes_of(figure: Figure) -> dict[str, Axes]:
    return {str(axes.get_label()): axes for axes in figure.axes}


def bars(figure: Figure) -> np.ndarray:
    return np.array([bar.get_width() for bar in axes_of(figure)["shares"].patches])


def parts_by_hand(model: CNMF) -> np.ndarray:
    """(K, T, N), by the definition of the model."""
    W, H = model.components_, model.activations_
    out = np.zeros((len(W), len(H), W.shape[2]))
    for lag in range(W.shape[1]):
        shifted = H[: len(H) - lag]
        out[:, lag:] += shifted.T[:, :, None] * W[:, lag][:, None]
    return out


def test_rows_are_the_parts_of_each_motif(model: CNMF, X: np.ndarray) -> None:
    axes = axes_of(plot_contributions(model, X, order="own"))
    np.testing.assert_array_equal(axes["data"].images[0].get_array(), X.T)
    for k, part in enumerate(parts_by_hand(model)):
        np.testing.assert_allclose(axes[f"motif {k}"].images[0].get_array(), part.T, atol=1e-12)
    assert len({axes[f"motif {k}"].images[0].get_clim() for k in range(3)}) == 1


def told(figure: Figure) -> str:
    """What is written above the bars."""
    return next(text.get_text() for text in axes_of(figure)["shares"].texts if "Of" in str(text))


def test_bars_are_shares_of_power_and_add_up(model: CNMF, X: np.ndarray) -> None:
    figure = plot_contributions(model, X)
    parts = parts_by_hand(model)
    X_hat, power = parts.sum(axis=0), np.sum(X**2)
    shares = [np.sum((2 * X - X_hat) * part) / power for part in parts]
    overlaps = [np.sum((X_hat - part) * part) / power for part in parts]
    np.testing.assert_allclose(bars(figure), 100 * np.array(shares + overlaps))
    together = 100 * (1 - np.sum((X - X_hat) ** 2) / power)
    assert sum(bars(figure)[:3]) == pytest.approx(together)
    assert f"motifs {together:.1f}%\nnot explained {100 - together:.1f}%" in told(figure)


def test_shares_of_a_stretch_say_so(model: CNMF, X: np.ndarray) -> None:
    assert told(plot_contributions(model, X)).startswith("Of the data's power:")
    stretch = told(plot_contributions(model, X, time_range=(0, 40)))
    assert stretch.startswith("Of the data's power here:")


def test_bars_of_another_loss_are_shares_of_the_deviance(X: np.ndarray) -> None:
    model = CNMF(3, 4, beta_loss=1, random_state=0, max_iter=10, tol=0).fit(X)
    figure = plot_contributions(model, X)
    assert sum(bars(figure)) == pytest.approx(100 * (1 - model.loss_), rel=1e-6)
    assert axes_of(figure)["shares"].get_xlabel() == "share of deviance (%)"
    assert f"not explained {100 * model.loss_:.1f}%" in told(figure)


def test_a_background_is_told_beside_the_motifs(X: np.ndarray) -> None:
    settings = {"random_state": 0, "max_iter": 10, "tol": 0}
    model = CNMF(2, 4, beta_loss=1, background=True, **settings).fit(X + 0.2)
    said = told(plot_contributions(model, X + 0.2))
    lines = re.findall(r"^([a-z ]+) (-?[\d.]+)%", said, re.MULTILINE)
    parts = {name: float(share) for name, share in lines}
    assert set(parts) == {"motifs", "background", "not explained"}
    assert parts["not explained"] == pytest.approx(100 * model.loss_, abs=0.06)
    assert sum(parts.values()) == pytest.approx(100, abs=0.2)


def test_missing_values_do_not_count(model: CNMF, X: np.ndarray) -> None:
    holes = X.copy()
    holes[50:100, ::2] = np.nan
    seen = np.isfinite(holes)
    parts = parts_by_hand(model) * seen
    known, X_hat = np.where(seen, X, 0), parts.sum(axis=0)
    shares = [np.sum((2 * known - X_hat) * part) / np.sum(known**2) for part in parts]
    drawn = bars(plot_contributions(model, holes))[:3]
    np.testing.assert_allclose(drawn, 100 * np.array(shares))


def test_without_data_the_reconstruction_takes_its_place(model: CNMF) -> None:
    figure = plot_contributions(model, order="own")
    X_hat = model.inverse_transform(model.activations_)
    axes = axes_of(figure)
    np.testing.assert_allclose(axes["reconstruction"].images[0].get_array(), X_hat.T)
    assert told(figure).startswith("Of the reconstruction's power:\nmotifs 100.0%")


def test_some_motifs_of_a_stretch(model: CNMF, X: np.ndarray) -> None:
    figure = plot_contributions(model, X, motifs=[2, 0], rate=50, time_range=(1, 3), order="own")
    axes = axes_of(figure)
    drawn = [label for label in axes if label.startswith("motif")]
    assert drawn == ["motif 2", "motif 0"]
    part = parts_by_hand(model)[2, 50:150]
    np.testing.assert_allclose(axes["motif 2"].images[0].get_array(), part.T, atol=1e-12)
    assert axes["motif 0"].get_xlim() == (1, 3)
    assert axes["motif 0"].get_xlabel() == "time (s)"
    X_hat = parts_by_hand(model).sum(axis=0)[50:150]
    share = np.sum((2 * X[50:150] - X_hat) * part) / np.sum(X[50:150] ** 2)
    assert bars(figure)[0] == pytest.approx(100 * share)
    names = [label.get_text() for label in axes["shares"].get_yticklabels()]
    assert names == ["motif 2", "motif 0"]


def test_a_million_bins_are_drawn_in_two_thousand_columns(long_model: CNMF) -> None:
    figure = plot_contributions(long_model, np.zeros((10**6, 3)), order="own")
    axes = axes_of(figure)
    shapes = {ax.images[0].get_array().shape for ax in axes.values() if ax.images}
    assert (3, 2000) in shapes
    assert all(shape[1] <= 2000 for shape in shapes)
    part = np.asarray(axes["motif 0"].images[0].get_array())
    np.testing.assert_allclose(part.max(axis=1), long_model.components_[0].max(axis=0))
    assert "motifs 0.0%" in told(figure)  # of silence nothing can be explained


@pytest.mark.parametrize("motifs", [[], [3], [-1], [0, 0]])
def test_bad_motifs_are_refused(model: CNMF, motifs: list) -> None:
    with pytest.raises(ValueError, match="motifs must be different positions from 0 to 2"):
        plot_contributions(model, motifs=motifs)
