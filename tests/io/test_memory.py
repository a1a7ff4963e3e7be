"""What is taken of memory: as much as the data needs, and an error before a file takes more."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager

import h5py
import numpy as np
import polars
import pytest
import zarr
from scipy.signal import stft

from motifold import CNMF, fit_with_checkpoint
from motifold.files.archive import read_npz, write_npz
from motifold.io import RecordingError, read
from motifold.spectra import transform


@contextmanager
def at_most(nbytes):
    """What is allocated inside, by Python and NumPy."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < nbytes
    finally:
        tracemalloc.stop()


# --- sound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("subtype", ["PCM_16", "DOUBLE"])
def test_a_sound_in_blocks_has_the_bits_of_the_whole(tmp_path, monkeypatch, channels, subtype):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.wav"
    wave = 0.1 * np.random.default_rng(0).standard_normal((200_001, channels))
    soundfile.write(path, wave, 8000, subtype=subtype)
    mono = soundfile.read(path, always_2d=True)[0].mean(axis=1)
    padded = np.pad(mono, 256)  # the middle of window t is at t · 128 samples
    whole = stft(padded, nperseg=512, noverlap=384, boundary=None, padded=False)[2]
    magnitude = np.abs(np.ascontiguousarray(whole.T))
    options = {"window": 512, "hop": 128}
    blocks = read(path, scale="magnitude", **options).X
    np.testing.assert_allclose(blocks, magnitude, rtol=1e-9, atol=1e-15)
    monkeypatch.setattr(transform, "_BLOCK_BYTES", 2**40)
    np.testing.assert_array_equal(read(path, scale="magnitude", **options).X, blocks)
    floor = float(np.log(blocks.min() + 1e-6))
    np.testing.assert_array_equal(
        read(path, scale="log", **options).X, np.log(blocks + 1e-6) - floor
    )


def test_a_sound_takes_what_its_spectrogram_does(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    samples = 2_000_000
    soundfile.write(tmp_path / "a.wav", np.zeros(samples, np.int16), 8000)
    expected = samples // 128 * 257 * 8
    with at_most(expected + 4 * samples + 40e6):
        assert read(tmp_path / "a.wav").X.nbytes == pytest.approx(expected, rel=1e-2)


def test_a_spectrogram_that_is_too_large_is_refused_before(tmp_path):
    """Little sound, and hops of one sample."""
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.flac", np.zeros(400_000, np.int16), 8000)
    with at_most(5e6), pytest.raises(RecordingError, match="set max_bytes"):
        read(tmp_path / "a.flac", hop=1)


# --- tables, spikes, chunks -------------------------------------------------------------------


def test_parquet_in_blocks(tmp_path, monkeypatch):
    from motifold.io import matrices

    monkeypatch.setattr(matrices, "_BLOCK_BYTES", 8 * 3 * 16)
    X = np.random.default_rng(0).random((100, 3))
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": np.arange(100) / 10})
    frame = frame.with_columns(n=polars.when(polars.int_range(100) == 50).then(None).otherwise(1))
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=30)
    recording = read(tmp_path / "a.parquet", time="t", missing="mask")
    assert recording.feature_names == ("a", "b", "n")
    assert recording.rate == pytest.approx(10)
    np.testing.assert_array_equal(recording.X[:, :2], X[:, :2])
    np.testing.assert_array_equal(np.asarray(recording.X)[:, :2], X[:, :2])
    np.testing.assert_array_equal(np.isnan(recording.X[:, 2]), np.arange(100) == 50)
    np.testing.assert_array_equal(recording.X[::7], recording.X[:][::7])
    with pytest.raises(RecordingError, match="no column 'clock'; it has a, b, t, n"):
        read(tmp_path / "a.parquet", time="clock")


def test_parquet_that_unpacks_to_too_much(tmp_path):
    path = tmp_path / "a.parquet"
    polars.select(a=polars.repeat(0.0, 35_000_000)).write_parquet(path, compression="zstd")
    with pytest.raises(RecordingError, match="set max_bytes to 280000000"):
        read(path)


def test_spikes_take_what_their_counts_do(tmp_path):
    path = tmp_path / "a.nwb"
    with h5py.File(path, "w") as file:
        units = file.create_group("units")
        units["spike_times"] = [1.0, 2.0, 2.001, 40_000.0]
        units["spike_times_index"] = [4]
        units["id"] = [0]
    with at_most(30e6):
        recording = read(path, bin_size=0.01)
    assert recording.X[[100, 200, 4_000_000]].tolist() == [[1], [2], [1]]
    assert recording.X.sum() == 4
    with pytest.raises(RecordingError, match="max_bytes"):
        read(path, bin_size=1e-4)


@pytest.mark.parametrize("format", [2, 3])
def test_chunks_of_a_zarr_store_that_are_huge(tmp_path, format):
    path, shape = tmp_path / "a.zarr", (9_000, 1000)
    zarr.create_array(path, shape=shape, chunks=shape, dtype="<f8", zarr_format=format)
    with pytest.raises(RecordingError, match="chunks unpack to 72000000 bytes"):
        read(path)
    assert read(path, max_bytes=10**8).shape == shape


def mat_v5(content):
    """A file with one variable, packed."""
    packed = zlib.compress(content)
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(packed)) + packed


def test_a_mat_file_that_unpacks_to_too_much(tmp_path):
    """Whatever shape a variable claims, all of it would be unpacked; here one, then two of them."""
    path = tmp_path / "a.mat"
    path.write_bytes(mat_v5(bytes(30_000_000)))
    with at_most(2e6), pytest.raises(RecordingError, match="set max_bytes"):
        read(path, orientation="time_first", max_bytes=29_000_000)
    data = path.read_bytes()
    path.write_bytes(data + data[128:])
    with at_most(2e6), pytest.raises(RecordingError, match="set max_bytes"):
        read(path, orientation="time_first", max_bytes=59_000_000)


# --- checkpoints ------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path):
    path, X = tmp_path / "a.checkpoint", np.random.default_rng(0).random((50, 3))

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(CNMF(1, 2, random_state=0, callback=interrupt), X, path)
    with open(path, "rb") as file:
        return path, X, read_npz(file)


def refused(path, X, told):
    with at_most(5e6), pytest.raises(ValueError, match=told) as caught:
        fit_with_checkpoint(CNMF(1, 2, random_state=0), X, path)
    assert str(path) in str(caught.value)


def test_a_checkpoint_that_is_packed(checkpoint):
    path, X, _ = checkpoint
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("identity.npy", "w") as member,
    ):
        np.save(member, np.zeros(50_000_000, np.uint8))
    refused(path, X, "compressed")


def test_a_checkpoint_that_claims_more_than_it_has(checkpoint):
    path, X, arrays = checkpoint
    with open(path, "wb") as file:
        write_npz(file, arrays)
    data = path.read_bytes()
    place = data.index(b"'shape': (")
    path.write_bytes(data[:place] + b"'shape': (9" + data[place + 11 :])
    refused(path, X, "claims")


def test_members_that_share_their_bytes(checkpoint):
    path, X, _ = checkpoint
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("identity.npy", "w") as member:
            np.save(member, np.zeros(10_000, np.uint8))
        first = archive.infolist()[0]
        for i in range(5):
            copy = zipfile.ZipInfo(f"{i}.npy")
            for name in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(copy, name, getattr(first, name))
            archive.filelist.append(copy)
    refused(path, X, "more bytes than the file has")
