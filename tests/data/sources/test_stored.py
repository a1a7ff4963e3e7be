"""Rows on disk: what is read when, what stays in memory, and what is told of damage."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from motifold.data import Data
from motifold.data.sources import Part, Source, StoredSource, ZeroedSource, held, is_stored
from motifold.data.sources import stored_source as source_of
from motifold.data.sources.stored import float_dtype

T, N = 1000, 4
ROW = N * 4  # bytes of a row in single precision


class Counted:
    """Rows in chunks, and a record of what was read, in which order and by whom."""

    def __init__(self, X: np.ndarray, chunk: int = 10) -> None:
        self._X, self._chunk = X, chunk
        self.shape, self.dtype = X.shape, X.dtype
        self.reads: list[tuple[int, int]] = []
        self.readers: set[str] = set()
        self.damaged: range = range(0)

    def units(self, most: int) -> np.ndarray:
        rows = self._chunk * max(1, most // self._chunk)
        return np.append(np.arange(0, len(self._X), rows), len(self._X))

    def read(self, a: int, b: int) -> np.ndarray:
        self.reads.append((a, b))
        self.readers.add(threading.current_thread().name)
        if set(range(a, b)) & set(self.damaged):
            raise OSError("bad sector")
        return self._X[a:b].copy()

    def unreadable(self, a: int, b: int, error: Exception) -> Exception:
        return ValueError(f"rows {a} to {b}: {error}")


def numbers(dtype=np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, (T, N)).astype(dtype)


def settle() -> None:
    """Wait for whoever still reads ahead."""
    for thread in threading.enumerate():
        if thread.name == "motifold-read":
            thread.join()


def one_pass(source: Source, rows: int = 37) -> np.ndarray:
    parts = [source.rows(a, min(a + rows, T)) for a in range(0, T, rows)]
    settle()
    return np.concatenate(parts)


def test_it_is_a_source():
    assert isinstance(StoredSource(Counted(numbers()), 10**6), Source)
    assert isinstance(ZeroedSource(StoredSource(Counted(numbers()), 10**6), numbers() > 3), Source)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f4", np.int16, np.uint8, np.bool_])
@pytest.mark.parametrize("limit", [100 * ROW, 400 * ROW, 10**7])
def test_rows_are_those_of_an_array(dtype, limit):
    X = numbers(dtype)
    source = StoredSource(Counted(X), 4 * limit)
    expected = X.astype(float_dtype(X.dtype))
    for _ in range(3):
        found = one_pass(source)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(source.rows(995, 1000), expected[995:])
    assert source.rows(5, 5).shape == (0, N)


def test_what_fits_is_read_once():
    stored = Counted(numbers())
    source = StoredSource(stored, 10**6)
    for _ in range(3):
        one_pass(source)
    assert sum(b - a for a, b in stored.reads) == T


def test_what_does_not_fit_is_read_but_for_what_stays():
    """A share of the units stays, whatever the order of the passes; the others come once each."""
    stored = Counted(numbers())
    source = StoredSource(stored, 500 * ROW)  # half of it, less what is ready
    one_pass(source)
    begun = len(stored.reads)
    for _ in range(4):
        one_pass(source)
    again = sum(b - a for a, b in stored.reads[begun:]) / (4 * T)
    assert 0.4 < again < 0.85  # units at the end of a pass are ready at the start of the next
    unique = {a for a, _ in stored.reads[begun:]}
    assert max(unique) > 900  # what stays is spread over the recording
    assert min(unique) < 100


def test_memory_is_kept_to():
    """Nothing but what is ready and what stays is alive, and that is within the limit."""
    alive: list[int] = []

    class Watched(Counted):
        def read(self, a: int, b: int) -> np.ndarray:
            rows = super().read(a, b)
            alive.append(rows.nbytes)
            import weakref

            weakref.finalize(rows, alive.remove, rows.nbytes)
            most.append(sum(alive))
            return rows

    most: list[int] = []
    limit = 300 * ROW
    source = StoredSource(Watched(numbers()), limit)
    for _ in range(3):
        for a in range(0, T, 5):
            source.rows(a, a + 5)
        settle()
    gc.collect()
    unit = source.chunk * ROW
    assert max(most) <= limit + 3 * unit  # those that are being read, and one that is looked at
    assert sum(alive) > limit // 2  # and it is made use of


def test_the_next_units_are_read_ahead_by_a_thread():
    stored = Counted(numbers())
    source = StoredSource(stored, 100 * ROW)
    source.rows(0, 5)
    settle()
    assert [a for a, _ in sorted(stored.reads)] == [0, source.chunk, 2 * source.chunk]
    assert "motifold-read" in stored.readers
    source.rows(source.chunk, source.chunk + 5)
    settle()
    assert max(stored.reads)[0] == 3 * source.chunk


def test_nothing_is_read_ahead_of_a_look_in_the_middle():
    stored = Counted(numbers())
    source = StoredSource(stored, 100 * ROW)
    source.rows(500, 505)
    settle()
    assert len(stored.reads) == 1


def test_several_threads_get_what_they_ask_for():
    X = numbers()
    source = StoredSource(Counted(X), 100 * ROW)
    found = {}

    def take(first: int) -> None:
        parts = [source.rows(a, a + 7) for a in range(first, first + 210, 7)]
        found[first] = np.concatenate(parts)

    threads = [threading.Thread(target=take, args=(first,)) for first in (0, 210, 420, 630)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first, rows in found.items():
        np.testing.assert_array_equal(rows, X[first : first + 210])


def test_an_error_is_told_to_who_asks_and_the_next_tries_again():
    stored = Counted(numbers())
    stored.damaged = range(15, 16)
    source = StoredSource(stored, 100 * ROW)
    source.rows(0, 5)  # what is read ahead fails, and nobody is told yet
    settle()
    with pytest.raises(ValueError, match=r"rows .*: bad sector"):
        source.rows(14, 20)
    stored.damaged = range(0)
    np.testing.assert_array_equal(source.rows(14, 20), numbers()[14:20])


def test_fewer_rows_than_promised_are_an_error():
    stored = Counted(numbers())
    stored.read = lambda a, b: numbers()[a : b - 1]
    with pytest.raises(ValueError, match=r"it gave \(\d+, 4\) in place of"):
        StoredSource(stored, 100 * ROW).rows(0, 5)


def test_chunks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"memory_limit: X is stored in chunks of 500 rows"):
        StoredSource(Counted(numbers(), chunk=500), 400 * ROW)


def test_a_part_is_held_and_its_memory_is_given_back():
    stored = Counted(numbers())
    source = StoredSource(stored, 500 * ROW)
    one_pass(source)
    part = held(Part(source, 100, 300))
    assert part is not None
    np.testing.assert_array_equal(part, numbers()[100:300])
    assert held(Part(source, 0, 400)) is None  # there is no room for both
    del part
    gc.collect()
    assert held(Part(source, 100, 300)) is not None


def test_stretches_of_stored_data_are_read_once():
    stored = Counted(numbers())
    data = Data.of([StoredSource(stored, 10**6)])
    part = data.stretches([(data.segments[0], 100, 200), (data.segments[0], 500, 600)])
    assert [segment.array is not None for segment in part.segments] == [True, True]
    mask = numbers() > 50
    zeroed = Data.of([ZeroedSource(data.segments[0].source, mask)], [mask])
    part = zeroed.stretches([(zeroed.segments[0], 100, 200)])
    expected = np.where(mask, numbers(), 0)[100:200]
    np.testing.assert_array_equal(part.segments[0].array, expected)


# --- libraries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(tmp_path, version):
    zarr = pytest.importorskip("zarr")
    X = numbers(np.int16)
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=X.shape, chunks=(30, 3), dtype=X.dtype, zarr_format=version
    )
    array[:] = X
    source = source_of(array, limit=200 * ROW)
    assert is_stored(array)
    assert source.chunk % 30 == 0
    np.testing.assert_array_equal(one_pass(source), X.astype(float))


@pytest.mark.parametrize("version", [2, 3])
def test_a_damaged_chunk_of_zarr_is_named(tmp_path, version):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=(T, N), chunks=(30, 2), dtype="f4", zarr_format=version
    )
    array[:] = numbers()
    key = {2: "4.1", 3: "c/4/1"}[version]
    (tmp_path / "x.zarr" / key).write_bytes(b"no chunk at all")
    source = source_of(array, limit=200 * ROW)
    with pytest.raises(ValueError, match=f"rows 120 to 149 of the zarr array .chunk '{key}'."):
        one_pass(source)
    settle()


def test_shards_are_read_whole(tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=(T, N), chunks=(10, 4), shards=(50, 4), dtype="f4"
    )
    array[:] = numbers()
    source = source_of(array, limit=10**4)
    assert source.chunk % 50 == 0
    np.testing.assert_array_equal(one_pass(source), numbers())


@pytest.mark.parametrize("filters", [{}, {"chunks": (20, 4), "compression": "gzip"}])
def test_h5py(tmp_path, filters):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("counts", data=numbers(np.uint8), **filters)
        source = source_of(dataset, limit=300 * ROW)
        np.testing.assert_array_equal(one_pass(source), numbers(np.float64))
        settle()


def test_a_damaged_chunk_of_hdf5_is_named(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", data=numbers(), chunks=(50, 4), compression="gzip")
        place = dataset.id.get_chunk_info_by_coord((150, 0)).byte_offset
    with open(path, "r+b") as raw:
        raw.seek(place)
        raw.write(b"\0" * 64)
    with h5py.File(path) as file:
        source = source_of(file["a"], limit=300 * ROW)
        with pytest.raises(ValueError, match=r"x\.h5: /a\): rows 150 to 199 .*chunk 3, 0"):
            one_pass(source)
        settle()


def test_dask_by_its_own_chunks():
    da = pytest.importorskip("dask.array")
    X = numbers()
    lazy = da.concatenate([da.from_array(X[:130], chunks=(65, 2)), da.from_array(X[130:], 300)])
    source = source_of(lazy + 1, limit=10**5)
    np.testing.assert_array_equal(one_pass(source), X + 1)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        source_of(lazy[lazy[:, 0] > 3])


def test_maps_of_whole_numbers_are_converted_by_block(tmp_path):
    np.save(tmp_path / "x.npy", numbers(np.int16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert is_stored(mapped)
    np.testing.assert_array_equal(one_pass(source_of(mapped, limit=300 * ROW)), numbers(float))
    np.save(tmp_path / "y.npy", numbers())
    assert not is_stored(np.load(tmp_path / "y.npy", mmap_mode="r"))  # the system pages it
    assert not is_stored(numbers())


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [((5,), "f4", "Expected 2D array, got 1D"), ((0, 3), "f4", "minimum of 1 is required")],
)
def test_what_is_no_recording(tmp_path, shape, dtype, message):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(tmp_path / "x.zarr"), shape=shape, dtype=dtype)
    with pytest.raises(ValueError, match=message):
        source_of(array)
