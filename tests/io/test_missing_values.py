"""What is missing in a file: NaN, what the file declares to be missing, and what only looks so."""

from __future__ import annotations

import base64
import re
import struct
import warnings

import h5py
import numpy as np
import pandas
import pytest
import xarray
import zarr

from motifold.io import Recording, RecordingError, from_frame, from_xarray, read

GOOD = np.round(np.random.default_rng(0).random((40, 5)), 3) + 0.001
HIDDEN = np.arange(200).reshape(40, 5) % 7 == 3


def check(recording, good=GOOD):
    """Missing where it should be, and refused unless it is told so."""
    with pytest.raises(RecordingError, match=r'contains NaN, first at row 0, column 3.*missing="'):
        recording().checked()
    found = recording().checked(missing="mask")
    np.testing.assert_array_equal(found.mask, ~HIDDEN)
    np.testing.assert_allclose(found.X[~HIDDEN], good[~HIDDEN], rtol=1e-6)


@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
@pytest.mark.parametrize("packing", [{}, {"compression": "gzip"}, {"chunks": (8, 5)}])
@pytest.mark.parametrize(
    ("fill", "dtype"), [(-9999.0, "<f8"), (1e20, "<f4"), (-1, "<i2"), (255, "u1")]
)
def test_hdf5(tmp_path, name, packing, fill, dtype):
    path, good = tmp_path / "a.h5", np.round(100 * GOOD).astype(dtype)
    with h5py.File(path, "w") as file:
        values = np.where(HIDDEN, np.asarray(fill, dtype), good)
        dataset = file.create_dataset("X", data=values, **packing)
        dataset.attrs[name] = np.array([fill])  # of another type than the data, at times
    check(lambda: read(path), good)
    with pytest.raises(RecordingError, match=re.escape(f"{fill:g} counts")):
        read(path).checked()
    blocks = np.concatenate([*read(path).X.blocks()])
    np.testing.assert_array_equal(np.isnan(blocks), HIDDEN)
    np.testing.assert_array_equal(np.isnan(read(path).X[5:9]), HIDDEN[5:9])


def test_hdf5_that_declares_what_never_occurs(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=GOOD).attrs["_FillValue"] = -9999.0
        file["X"].attrs["missing_value"] = "none"
    assert read(tmp_path / "a.h5").checked().mask is None


def as_base64(value):
    return base64.b64encode(struct.pack("<d", value)).decode()


@pytest.mark.parametrize("declared", [-9999.0, as_base64(-9999.0), "-9999"])
def test_zarr_attributes(tmp_path, declared):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(path, shape=GOOD.shape, chunks=(8, 5), dtype="<f8")
    array[:] = np.where(HIDDEN, -9999.0, GOOD)
    array.attrs["_FillValue"] = declared
    check(lambda: read(path))


@pytest.mark.parametrize("by_xarray", [True, False])
def test_zarr_2_of_xarray(tmp_path, by_xarray):
    """There the fill of the array itself says it; of other arrays it says nothing."""
    path = tmp_path / "a.zarr"
    array = zarr.create_array(
        path, shape=GOOD.shape, chunks=(8, 5), dtype="<f8", fill_value=1e9, zarr_format=2
    )
    array[:] = np.where(HIDDEN, 1e9, GOOD)
    if by_xarray:
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "neuron"]
        check(lambda: read(path))
    else:
        assert read(path).checked().mask is None


@pytest.mark.parametrize("dtype", ["<f8", "<i4"])
def test_xarray(dtype):
    values = np.where(HIDDEN, -9999, np.round(100 * GOOD)).astype(dtype)
    array = xarray.DataArray(values, dims=("time", "neuron"), attrs={"_FillValue": -9999})
    check(lambda: from_xarray(array), np.round(100 * GOOD))


@pytest.mark.parametrize("dtype", ["Float64", "Int16", "boolean", "float64"])
def test_pandas(dtype):
    good = np.round(GOOD) if dtype == "boolean" else np.round(100 * GOOD)
    frame = pandas.DataFrame(np.where(HIDDEN, np.nan, good)).astype(dtype)
    check(lambda: from_frame(frame), good)


# --- negative values --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [*(f"i{size}" for size in (1, 2, 4, 8)), "f2", "f4", "f8", "u1", "u2", "u4", "u8", "?"]
)
@pytest.mark.parametrize("from_file", [True, False])
def test_shift_in_every_type(tmp_path, dtype, from_file):
    rng, dtype = np.random.default_rng(0), np.dtype(dtype)
    top = np.finfo(dtype).max if dtype.kind == "f" else 1.0
    top = np.iinfo(dtype).max if dtype.kind in "iu" else min(float(top), 1e5)
    low = -0.9 if dtype.kind in "if" else 0.2
    X = (rng.uniform(low, 0.9, (30, 4)) * top).astype(dtype)
    expected = X.astype(np.float64) - min(0, X.astype(np.float64).min())
    np.save(tmp_path / "a.npy", X)
    recording = read(tmp_path / "a.npy") if from_file else Recording(X, "made up")
    found = recording.checked("shift").X
    assert found.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * expected.max())
    np.testing.assert_array_equal(recording.X, X)  # which is not changed


def test_the_error_names_the_choices():
    with pytest.raises(
        RecordingError, match=r'negatives="clip".*"shift" \(.*what was zero'
    ) as caught:
        Recording(GOOD - 0.5, "made up").checked()
    assert str(caught.value).index("clip") < str(caught.value).index("shift")


@pytest.mark.parametrize("negatives", ["clip", "shift"])
def test_what_stands_for_missing_is_not_shifted_in_silence(negatives):
    X = np.where(HIDDEN, -9999.0, GOOD)
    with pytest.warns(UserWarning, match="made up: -9999 often stands for a missing value"):
        Recording(X, "made up").checked(negatives)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Recording(GOOD - 0.5, "made up").checked(negatives)
