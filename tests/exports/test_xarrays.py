"""Named axes and units."""

import numpy as np
import pytest

from motifold import CNMF

xarray = pytest.importorskip("xarray")


@pytest.fixture
def fitted():
    X = np.random.default_rng(0).random((30, 4))
    mask = np.ones((30, 4), bool)
    mask[3:6, 1] = False
    return CNMF(2, 3, random_state=0, max_iter=5, tol=0).fit(X, mask=mask, lengths=[10, 20])


def test_axes_have_names_and_units(fitted):
    fitted.origin_ = {"source": "x.npy", "rate": 50.0, "options": {}, "starts": [1.0, 7.0]}
    data = fitted.to_xarray()
    assert isinstance(data, xarray.Dataset)
    assert data["components"].dims == ("component", "lag", "feature")
    assert data["time"].attrs["units"] == data["lag"].attrs["units"] == "s"
    assert data["time"].values[[0, 9, 10]].tolist() == [1.0, 1.18, 7.0]
    np.testing.assert_array_equal(data["activations"].values, fitted.activations_)
    np.testing.assert_array_equal(data["observed"].values, fitted.observed_)
    assert data["segment"].values.tolist() == [0] * 10 + [1] * 20
    assert data.attrs["loss"] == fitted.loss_


def test_it_goes_into_a_netcdf_file_and_comes_back(fitted, tmp_path):
    fitted.origin_ = {"source": "x.npy", "rate": 50.0, "options": {}, "starts": [1.0, 7.0]}
    fitted.feature_names_in_ = np.array(["a", "b", "c", "d"], object)
    data = fitted.to_xarray()
    data.to_netcdf(tmp_path / "model.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "model.nc", engine="scipy") as again:
        xarray.testing.assert_equal(again, data)
        assert again.attrs["loss"] == fitted.loss_
        assert again["time"].attrs["units"] == "s"


def test_without_a_rate_times_are_bins(fitted):
    data = fitted.to_xarray()
    assert data["time"].attrs["units"] == "bins"
    assert data["time"].values.tolist() == list(range(30))
    assert "rate" not in data.attrs


def test_names_select(fitted):
    fitted.feature_names_in_ = np.array(["a", "b", "c", "d"], object)
    chosen = fitted.to_xarray()["components"].sel(feature="c", component=1)
    np.testing.assert_array_equal(chosen.values, fitted.components_[1, :, 2])
