"""Recordings on disk are fitted where they are, with the bits of an array in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF, fit_with_checkpoint
from motifold.data.sources import StoredSource, stored_source
from motifold.datasets import make_sequences
from motifold.storage.checkpoint import stored_fingerprint

T, N, K, L = 4000, 8, 2, 5


def recording(dtype=np.float32) -> np.ndarray:
    return make_sequences(T, N, K, L, noise=0.05, random_state=0).X.astype(dtype)


def as_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, chunks=(90, 5), dtype=X.dtype)
    array[:] = X
    return array


def as_hdf5(X, folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(70, 8), compression="gzip", shuffle=True)
    return h5py.File(folder / "x.h5")["X"]


def as_dask(X, folder):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(333, 4))


def as_map(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


KINDS = [as_zarr, as_hdf5, as_dask, as_map]


def same(model: CNMF, plain: CNMF) -> None:
    np.testing.assert_array_equal(model.components_, plain.components_)
    np.testing.assert_array_equal(model.activations_, plain.activations_)
    np.testing.assert_array_equal(model.history_.loss, plain.history_.loss)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_the_same_bits_as_in_memory(tmp_path, kind, dtype):
    X = np.rint(20 * recording()).astype(dtype)
    options = {"random_state": 0, "max_iter": 4, "tol": 0}
    plain = CNMF(K, L, **options).fit(X)
    stored = kind(X, tmp_path)
    model = CNMF(K, L, **options).fit(stored)
    same(model, plain)
    assert model.n_features_in_ == N
    np.testing.assert_array_equal(model.transform(stored), plain.transform(X))
    assert model.score(stored) == plain.score(X)


def test_segments_and_masks(tmp_path):
    X = recording()
    mask = np.random.default_rng(0).random(X.shape) > 0.05
    X[~mask] = np.nan
    options = {"random_state": 0, "max_iter": 4, "tol": 0}
    lengths = [2500, 1500]
    plain = CNMF(K, L, **options).fit(X, lengths=lengths, mask=mask)
    model = CNMF(K, L, **options).fit(as_zarr(X, tmp_path), lengths=lengths, mask=mask)
    same(model, plain)
    mapped = CNMF(K, L, **options).fit(as_map(X, tmp_path), lengths=lengths, mask=mask)
    same(mapped, plain)


def test_a_list_of_segments_on_disk_and_in_memory(tmp_path):
    X = recording()
    options = {"random_state": 0, "max_iter": 4, "tol": 0}
    plain = CNMF(K, L, **options).fit([X[:2500], X[2500:].astype(float)])
    model = CNMF(K, L, **options).fit([as_zarr(X[:2500], tmp_path), X[2500:].astype(float)])
    same(model, plain)


@pytest.mark.parametrize("loss", ["kullback-leibler", 1.5])
def test_other_losses(tmp_path, loss):
    """Sums over blocks are taken in another order: the same but for rounding."""
    X = recording(np.float64) + 0.01
    options = {"random_state": 0, "max_iter": 5, "tol": 0, "beta_loss": loss}
    plain = CNMF(K, L, **options).fit(X)
    model = CNMF(K, L, **options).fit(as_zarr(X, tmp_path))
    np.testing.assert_allclose(model.components_, plain.components_, rtol=1e-6, atol=1e-9)
    assert model.loss_ == pytest.approx(plain.loss_, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_feature(tmp_path, dtype):
    """BLAS may take a row for a column: the same but for rounding."""
    X = recording(dtype)[:, :1]
    options = {"random_state": 0, "max_iter": 5, "tol": 0}
    plain = CNMF(K, L, **options).fit(X)
    model = CNMF(K, L, memory_limit="1MB", **options).fit(as_zarr(X, tmp_path))
    tol = 1e-2 if dtype is np.float32 else 1e-7
    np.testing.assert_allclose(model.components_, plain.components_, rtol=tol, atol=tol)
    assert model.loss_ == pytest.approx(plain.loss_, rel=1e-4 if dtype is np.float32 else 1e-9)


def test_a_single_motif_of_a_single_lag(tmp_path):
    """The last block may be one row, of which BLAS makes a column in memory and a row from disk."""
    X = recording(np.float64)[:385]
    options = {"random_state": 0, "max_iter": 5, "tol": 0}
    plain = CNMF(1, 1, **options).fit(X)
    model = CNMF(1, 1, **options).fit(as_zarr(X, tmp_path))
    np.testing.assert_allclose(model.components_, plain.components_, rtol=1e-12, atol=0)
    assert model.loss_ == pytest.approx(plain.loss_, rel=1e-12)


@pytest.mark.filterwarnings("ignore:X has 450 rows")  # so few that they may be the features
def test_long_motifs_and_short_blocks(tmp_path):
    """A motif that is longer than a block reaches back over several of them."""
    X = recording(np.float64)[:450, :2]
    wide = np.tile(X, (1, 2000))  # blocks have 128 rows
    options = {"random_state": 0, "max_iter": 2, "tol": 0, "acceleration": None}
    plain = CNMF(1, 300, **options).fit(wide)
    model = CNMF(1, 300, **options).fit(as_zarr(wide, tmp_path))
    same(model, plain)


def test_bad_values_are_named_with_their_place(tmp_path):
    X = recording()
    X[3210, 4] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first at row 3210, column 4"):
        CNMF(K, L).fit(as_zarr(X, tmp_path))
    X[3210, 4] = -1
    with pytest.raises(ValueError, match=r"Negative values .* row 3210, column 4"):
        CNMF(K, L).fit(as_hdf5(X, tmp_path))


def test_a_damaged_chunk_ends_the_fit_with_its_name(tmp_path):
    array = as_zarr(recording(), tmp_path)
    (tmp_path / "x.zarr" / "c" / "20" / "1").write_bytes(b"?")
    model = CNMF(K, L)
    with pytest.raises(ValueError, match=r"rows 1800 to 1889 of the zarr array .chunk 'c/20/1'."):
        model.fit(array)
    assert not hasattr(model, "components_")


def test_ctrl_c_leaves_the_best_so_far(tmp_path):
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    model = CNMF(K, L, random_state=0, callback=interrupt, tol=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(as_zarr(recording(), tmp_path))
    assert model.stop_reason_ == "interrupted"
    assert model.n_iter_ >= 1


def test_ctrl_c_while_rows_are_read():
    """Whoever asks for the unit afterwards gets it."""

    class Rows:
        shape, dtype, calls = (T, N), np.dtype(np.float32), 0

        def units(self, most):
            return np.arange(0, T + 1, 500)

        def read(self, a, b):
            self.calls += a == 0
            if a == 0 and self.calls == 1:
                raise KeyboardInterrupt
            return recording()[a:b]

        def unreadable(self, a, b, error):
            return error

    source = StoredSource(Rows(), 10**6)
    with pytest.raises(KeyboardInterrupt):
        source.rows(0, 10)
    np.testing.assert_array_equal(source.rows(0, 10), recording()[:10])


def test_reads_are_no_more_than_passes(tmp_path):
    """The part that a fit starts on is read once, and all else once a pass."""
    X = recording()
    source = stored_source(as_zarr(X, tmp_path), limit=X.nbytes // 2)
    CNMF(K, L, random_state=0, max_iter=2, tol=0).fit(source)
    # One look, C of the start, C after the start on less, two an iteration, three at the end.
    passes = 3 + 2 * 2 + 3 + 1  # and what is read ahead, or was taken back
    assert source.n_read <= passes * source.n_units


# --- the limit, and what is written ---------------------------------------------------------------


def test_no_bit_depends_on_the_limit(tmp_path):
    X = np.tile(recording()[:2000], (1, 8))
    stored = as_zarr(X, tmp_path)
    options = {"random_state": 0, "max_iter": 3, "tol": 0}
    plain = CNMF(K, L, **options).fit(X)
    for limit in ("400KB", "700 kB", 10**7):
        same(CNMF(K, L, memory_limit=limit, **options).fit(stored), plain)


@pytest.mark.parametrize("limit", ["much", "4XB", "", "-1GB"])
def test_a_limit_that_is_none(limit):
    with pytest.raises(ValueError, match="memory_limit must be a size such as"):
        CNMF(K, L, memory_limit=limit).fit(recording())


def test_activations_are_written_where_they_are_wanted(tmp_path):
    zarr = pytest.importorskip("zarr")
    X = recording()
    model = CNMF(K, L, random_state=0, max_iter=3, tol=0).fit(X)
    out = zarr.create_array(str(tmp_path / "h.zarr"), shape=(T, K), chunks=(700, 1), dtype="f4")
    assert model.transform(as_zarr(X, tmp_path), out=out) is out
    np.testing.assert_array_equal(out[:], model.transform(X))
    array = np.zeros((T, K))
    assert model.transform(X, out=array) is array
    with pytest.raises(ValueError, match=r"out must be .* \(4000, 2\), not \(3, 2\)"):
        model.transform(X, out=np.zeros((3, 2)))


def test_a_checkpoint_goes_on(tmp_path):
    stored, path = as_zarr(recording(), tmp_path), tmp_path / "fit.checkpoint"
    plain = CNMF(K, L, random_state=0, max_iter=6, tol=0).fit(recording())

    def interrupt(state):
        if state.iteration == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(CNMF(K, L, random_state=0, tol=0, callback=interrupt), stored, path)
    # The numbers are the same wherever they are, and the limit may be another.
    model = CNMF(K, L, random_state=0, max_iter=6, tol=0, memory_limit="2MB")
    same(fit_with_checkpoint(model, recording(), path), plain)


def test_a_large_recording_is_known_by_some_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("motifold.storage.checkpoint._LOOKED_AT", 50_000)
    X = recording()
    first = stored_fingerprint(as_zarr(X, tmp_path))
    assert first == stored_fingerprint(as_dask(X, tmp_path))
    X[0, 0] += 1
    assert first != stored_fingerprint(as_dask(X, tmp_path))


def test_penalties_and_all_solvers(tmp_path):
    X, options = recording(), {"random_state": 0, "max_iter": 3, "tol": 0}
    stored = as_zarr(X, tmp_path)
    for more in ({"solver": "mu"}, {"solver": "anls"}, {"x_ortho": 1e-3, "center": True}):
        same(CNMF(K, L, **options, **more).fit(stored), CNMF(K, L, **options, **more).fit(X))


def test_max_time_ends_it(tmp_path):
    model = CNMF(K, L, random_state=0, max_time=1e-3, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(as_zarr(recording(), tmp_path))
    assert model.stop_reason_ == "max_time"
