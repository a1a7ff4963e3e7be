"""Chunks packed with deflate: as HDF5 reads them, and none takes more memory than it should."""

from __future__ import annotations

import tracemalloc
import zlib

import h5py
import numpy as np
import pytest

from motifold.io import RecordingError, read
from motifold.io.h5_chunks import PackedChunks, unpacks_here


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "u1", "?"])
@pytest.mark.parametrize(
    "packing",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"compression": "gzip", "scaleoffset": None},
    ],
)
def test_chunks_are_read_as_hdf5_does(tmp_path, dtype, packing):
    X = (np.random.default_rng(0).random((50, 7)) * 100).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("X", (53, 7), dtype, chunks=(16, 3), fillvalue=1, **packing)
        dataset[:20] = X[:20]  # the last rows of chunks are never written
        mine = PackedChunks(dataset, tmp_path)
        np.testing.assert_array_equal(np.asarray(mine), dataset[:])
        for tile in (np.s_[3:40], np.s_[:, 2:5], np.s_[17:18, 6:7], np.s_[60:70], np.s_[4:4]):
            np.testing.assert_array_equal(mine[tile], dataset[tile])
            assert mine[tile].dtype == dataset.dtype


def test_a_chunk_that_was_left_unpacked(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("X", (4, 3), "<f8", chunks=(4, 3), compression="gzip")
        X = np.arange(12.0).reshape(4, 3)
        dataset.id.write_direct_chunk((0, 0), X.tobytes(), filter_mask=1)
        np.testing.assert_array_equal(PackedChunks(dataset, tmp_path)[:], X)


def test_of_a_file_it_is_the_one_that_is_used(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        assert unpacks_here(file.create_dataset("a", (4, 3), "f4", compression="gzip"))
        assert not unpacks_here(file.create_dataset("b", (4, 3), "f4", compression="lzf"))
        assert not unpacks_here(file.create_dataset("c", (4, 3), "f4"))


@pytest.mark.parametrize("fletcher32", [False, True])
@pytest.mark.parametrize("long", [False, True])
def test_a_chunk_that_unpacks_to_more(tmp_path, fletcher32, long):
    """64 kB of a stream that unpacks to 64 MB, in a place where 8 kB should be."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset(
            "X", (4096, 4), "<f8", chunks=(256, 4), compression="gzip", fletcher32=fletcher32
        )
        packed = zlib.compress(bytes(64_000_000)) + bytes(100_000 if long else 0)
        dataset.id.write_direct_chunk((0, 0), packed)
    recording = read(tmp_path / "a.h5")
    tracemalloc.start()
    with pytest.raises(RecordingError, match="damaged, or made to take much memory"):
        np.asarray(recording.X)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["cut", "short"])
def test_a_chunk_that_lacks_something(tmp_path, kind):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("X", (256, 4), "<f8", chunks=(256, 4), compression="gzip")
        packed = zlib.compress(bytes(256 * 4 * 8 if kind == "cut" else 80))
        dataset.id.write_direct_chunk((0, 0), packed[:-5] if kind == "cut" else packed)
    with pytest.raises(RecordingError, match="damaged"):
        np.asarray(read(tmp_path / "a.h5").X)


def test_chunks_that_are_huge(tmp_path):
    """One chunk of 360 MB, stored in 350 kB, would be unpacked whole for its first row."""
    shape = 45_000, 1000
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (10, 5), "<f8", chunks=shape, maxshape=(None, None))
    with pytest.raises(RecordingError, match="unpack to 360000000 bytes"):
        read(path)
    assert read(path, max_bytes=10**9).shape == (10, 5)
