"""Products by cuBLAS: what it is given, of matrices in all orders. A false one stands for it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from motifold.engines.cuda.blas import Blas, BlasError

# As cuBLAS: by columns, op(A) (m, k), op(B) (k, n), with the distances between their columns.
FALSE = r"""
static int mode = 0, fails = 0, last = -1;
template <class V>
int gemm(long, int ta, int tb, int m, int n, int k, const V* alpha, const V* A, int lda, const V* B,
         int ldb, const V* beta, V* C, int ldc) {
    last = mode;
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            V sum = 0;
            for (int p = 0; p < k; p++)
                sum += (ta ? A[p + (long)i * lda] : A[i + (long)p * lda]) *
                       (tb ? B[j + (long)p * ldb] : B[p + (long)j * ldb]);
            C[i + (long)j * ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * C[i + (long)j * ldc]);
        }
    return 0;
}
extern "C" {
int cublasSgemm_v2(long h, int ta, int tb, int m, int n, int k, const float* a, const float* A,
                   int lda, const float* B, int ldb, const float* b, float* C, int ldc) {
    return gemm(h, ta, tb, m, n, k, a, A, lda, B, ldb, b, C, ldc);
}
int cublasDgemm_v2(long h, int ta, int tb, int m, int n, int k, const double* a, const double* A,
                   int lda, const double* B, int ldb, const double* b, double* C, int ldc) {
    return gemm(h, ta, tb, m, n, k, a, A, lda, B, ldb, b, C, ldc);
}
int cublasSgemmStridedBatched(long h, int ta, int tb, int m, int n, int k, const float* a,
                              const float* A, int lda, long long sa, const float* B, int ldb,
                              long long sb, const float* b, float* C, int ldc, long long sc,
                              int many) {
    int status = 0;
    for (int i = 0; i < many && !status; i++)
        status = gemm(h, ta, tb, m, n, k, a, A + i * sa, lda, B + i * sb, ldb, b, C + i * sc, ldc);
    return status;
}
int cublasDgemmStridedBatched(long h, int ta, int tb, int m, int n, int k, const double* a,
                              const double* A, int lda, long long sa, const double* B, int ldb,
                              long long sb, const double* b, double* C, int ldc, long long sc,
                              int many) {
    int status = 0;
    for (int i = 0; i < many && !status; i++)
        status = gemm(h, ta, tb, m, n, k, a, A + i * sa, lda, B + i * sb, ldb, b, C + i * sc, ldc);
    return status;
}
int cublasSetStream_v2(long, long) { return fails; }
int cublasSetMathMode(long, int given) { mode = given; return 0; }
int mode_of_last() { return last; }
int mode_now() { return mode; }
void fail(int status) { fails = status; }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("g++ is absent")
    folder = tmp_path_factory.mktemp("blas")
    (folder / "false.cpp").write_text(FALSE)
    command = ["g++", "-shared", "-fPIC", "-o", folder / "false.so", folder / "false.cpp"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "false.so"))


@pytest.fixture
def blas(library):
    def empty(shape, dtype):
        return np.full(shape, np.nan, dtype=dtype)

    return Blas(library, lambda: 1, lambda: 2, lambda array: array.ctypes.data, empty)


def matrices(dtype):
    """(4, 3) in all the orders that there are."""
    rng = np.random.default_rng(0)
    wide = rng.random((4, 9)).astype(dtype)
    tall = rng.random((9, 4)).astype(dtype)
    return [
        wide[:, :3].copy(),
        wide[:, 4:7],
        tall[:3].copy().T,
        tall.T[:, 2:5],
        np.asfortranarray(wide[:, :3]),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_in_every_order(blas, dtype):
    for a in matrices(dtype):
        for b in matrices(dtype):
            np.testing.assert_allclose(blas.product(a.T, b), a.T @ b, rtol=1e-6)
            np.testing.assert_allclose(blas.product(a, b.T), a @ b.T, rtol=1e-6)
    row, column = np.ones((1, 5), dtype), np.arange(5, dtype=dtype)[:, None]
    for a, b in ((row, column), (column, row), (column[:1], row)):
        np.testing.assert_array_equal(blas.product(a, b), a @ b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_at_once(blas, dtype):
    """Each with its own, or all with the same matrix; transposed, or every other one."""
    rng = np.random.default_rng(1)
    many, others = rng.random((6, 4, 3)).astype(dtype), rng.random((6, 3, 5)).astype(dtype)
    for a in (many, many.transpose(0, 2, 1).copy().transpose(0, 2, 1), many[:, :, :3]):
        for b in (others, others[0]):
            np.testing.assert_allclose(blas.product(a, b), a @ b, rtol=1e-6)
    alone = many[0].copy()
    np.testing.assert_allclose(blas.product(alone, others), alone @ others, rtol=1e-6)
    np.testing.assert_allclose(
        blas.product(many[::2], others[::2]), (many @ others)[::2], rtol=1e-6
    )
    assert blas.product(many, others[:2]) is None
    assert blas.product(many[None], others[None]) is None


def test_rough_products_are_by_tf32_and_no_others(blas, library):
    a = np.ones((2, 2), np.float32)
    blas.product(a, a, rough=True)
    assert library.mode_of_last() == 3
    assert library.mode_now() == 0
    blas.product(a, a)
    assert library.mode_of_last() == 0


@pytest.mark.parametrize(
    "b",
    [
        np.ones((2, 2), np.float64),
        np.ones((2, 0), np.float32),
        np.ones((4, 4), np.float32)[::2, ::2],
        np.ones((2, 2), np.float32)[::-1],
    ],
    ids=["other numbers", "nothing", "gaps", "backwards"],
)
def test_what_is_not_for_it(blas, b):
    assert blas.product(np.ones((2, 2), np.float32), b) is None


def test_a_refusal_is_an_error(blas, library):
    library.fail(14)
    try:
        with pytest.raises(BlasError, match="14"):
            blas.product(np.ones((2, 2)), np.ones((2, 2)))
    finally:
        library.fail(0)
