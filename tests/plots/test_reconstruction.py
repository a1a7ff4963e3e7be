"""The data above its reconstruction."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.plots import plot_reconstruction


def images(figure) -> dict[str, np.ndarray]:
    return {ax.get_label(): np.asarray(ax.images[0].get_array()).T for ax in figure.axes[:-1]}


def test_images_are_the_arrays(model: CNMF, X: np.ndarray) -> None:
    X_hat = model.inverse_transform(model.activations_)
    given = [(model, X), (X, model), (X, X_hat), (X, [X_hat[:50], X_hat[50:]])]
    figures = [plot_reconstruction(*pair, residual=True, order="own") for pair in given]
    figures.append(plot_reconstruction(X=X, reconstruction=X_hat, residual=True))
    figures.append(plot_reconstruction(X=X, reconstruction=model, residual=True, order="own"))
    for drawn in map(images, figures):
        assert list(drawn) == ["data", "reconstruction", "residual"]
        np.testing.assert_array_equal(drawn["data"], X)
        np.testing.assert_allclose(drawn["reconstruction"], X_hat)
        np.testing.assert_allclose(drawn["residual"], abs(X - X_hat), atol=1e-12)


def test_scale_and_axes_are_shared(model: CNMF, X: np.ndarray) -> None:
    axes = plot_reconstruction(X, model, residual=True).axes[:-1]
    assert len({ax.images[0].get_clim() for ax in axes}) == 1
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert axes[0].get_shared_x_axes().joined(axes[0], axes[2])


def test_a_stretch_in_seconds(model: CNMF, X: np.ndarray) -> None:
    frequencies = np.linspace(0, 1000, 40)
    figure = plot_reconstruction(
        X, model, rate=50, time_range=(1, 2), feature_axis=frequencies, residual=False
    )
    drawn = images(figure)
    np.testing.assert_array_equal(drawn["data"], X[50:100])
    X_hat = model.inverse_transform(model.activations_)
    np.testing.assert_allclose(drawn["reconstruction"], X_hat[50:100])
    assert figure.axes[1].get_xlim() == (1, 2)
    assert figure.axes[1].get_xlabel() == "time (s)"
    assert figure.axes[0].get_ylabel() == "frequency (Hz)"


def test_segments_do_not_leak_and_are_marked(X: np.ndarray) -> None:
    model = CNMF(3, 10, random_state=0, tol=0, max_iter=5).fit(X, lengths=[90, 110])
    figure = plot_reconstruction(model, X, order="own")
    X_hat = model.inverse_transform(model.activations_, lengths=[90, 110])
    np.testing.assert_allclose(images(figure)["reconstruction"], X_hat)
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [90]


def test_a_million_bins_are_drawn_in_two_thousand_columns(long_model: CNMF) -> None:
    X = np.zeros((10**6, 3))
    X[777_777, 2] = 1.0
    figure = plot_reconstruction(long_model, X, residual=True, rate=1000, order="own")
    drawn = images(figure)
    assert {image.shape for image in drawn.values()} == {(2000, 3)}
    assert drawn["data"].argmax() // 3 == 777_777 * 2000 // 10**6
    np.testing.assert_allclose(
        drawn["reconstruction"].max(axis=0), long_model.components_[0].max(axis=0)
    )
    assert figure.axes[0].get_xlim() == (0, 1000)


def test_blocks_leave_no_seams() -> None:
    rng = np.random.default_rng(0)
    model = CNMF(2, 30, random_state=0, tol=0, max_iter=2).fit(rng.random((100, 3)))
    H = rng.random((50_000, 2))  # more than one block
    model.activations_, model.lengths_ = H, [20_000, 30_000]
    X_hat = model.inverse_transform(H, lengths=[20_000, 30_000])
    drawn = images(plot_reconstruction(model, X_hat, residual=True, order="own"))
    np.testing.assert_allclose(drawn["reconstruction"], X_hat.reshape(2000, 25, 3).max(axis=1))
    np.testing.assert_allclose(drawn["residual"], 0, atol=1e-12)


def test_the_reconstruction_is_made_once(model: CNMF, X: np.ndarray, monkeypatch) -> None:
    made = []
    original = CNMF.inverse_transform

    def counting(self, activations, **options):
        made.append(len(activations))
        return original(self, activations, **options)

    monkeypatch.setattr(CNMF, "inverse_transform", counting)
    plot_reconstruction(X, model, residual=True)
    assert sum(made) == len(X)


def test_another_recording_is_refused_with_advice(model: CNMF, X: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"activations=model\.transform\(X\)"):
        plot_reconstruction(model, X[:80])
    with pytest.raises(TypeError, match=r"plot_reconstruction\(model, X\)"):
        plot_reconstruction(model)
    with pytest.raises(ValueError, match="X must have shape"):
        plot_reconstruction(X[0], X[0])
    with pytest.raises(ValueError, match="time_range must"):
        plot_reconstruction(X, model, time_range=(0, 300))
