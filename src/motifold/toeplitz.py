"""Windows over rows, and the product with a block-Toeplitz matrix by matrix products.

The H problem's Gram is block-Toeplitz (the paper's section III-B): row t of A∗H is a window of
2L−1 rows of H times fixed taps. Taking R rows of the result together turns this thin product into
one that BLAS does well.
"""

from __future__ import annotations

import numpy as np

from motifold.parallel import Workers
from motifold.problem import Array

# Columns that make a matrix product worth its name, and rows of windows at a time.
_COLUMNS, _BLOCK_BYTES = 96, 2**19
# Multiplications below which handing work to threads costs more than it saves.
_WORTH_THREADS = 3e7


def padded_rows(H: Array, a: int, b: int, L: int) -> Array:
    """Rows a−L+1 to b of one segment, zeros where there are none: its runs of L are those of H̃."""
    if a >= L - 1:
        return H[a - L + 1 : b]
    padded = np.zeros((b - a + L - 1, H.shape[1]), dtype=H.dtype)
    first = max(0, a - L + 1)
    padded[first - (a - L + 1) :] = H[first:b]
    return padded


def windows(rows: Array, width: int, step: int, workers: Workers) -> Array:
    """Every ``step``-th run of ``width`` consecutive rows, each flattened to (width·K,).

    A copy in a buffer of the calling thread, because BLAS refuses matrices whose rows overlap.
    """
    R, K = rows.shape
    n = (R - width) // step + 1
    across, along = rows.strides
    view = np.lib.stride_tricks.as_strided(
        rows, (n, width, K), (step * across, across, along), writeable=False
    )
    out = workers.buffer("windows", (n, width, K), rows.dtype)
    np.copyto(out, view)
    return out.reshape(n, width * K)


def smoothed(F: Array, padding: Padding) -> Array:
    """Q∗F (T, K), Q being 2L−1 ones: sums over the bins less than L away, within each segment.

    Every window is the end of one stretch of 2L−1 rows and the beginning of the next: only
    additions, so that zeros stay zero.
    """
    width = 2 * padding.L - 1
    K = F.shape[1]
    rows = np.zeros((-(-padding.n_rows // width) * width + width, K))
    padding.padded(F, out=rows)
    stretches = rows.reshape(-1, width, K)
    before = np.cumsum(stretches, axis=1).reshape(-1, K)
    after = np.cumsum(stretches[:, ::-1], axis=1)[:, ::-1]
    after[:, 0] = 0  # a window that is a whole stretch is all in ``before``
    sums = before[width - 1 :] + after.reshape(-1, K)[: len(rows) - width + 1]
    return padding.unpad(sums, np.empty_like(F), offset=1 - padding.L)


class Padding:
    """Rows of all segments with L−1 rows of zeros around each, so that no window needs a check.

    Parameters
    ----------
    bounds : (segments, 3), as in ``Problem.bounds``
    L : number of lags

    Attributes
    ----------
    layout : (segments, 4), the bounds and the shift: row t of a segment stands at t + shift
    n_rows : number of padded rows
    """

    def __init__(self, bounds: np.ndarray, L: int) -> None:
        self.L = L
        shifts = (L - 1) * (1 + np.arange(len(bounds)))
        self.layout = np.column_stack([bounds, shifts])
        self.n_rows = int(bounds[-1, 2] + shifts[-1] + L - 1)

    def padded(self, H: Array, out: Array | None = None) -> Array:
        """The rows of H (T, K) with their zeros, in ``out`` if it is given (it may be longer)."""
        if out is None:
            out = np.empty((self.n_rows, H.shape[1]), dtype=H.dtype)
        end = 0
        for start, _, stop, shift in self.layout:
            out[end : start + shift] = 0
            end = stop + shift
            out[start + shift : end] = H[start:stop]
        out[end:] = 0
        return out

    def unpad(self, rows: Array, out: Array, offset: int = 0) -> Array:
        """Copy what belongs to the segments to ``out`` (T, K); ``offset`` is added to the shift."""
        for start, _, stop, shift in self.layout:
            out[start:stop] = rows[start + shift + offset : stop + shift + offset]
        return out


class BlockToeplitz:
    """The product A∗H for all rows of H, as if no motif were cut off by the end of a segment.

    Parameters
    ----------
    A : (K, 2L−1, K), the taps
    padding : of the segments
    """

    def __init__(self, A: Array, padding: Padding) -> None:
        K, width, _ = A.shape
        self.A = A
        self.K, self.L = K, (width + 1) // 2
        # R rows at a time cost (R + 2L − 2)/(2L − 1) as many products.
        self.R = max(1, min(-(-_COLUMNS // K), width))
        self.padding = padding

    def apply(self, H: Array, workers: Workers) -> Array:
        """A∗H (T, K) for H (T, K)."""
        K, R, width = self.K, self.R, self.R + 2 * self.L - 2
        matrix = self._matrix()
        padded = workers.buffer("padded", (self.padding.n_rows + R, K), H.dtype)
        self.padding.padded(H, out=padded)
        n_windows = (len(padded) - width) // R + 1
        flat = workers.buffer("correlation", (n_windows, R * K), H.dtype)
        block = max(16, _BLOCK_BYTES // (width * K * H.itemsize))

        def product(first: int) -> None:
            last = min(first + block, n_windows)
            rows = padded[first * R : (last - 1) * R + width]
            np.matmul(windows(rows, width, R, workers), matrix, out=flat[first:last])

        heavy = n_windows * matrix.size > _WORTH_THREADS
        for _ in (workers.map if heavy else map)(product, range(0, n_windows, block)):
            pass
        # Row i of the result is that of padded row i + L − 1.
        rows = flat.reshape(n_windows * R, K)
        return self.padding.unpad(rows, np.empty_like(H), offset=1 - self.L)

    def _matrix(self) -> Array:
        """The block of the Toeplitz matrix that maps R + 2L − 2 rows to R rows."""
        _, width, K = self.A.shape
        # out[t, k] = Σ_s H[s, j] A[j, t−s, k]: against time, hence the reversal.
        taps = self.A[:, ::-1].transpose(1, 0, 2)
        matrix = np.zeros((self.R + width - 1, K, self.R, K), dtype=self.A.dtype)
        for r in range(self.R):
            matrix[r : r + width, :, r] = taps
        return matrix.reshape(-1, self.R * K)
