"""Fingerprints: those of 0.1, so that its files are still known; and they tell data apart."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from motifold.files import fingerprint, fingerprint_of_all

X = (np.arange(9000 * 3) % 17).reshape(9000, 3).astype(float)


@pytest.mark.parametrize(
    ("value", "shape", "dtype", "checksum"),
    [
        (X, [9000, 3], "float64", "e54b02ee40e75fae75478eaa54498ec4"),
        (X[:5], [5, 3], "float64", "48b09ebef0ab45ec891ab3042de99bf4"),
        (np.asfortranarray(X, "f4"), [9000, 3], "float32", "7be039faacba3dc84d9292ae0aacbb79"),
        ([3, 4], [2], "int64", "0aa375eeda9b0b37ecd97fc104c41612"),
        (["a", "b"], [2], "<U1", "feb23067571379ef9a2c8ddf6a2fb5a4"),
        (np.array(["a", "bc"], object), [2], "<U2", "b26e2f8a36a1f940cf5261bb64b360c1"),
    ],
)
def test_of_one_array_as_in_checkpoints_of_0_1(value, shape, dtype, checksum):
    assert fingerprint(value) == [shape, dtype, checksum]


def test_of_several_arrays_as_in_stores_of_0_1():
    mask = X > 3
    parts = [X[:5000], X[5000:], mask[:5000], mask[5000:]]
    assert fingerprint_of_all([X]) == "2a370d3eee17d05d"
    assert fingerprint_of_all(parts) == "b0dfbe95f8b746f7"
    assert fingerprint_of_all([np.asfortranarray(X, "f4")]) == "bf01064ff7cf852c"


def test_a_number_has_one_too():
    assert fingerprint(300)[0] == []
    assert fingerprint(300) != fingerprint(301)


@pytest.mark.parametrize("of", [fingerprint, lambda array: fingerprint_of_all([array])])
def test_content_shape_and_type_count_and_order_in_memory_does_not(of):
    changed = X.copy()
    changed[-1, -1] += 1
    others = [changed, X[:-1], X.reshape(3000, 9), X.astype(np.float32), X.view(np.int64)]
    assert len({str(of(array)) for array in [X, *others]}) == 6
    assert of(np.asfortranarray(X)) == of(X)
    assert of(np.repeat(X, 2, axis=0)[::2]) == of(X)


@pytest.mark.parametrize("of", [fingerprint, lambda array: fingerprint_of_all([array])])
def test_the_data_is_not_copied_whole(of, tmp_path):
    np.save(tmp_path / "long.npy", np.zeros((200_000, 20)))
    mapped = np.load(tmp_path / "long.npy", mmap_mode="r")
    tracemalloc.start()
    of(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < mapped.nbytes / 10


def test_of_a_sparse_matrix():
    """One whatever its format, order and explicit zeros; another for other entries or a dense X."""
    X = np.random.default_rng(0).poisson(0.2, (50, 7)).astype(float)
    entries = sparse.csr_array(X)
    with_zero = sparse.coo_array(
        (np.append(entries.data, 0.0), tuple(np.append(c, 0) for c in entries.tocoo().coords)),
        shape=X.shape,
    )
    other = entries.copy()
    other.data[3] += 1
    moved = sparse.csr_array(np.roll(X, 1, axis=1))
    for of in (fingerprint, lambda value: fingerprint_of_all([value])):
        known = of(entries)
        assert known == of(entries.tocsc()) == of(sparse.coo_matrix(X)) == of(with_zero)
        assert known not in [of(other), of(moved), of(X), of(entries.astype(np.float32))]
    assert with_zero.nnz == entries.nnz + 1, "what is given stays as it is"
