"""Sparse X: what a fit of the same numbers, dense, finds, whatever format they come in."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from motifold import CNMF
from motifold.data.sources import SparseSource
from motifold.data.validation import recording_of
from motifold.datasets import make_sequences

T, N, K, L = 1200, 9, 2, 6


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    """Counts, nine in ten of them zero."""
    rates = make_sequences(T, N, K, L, activation_probability=0.05, random_state=0).X
    return np.random.default_rng(1).poisson(0.4 * rates).astype(float)


def same_fit(one: CNMF, two: CNMF, rtol: float = 1e-7) -> None:
    assert one.n_iter_ == two.n_iter_
    np.testing.assert_allclose(one.history_.objective, two.history_.objective, rtol=rtol)
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-6)
    np.testing.assert_allclose(one.activations_, two.activations_, atol=1e-5)
    assert one.loss_ == pytest.approx(two.loss_, rel=rtol)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"acceleration": None},
        {"solver": "anls", "max_iter": 4},
        {"solver": "mu"},
        {"boundary": "valid", "l1_H": 0.1, "l2_W": 0.1},
        {"x_ortho": 1e-3, "ortho_H": 0.01, "ortho_W": 0.01, "l1_H": 0.1, "l2_W": 0.1},
        {"center": True},
        {"n_components": 5, "n_init": 2},
        {"n_lags": 1},
        {"normalize": False, "n_jobs": 2},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:A penalty on the")
def test_fits_are_those_of_dense_data(X, options):
    options = {"n_components": K, "n_lags": L, "max_iter": 8, "tol": 0, "random_state": 0} | options
    lengths = [700, 1, 4, 495]
    dense = CNMF(**options).fit(X, lengths=lengths)
    model = CNMF(**options).fit(sparse.csr_array(X), lengths=lengths)
    same_fit(model, dense)
    held_out = X[:300]
    np.testing.assert_allclose(
        model.transform(sparse.csr_array(held_out)), dense.transform(held_out), atol=1e-5
    )
    assert model.score(sparse.csr_array(held_out)) == pytest.approx(dense.score(held_out))


def test_a_start_on_a_part_and_a_long_recording(X):
    long = np.tile(X, (6, 1))
    options = {"max_iter": 4, "tol": 0, "random_state": 0}
    same_fit(CNMF(K, L, **options).fit(sparse.csr_array(long)), CNMF(K, L, **options).fit(long))


def test_long_motifs(X):
    """For which the passes over an array go by FFT."""
    options = {"max_iter": 3, "tol": 0, "random_state": 0}
    dense = CNMF(2, 200, **options).fit(X)
    same_fit(CNMF(2, 200, **options).fit(sparse.csr_array(X)), dense, rtol=1e-6)


@pytest.mark.parametrize("kind", ["few", "many", "nothing hidden", "sparse mask"])
def test_missing_entries(X, kind):
    observed = np.random.default_rng(0).random(X.shape) >= {"few": 0.05}.get(kind, 0.4)
    if kind == "nothing hidden":
        observed[:] = True
    holes = sparse.csr_array(np.where(observed, X, 0))
    spoilt = sparse.lil_array(X)
    spoilt[~observed] = np.nan
    mask = sparse.csr_array(observed) if kind == "sparse mask" else observed
    options = {"max_iter": 5, "tol": 0, "random_state": 0}
    dense = CNMF(K, L, **options).fit(X, mask=observed)
    for given in (holes, spoilt.tocsr()):
        model = CNMF(K, L, **options).fit(given, mask=mask)
        same_fit(model, dense)
        assert model.score(given, mask=mask) == pytest.approx(dense.score(X, mask=observed))


def test_fixed_motifs_and_given_starts(X):
    start = CNMF(K, L, random_state=1, max_iter=2, tol=0).fit(X)
    given = {"components_init": start.components_, "activations_init": start.activations_}
    options = {"fixed_components": [1], "max_iter": 5, "tol": 0, "normalize": False}
    dense = CNMF(K, L, **options).fit(X, **given)
    model = CNMF(K, L, **options).fit(sparse.csr_array(X), **given)
    same_fit(model, dense)
    np.testing.assert_array_equal(model.components_[1], start.components_[1])


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint32, bool])
def test_formats_and_types(X, make, format, dtype):
    counts = X[:60].astype(dtype)
    given = make(counts).asformat(format)
    data = recording_of(given, lengths=[10, 50])
    assert data.dtype == (np.float32 if dtype == np.float32 else np.float64)
    rows = np.concatenate([segment.rows(0, len(segment)) for segment in data.segments])
    np.testing.assert_array_equal(rows, counts)
    assert data.n_entries == np.count_nonzero(counts)


def test_a_list_of_segments_may_mix_what_they_are(X):
    parts = [X[:500], sparse.csr_array(X[500:501]), sparse.coo_array(X[501:].astype(np.float32))]
    options = {"max_iter": 3, "tol": 0, "random_state": 0}
    dense = CNMF(K, L, **options).fit([X[:500], X[500:501], X[501:]])
    model = CNMF(K, L, **options).fit(parts)
    assert model.lengths_ == [500, 1, 699]
    assert model.activations_.dtype == np.float64
    same_fit(model, dense)
    with pytest.raises(ValueError, match="list of segments already"):
        model.fit(parts, lengths=[1200])


def test_entries_out_of_order_twice_or_zero_are_fine_and_stay_as_they_are(X):
    """One place twice is the sum; nothing of what is given changes."""
    rows, columns = np.nonzero(X)
    halves = np.concatenate([X[rows, columns] / 2] * 2 + [np.zeros(5)])
    rows = np.concatenate([rows, rows, np.arange(5)])
    columns = np.concatenate([columns, columns, np.arange(5)])
    order = np.random.default_rng(0).permutation(len(rows))
    given = sparse.coo_array((halves[order], (rows[order], columns[order])), shape=X.shape)
    messy = sparse.csr_array(X)
    messy.indices, messy.data = messy.indices[::-1].copy(), messy.data[::-1].copy()
    messy.indptr = (messy.indptr[-1] - messy.indptr[::-1]).copy()  # X upside down, columns falling
    messy.has_sorted_indices = messy.has_canonical_format = False
    before = [part.copy() for part in (given.data, *given.coords, messy.data, messy.indices)]
    options = {"max_iter": 3, "tol": 0, "random_state": 0}
    same_fit(CNMF(K, L, **options).fit(given), CNMF(K, L, **options).fit(X))
    same_fit(CNMF(K, L, **options).fit(messy), CNMF(K, L, **options).fit(X[::-1]))
    after = (given.data, *given.coords, messy.data, messy.indices)
    for one, two in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, two)


def test_many_counts_at_one_place_do_not_overflow():
    ones = np.ones(300, dtype=np.int8)
    counts = sparse.coo_array((ones, (np.zeros(300, int), np.zeros(300, int))), shape=(4, 2))
    assert recording_of(counts).segments[0].rows(0, 4)[0, 0] == 300
    there = sparse.coo_array((ones.astype(bool), counts.coords), shape=(4, 2))
    assert recording_of(there).segments[0].rows(0, 4)[0, 0] == 1


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_damaged_indices_are_refused_before_compiled_code_follows_them(X, format):
    damaged = sparse.csr_array(X).asformat(format)
    damaged.indices[7] = 10**6
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        CNMF(K, L).fit(damaged)


def test_masks_of_the_wrong_kind(X):
    given = sparse.csr_array(X)
    with pytest.raises(ValueError, match="shape of X"):
        CNMF(K, L).fit(given, mask=np.ones((T, N - 1), bool))
    with pytest.raises(TypeError, match="mask must be boolean"):
        CNMF(K, L).fit(given, mask=sparse.csr_array(X))
    with pytest.raises(ValueError, match="hides every entry"):
        CNMF(K, L).fit(given, mask=sparse.csr_array((T, N), dtype=bool))


def test_nothing_at_all_and_one_spike():
    empty = sparse.csr_array((50, 4))
    assert CNMF(2, 3, random_state=0).fit(empty).loss_ == 0
    one = sparse.coo_array(([2.0], ([20], [3])), shape=(50, 4))
    model = CNMF(1, 3, random_state=0).fit(one)
    np.testing.assert_allclose(
        model.inverse_transform(model.activations_), one.toarray(), atol=1e-6
    )


def test_activations_are_dense(X):
    model = CNMF(K, L, max_iter=2, tol=0, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"[Ss]parse.*activations"):
        model.inverse_transform(sparse.csr_array(model.activations_))


def test_a_recording_whose_dense_form_would_not_fit(monkeypatch):
    """8 GB as an array: the fit takes a small part of that, and no block of X is ever dense."""
    rows_asked = []
    dense_rows = SparseSource.rows
    monkeypatch.setattr(
        SparseSource,
        "rows",
        lambda self, a, b: rows_asked.append(b - a) or dense_rows(self, a, b),
    )
    bins, features, lags = 200_000, 5_000, 3
    starts = np.random.default_rng(0).integers(0, bins - lags, 2_000)
    times = np.concatenate([starts + lag for lag in range(lags)])
    where = np.repeat([17, 4_000, 4_999], len(starts))
    X = sparse.coo_array((np.ones(len(times)), (times, where)), shape=(bins, features))
    tracemalloc.start()
    model = CNMF(1, lags, random_state=0, max_iter=3, tol=1e-2).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.02 * bins * features * 8
    assert max(rows_asked, default=0) <= lags
    assert model.loss_ < 0.2
