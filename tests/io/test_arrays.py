"""NumPy, MATLAB, HDF5 and zarr files: what is read is what was written, and lies are named."""

from __future__ import annotations

import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from motifold.io import Recording, RecordingError, read

X = np.arange(60.0).reshape(20, 3)


def error_of(path, **options) -> str:
    with pytest.raises(RecordingError) as caught:
        read(path, **options).checked()
    assert str(path) in str(caught.value)
    return str(caught.value)


# --- npy, npz -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_mapped(tmp_path, order):
    path = tmp_path / "a.npy"
    np.save(path, np.asarray(X, order=order))
    recording = read(path, rate=10)
    assert isinstance(recording.X, np.memmap)
    np.testing.assert_array_equal(recording.X, X)
    assert recording.seconds == 2.0


def test_orientation_is_as_stated(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, X)
    recording = read(path, orientation="features_first")
    np.testing.assert_array_equal(recording.X, X.T)
    assert "more features (20) than time bins (3)" in recording.hints[0]
    assert read(path).hints == ()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, X=X, other=X + 1)
    recording = read(path, key="X")
    np.testing.assert_array_equal(np.asarray(recording.X), X)
    assert isinstance(recording.X, np.memmap) == (save is np.savez)
    assert "X, other" in error_of(path)
    assert "X, other" in error_of(path, key="Y")


def test_pickled_npy_is_not_run(tmp_path):
    path = tmp_path / "a.npy"
    ran = tmp_path / "ran"

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    np.save(path, np.array([[Bomb()]], dtype=object), allow_pickle=True)
    assert "pickled" in error_of(path)
    path.write_bytes(pickle.dumps(Bomb()))
    error_of(path)
    assert not ran.exists()


def test_truncated_npy(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])
    assert "cut short" in error_of(path)
    path.write_bytes(path.read_bytes()[:20])
    error_of(path)


def test_zip_bomb(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**34}, 4), }}"
        with archive.open("X.npy", "w", force_zip64=True) as member:
            member.write(b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117).encode() + b"\n")
            member.write(bytes(2**20))
    assert "claims shape" in error_of(path)
    np.savez_compressed(path, X=np.zeros((2000, 1000)))
    assert "max_bytes" in error_of(path, max_bytes=10**6)
    assert read(path).shape == (2000, 1000)


def test_bad_values_are_named(tmp_path):
    path = tmp_path / "a.npy"
    bad = X.copy()
    bad[3, 1] = np.nan
    np.save(path, bad)
    assert "row 3, column 1" in error_of(path)
    bad[3, 1] = -2
    np.save(path, bad)
    assert 'negatives="keep" (as they are), negatives="clip"' in error_of(path)
    assert read(path, negatives="clip").X[3, 1] == 0
    assert read(path, negatives="shift").X[3, 1] == 0
    np.testing.assert_array_equal(read(path, negatives="shift").X, bad + 2)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 3, 4)), np.zeros((0, 3)), X + 1j])
def test_what_is_no_table_of_numbers(tmp_path, array):
    path = tmp_path / "a.npy"
    np.save(path, array)
    error_of(path)


def test_options_and_kinds(tmp_path):
    path = tmp_path / "a.dat"
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.npy").rename(path)
    assert "with kind" in error_of(path)
    assert read(path, kind="npy").shape == (20, 3)
    assert "bin_size" in error_of(path, kind="npy", bin_size=0.1)
    with pytest.raises(TypeError, match="no option nonsense"):
        read(path, nonsense=1)
    with pytest.raises(ValueError, match="orientation must be"):
        read(path, orientation="sideways")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "missing.npy")


def test_durations():
    from motifold.io import Recording

    recording = Recording(X, "here", rate=50.0)
    assert [recording.bins(text) for text in ("20", 20, "0.5s", "500ms", "0.001s")] == [
        20, 20, 25, 25, 1,
    ]  # fmt: skip
    for text in ("x", "-1", "0", "1.5", "s", "nan", "infs"):
        with pytest.raises(ValueError, match="is no duration"):
            recording.bins(text)
    with pytest.raises(RecordingError, match="rate"):
        Recording(X, "here").bins("1s")


# --- mat ------------------------------------------------------------------------------------


def save_mat_v73(path, **variables):
    """As MATLAB does: a block of text before the HDF5 file, matrices transposed."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            file[name] = np.atleast_2d(value).T
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def save_mat_v5(path, **variables):
    from scipy.io import savemat

    savemat(path, variables, do_compression=True)


@pytest.mark.parametrize("save", [save_mat_v5, save_mat_v73])
def test_mat(tmp_path, save):
    path = tmp_path / "a.mat"
    save(path, counts=X.T, fs=200.0)
    assert 'orientation="time_first"' in error_of(path)
    assert "3 rows and 20 columns" in error_of(path)
    recording = read(path, orientation="features_first", rate="fs")
    np.testing.assert_array_equal(np.asarray(recording.X), X)
    assert isinstance(recording.X, np.memmap) == (save is save_mat_v73)  # after the block of text
    assert recording.rate == 200
    np.testing.assert_array_equal(np.asarray(read(path, orientation="time_first").X), X.T)
    assert "counts" in error_of(path, key="nothing", orientation="time_first")
    path = tmp_path / "b.mat"
    save(path, counts=X.T, more=X)
    assert "counts" in error_of(path, orientation="time_first")


def test_mat_of_other_things(tmp_path):
    path = tmp_path / "a.mat"
    save_mat_v5(path, words=np.array(["one", "two"], dtype=object), cube=np.zeros((2, 3, 4)))
    assert "cell" in error_of(path, key="words", orientation="time_first")
    assert "3 dimensions" in error_of(path, key="cube", orientation="time_first")
    save_mat_v5(path, counts=np.random.default_rng(0).random((50, 50)))
    path.write_bytes(path.read_bytes()[:3000])
    assert "cut short" in error_of(path, orientation="time_first")


def test_songbird(data_file, mackevicius):
    path = data_file("MackeviciusData.mat")
    recording = read(path, key="SONG", orientation="features_first", rate="SONGfs")
    np.testing.assert_array_equal(recording.X, mackevicius["SONG"])
    assert recording.rate == 200
    assert "SONG" in error_of(path, orientation="time_first")


# --- HDF5 -----------------------------------------------------------------------------------


@pytest.fixture
def h5(tmp_path):
    import h5py

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["session/counts"] = X
        file["session/name"] = "a session"
        file["soft"] = h5py.SoftLink("/session/counts")
        file["loop"] = h5py.SoftLink("/loop")
        file["outside"] = h5py.ExternalLink("other.h5", "/secret")
        file["soft_outside"] = h5py.SoftLink("/outside")
        raw = [(str(tmp_path / "raw.bin"), 0, X.nbytes)]
        file.create_dataset("elsewhere", X.shape, X.dtype, external=raw)
        layout = h5py.VirtualLayout(X.shape, X.dtype)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "secret", X.shape)
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("huge", (2**30, 100), "f8", chunks=(1024, 100))
        file["cube"] = np.zeros((2, 2, 2))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = X
    return path


def store_anew(path, key, **options):
    """Replace a dataset by one of the same values that is stored otherwise."""
    import h5py

    with h5py.File(path, "r+") as file:
        values = file[key][:]
        del file[key]
        file.create_dataset(key, data=values, **options)


@pytest.mark.parametrize("key", ["session/counts", "/session/counts", "soft"])
@pytest.mark.parametrize("chunked", [False, True])
def test_hdf5_stays_on_disk(h5, key, chunked):
    if chunked:
        store_anew(h5, "session/counts", chunks=(7, 2), compression="gzip")
    recording = read(h5, key=key)
    assert isinstance(recording.X, np.memmap) == (not chunked)
    np.testing.assert_array_equal(recording.X[4:7], X[4:7])
    np.testing.assert_array_equal(recording.checked().X, X)
    turned = read(h5, key=key, orientation="features_first")
    np.testing.assert_array_equal(turned.X[1:3], X.T[1:3])
    np.testing.assert_array_equal(np.asarray(turned.X), X.T)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("outside", "link into another file"),
        ("soft_outside", "link into another file"),
        ("elsewhere", "in another file"),
        ("virtual", "in another file"),
        ("loop", "without an end"),
        ("huge", "max_bytes"),
        ("cube", "3 dimensions"),
        ("session", "is no dataset"),
        ("session/name", "not real numbers"),
        ("session/nothing", "has no 'nothing'"),
        ("session/counts/deeper", "has no 'deeper'"),
        (None, "name one with key"),
    ],
)
def test_hdf5_that_lies(h5, key, told):
    assert told in error_of(h5, key=key)


def test_truncated_hdf5(h5):
    h5.write_bytes(h5.read_bytes()[:1500])
    assert "cut short" in error_of(h5, key="session/counts")


# --- zarr -----------------------------------------------------------------------------------


@pytest.fixture(params=[2, 3])
def store(tmp_path, request):
    import zarr

    path = tmp_path / "a.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=request.param)
    array = group.create_array("session/counts", shape=X.shape, chunks=(7, 2), dtype="f8")
    array[:] = X
    return path


def test_zarr_is_lazy(store):
    recording = read(store)
    assert not isinstance(recording.X, np.ndarray)
    np.testing.assert_array_equal(recording.X[5:9], X[5:9])
    np.testing.assert_array_equal(read(store, key="session/counts").checked().X, X)
    turned = read(store, orientation="features_first")
    np.testing.assert_array_equal(np.asarray(turned.X), X.T)
    assert "session/counts" in error_of(store, key="nothing")


def test_zarr_links_are_not_followed(store, tmp_path):
    chunk = next(p for p in (store / "session" / "counts").rglob("*") if p.name in ("0", "0.0"))
    (tmp_path / "secret").write_bytes(b"0" * 112)
    (chunk.parent / "link").symlink_to(tmp_path / "secret")
    assert "link" in error_of(store)


def test_zarr_codecs_that_run_code(store):
    folder = store / "session" / "counts"
    if (folder / ".zarray").exists():
        file = folder / ".zarray"
        metadata = json.loads(file.read_text())
        metadata["filters"] = [{"id": "pickle", "protocol": 5}]
    else:
        file = folder / "zarr.json"
        metadata = json.loads(file.read_text())
        metadata["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]
    file.write_text(json.dumps(metadata))
    assert "pickle" in error_of(store)


def test_zarr_that_claims_too_much(store):
    folder = store / "session" / "counts"
    file = next(f for f in (folder / ".zarray", folder / "zarr.json") if f.exists())
    metadata = json.loads(file.read_text())
    metadata["shape"] = [2**32, 3]
    file.write_text(json.dumps(metadata))
    assert "max_bytes" in error_of(store)
    file.write_text(file.read_text()[:40])
    assert "cut short" in error_of(store)


# --- memory ---------------------------------------------------------------------------------

LONG = np.tile(np.arange(500, dtype="i2"), (30_000, 1))  # 30 MB, 120 MB in float64


def peak_of(function) -> int:
    """Bytes that are allocated by NumPy and Python at most while the function runs."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(params=["rows.h5", "columns.h5", "a.zarr"])
def long_file(tmp_path, request):
    path = tmp_path / request.param
    if path.suffix == ".zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(str(path), shape=LONG.shape, chunks=(1000, 100), dtype="i2")
        array[:] = LONG
    else:
        import h5py

        chunks = (1000, 500) if request.param == "rows.h5" else (len(LONG), 5)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=LONG, chunks=chunks, compression="lzf")
    return path


@pytest.mark.parametrize("orientation", ["time_first", "features_first"])
def test_no_second_copy_is_made(long_file, orientation):
    recording = read(long_file, orientation=orientation)
    found = []
    peak = peak_of(lambda: found.append(recording.checked(negatives="clip").X))
    expected = LONG if orientation == "time_first" else LONG.T
    assert found[0].dtype == np.float64
    np.testing.assert_array_equal(found[0], expected)
    assert peak < found[0].nbytes + LONG.nbytes  # a second copy of either kind would be above


def test_a_mapped_dataset_takes_no_memory(tmp_path):
    import h5py

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = LONG.astype("f4")
    assert peak_of(lambda: read(path).checked()) < 20 * 2**20  # of 60 MB


def test_odd_types_are_not_mapped(tmp_path):
    """A number of 24 bits, or the other byte order, is not the memory of a NumPy array."""
    import h5py

    path = tmp_path / "a.h5"
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_precision(24)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(X.shape)
        dataset = h5py.Dataset(h5py.h5d.create(file.id, b"x", odd, space))
        dataset[:] = X
        file.create_dataset("swapped", data=X, dtype=">f8")
    recording = read(path, key="x")
    assert not isinstance(recording.X, np.memmap)
    np.testing.assert_array_equal(np.asarray(recording.X), X)
    np.testing.assert_array_equal(read(path, key="swapped").checked().X, X)


# --- missing entries ------------------------------------------------------------------------


def test_missing_entries(tmp_path):
    path = tmp_path / "a.npy"
    holes = X.copy()
    holes[3, 1] = holes[7, 2] = np.nan
    np.save(path, holes)
    assert 'missing="mask"' in error_of(path)
    recording = read(path, missing="mask").checked()
    np.testing.assert_array_equal(recording.mask, ~np.isnan(holes))
    assert recording.options == {"missing": "mask"}
    np.testing.assert_array_equal(recording.X, holes)
    assert read(path).mask is None
    holes[3, 1] = -1
    np.save(path, holes)
    assert "row 3, column 1" in error_of(path, missing="mask")
    shifted = read(path, missing="mask", negatives="shift").checked()
    np.testing.assert_array_equal(shifted.X, holes + 1)
    np.save(path, X)
    assert read(path, missing="mask").checked().mask is None
    np.save(path, np.full_like(X, np.nan))
    assert "Every entry is NaN" in error_of(path, missing="mask")
    holes[3, 1] = np.inf
    np.save(path, holes)
    assert "infinity" in error_of(path, missing="mask")
    with pytest.raises(ValueError, match="missing must be one of"):
        read(path, missing="drop")


def test_loss_over_what_is_observed():
    from motifold.io import Recording

    holes = X.copy()
    holes[3, 1] = np.nan
    recording = Recording(holes, "here", missing="mask")
    guess = np.full_like(X, 7.0)
    there = recording.mask
    expected = np.linalg.norm((X - guess)[there]) / np.linalg.norm(X[there])
    assert recording.relative_loss(guess) == pytest.approx(expected)


def test_a_recording_may_be_sparse():
    entries = np.array([[1.0, 0.0], [0.0, -2.0], [0.0, 3.0]])
    recording = Recording(coo_array(entries), "counts", rate=5.0)
    assert (recording.shape, recording.seconds) == ((3, 2), 0.6)
    with pytest.raises(RecordingError, match=r"counts: Negative.*negatives"):
        recording.checked()
    np.testing.assert_array_equal(recording.checked("clip").X.toarray(), entries.clip(0))
    with pytest.raises(RecordingError, match="would fill a sparse matrix"):
        recording.checked("shift")
    entries[1, 1] = np.nan
    found = Recording(coo_array(entries), "counts").checked(missing="mask")
    assert found.mask.sum() == 5
    assert Recording(csr_array(X), "counts").relative_loss(X) == 0
