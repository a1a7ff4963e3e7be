"""Recordings that are larger than memory_limit stay on disk, and are told of by their names."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.io import RecordingError, read
from motifold.io.matrices import LazyMatrix

zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")

T, N, K, L = 2000, 60, 2, 5
LIMIT = "400KB"  # X takes 480 KB, the activations 240


def recording() -> np.ndarray:
    return make_sequences(T, N, K, L, noise=0.05, random_state=0).X.astype(np.float32)


def stored(folder, X, *, turned: bool = False, version: int = 3):
    path = folder / "x.zarr"
    X = X.T if turned else X
    chunks = (7, 50) if turned else (50, 7)
    array = zarr.create_array(
        str(path), shape=X.shape, chunks=chunks, dtype=X.dtype, zarr_format=version
    )
    array[:] = X
    return path


def packed(folder, X):
    path = folder / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(64, 60), compression="gzip")
    return path


def test_small_ones_are_read_large_ones_stay(tmp_path):
    found = read(stored(tmp_path, recording()))
    assert isinstance(found.checked().X, np.ndarray)
    large = found.checked(memory_limit=LIMIT)
    assert isinstance(large.X, LazyMatrix)
    np.testing.assert_array_equal(np.asarray(large.X), recording())


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_a_fit_is_that_of_an_array(tmp_path, turned, version):
    X = recording()
    options = {"random_state": 0, "max_iter": 3, "tol": 0, "memory_limit": LIMIT}
    orientation = "features_first" if turned else "time_first"
    path = stored(tmp_path, X, turned=turned, version=version)
    found = read(path, rate=50.0, orientation=orientation)
    model = CNMF(K, L, **options).fit(found)
    plain = CNMF(K, L, **options).fit(X)
    np.testing.assert_array_equal(model.components_, plain.components_)
    np.testing.assert_array_equal(model.activations_, plain.activations_)
    assert model.origin_["source"] == str(path)
    np.testing.assert_array_equal(model.transform(found), plain.transform(X))


def test_hdf5_with_whole_numbers(tmp_path):
    X = np.rint(10 * recording()).astype(np.uint8)
    options = {"random_state": 0, "max_iter": 2, "tol": 0, "memory_limit": "600KB"}
    model = CNMF(K, L, **options).fit(read(packed(tmp_path, X)))
    plain = CNMF(K, L, **options).fit(X)
    np.testing.assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize("how", ["clip", "shift"])
def test_negatives_are_changed_as_they_are_read(tmp_path, how):
    X = recording()
    X[3, 4], X[100, 7] = -2, np.nan
    found = read(stored(tmp_path, X)).checked(how, missing="mask", memory_limit=LIMIT)
    plain = read(tmp_path / "x.zarr").checked(how, missing="mask")
    assert isinstance(found.X, LazyMatrix)
    np.testing.assert_array_equal(np.asarray(found.X), plain.X)
    np.testing.assert_array_equal(found.mask, plain.mask)


def test_missing_entries(tmp_path):
    X = recording()
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    options = {"random_state": 0, "max_iter": 2, "tol": 0}
    found = read(stored(tmp_path, X), missing="mask")
    model = CNMF(K, L, memory_limit=LIMIT, **options).fit(found)
    plain = CNMF(K, L, **options).fit(X, mask=~np.isnan(X))
    np.testing.assert_array_equal(model.components_, plain.components_)


def test_bad_values_name_the_file_and_the_option(tmp_path):
    X = recording()
    X[1234, 5] = np.nan
    found = read(stored(tmp_path, X))
    with pytest.raises(RecordingError, match=r"x\.zarr: .*row 1234, column 5.*missing=.mask") as e:
        CNMF(K, L, memory_limit=LIMIT).fit(found)
    assert "argument mask" not in str(e.value)


def test_a_damaged_chunk_names_the_file_and_its_place(tmp_path):
    found = read(stored(tmp_path, recording()))
    (tmp_path / "x.zarr" / "c" / "11" / "3").write_bytes(b"?")
    with pytest.raises(RecordingError, match=r"x\.zarr: rows 550 to 599 .*chunk 11, 3"):
        CNMF(K, L, memory_limit=LIMIT).fit(found)


def test_activations_that_take_too_much_are_told(tmp_path):
    found = read(stored(tmp_path, recording()))
    with pytest.raises(ValueError, match=r"memory_limit='200KB': the activations, 2000 bins × 2"):
        CNMF(K, L, memory_limit="200KB").fit(found)


def test_parquet_stays_on_disk(tmp_path):
    polars = pytest.importorskip("polars")
    X = recording()
    names = [f"unit {n}" for n in range(N)]
    path = tmp_path / "x.parquet"
    polars.DataFrame(X, schema=names).write_parquet(path, row_group_size=300)
    found = read(path)
    large = found.checked(memory_limit=LIMIT)
    assert isinstance(large.X, LazyMatrix)
    np.testing.assert_array_equal(large.X.tile(slice(290, 610), slice(3, 9)), X[290:610, 3:9])
    assert found.feature_names == tuple(names)
    options = {"random_state": 0, "max_iter": 3, "tol": 0, "memory_limit": LIMIT}
    model, plain = CNMF(K, L, **options).fit(found), CNMF(K, L, **options).fit(X)
    np.testing.assert_array_equal(model.components_, plain.components_)
    np.testing.assert_array_equal(model.activations_, plain.activations_)
