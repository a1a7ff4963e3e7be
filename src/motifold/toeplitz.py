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


class BlockToeplitz:
    """The product A∗D for all rows of D, as if no motif were cut off by the end of a segment.

    Parameters
    ----------
    A : (K, 2L−1, K), the taps
    bounds : (segments, 3), as in ``Problem.bounds``
    """

    def __init__(self, A: Array, bounds: np.ndarray) -> None:
        K, width, _ = A.shape
        self.A = A
        self.K, self.L = K, (width + 1) // 2
        # R rows at a time cost (R + 2L − 2)/(2L − 1) as many products.
        self.R = max(1, min(-(-_COLUMNS // K), width))
        self.starts, self.stops = bounds[:, 0], bounds[:, 2]
        gaps = (self.L - 1) * (1 + np.arange(len(bounds)))
        self.shifts = gaps  # row t of segment i stands at t + shifts[i] of the padded rows
        self.n_rows = int(self.stops[-1] + gaps[-1] + self.L - 1)
        self._matrices: dict[int | None, Array] = {}

    def apply(self, D: Array, workers: Workers, k: int | None = None) -> Array:
        """A∗D (T, K) for D (T, K); or with ``k``, for D (T, 1) that is component k alone.

        In a buffer of the calling thread: valid until the next call.
        """
        K, R, width = self.K, self.R, self.R + 2 * self.L - 2
        matrix = self._matrix(k)
        padded = self._padded(D, workers)
        n_windows = (len(padded) - width) // R + 1
        flat = workers.buffer("correlation", (n_windows, R * K), D.dtype)
        block = max(16, _BLOCK_BYTES // (width * D.shape[1] * D.itemsize))

        def product(first: int) -> None:
            last = min(first + block, n_windows)
            rows = padded[first * R : (last - 1) * R + width]
            np.matmul(windows(rows, width, R, workers), matrix, out=flat[first:last])

        heavy = n_windows * matrix.size > _WORTH_THREADS
        for _ in (workers.map if heavy else map)(product, range(0, n_windows, block)):
            pass
        return self._unpadded(flat.reshape(n_windows * R, K))

    def _padded(self, D: Array, workers: Workers) -> Array:
        """The rows of D with L−1 zeros around each segment, and some more at the end."""
        padded = workers.buffer("padded", (self.n_rows + self.R, D.shape[1]), D.dtype)
        padded.fill(0)
        for start, stop, shift in zip(self.starts, self.stops, self.shifts, strict=True):
            padded[start + shift : stop + shift] = D[start:stop]
        return padded

    def _unpadded(self, rows: Array) -> Array:
        """What belongs to the segments: row i of ``rows`` is that of padded row i + L − 1."""
        offset = self.L - 1
        if len(self.starts) == 1:
            return rows[: self.stops[0]]
        return np.concatenate(
            [
                rows[start + shift - offset : stop + shift - offset]
                for start, stop, shift in zip(self.starts, self.stops, self.shifts, strict=True)
            ]
        )

    def _matrix(self, k: int | None) -> Array:
        """The block of the Toeplitz matrix that maps R + 2L − 2 rows to R rows."""
        if k not in self._matrices:
            A = self.A if k is None else self.A[k : k + 1]
            J, width, K = A.shape
            # out[t, k] = Σ_s D[s, j] A[j, t−s, k]: against time, hence the reversal.
            taps = A[:, ::-1].transpose(1, 0, 2)
            matrix = np.zeros((self.R + width - 1, J, self.R, K), dtype=A.dtype)
            for r in range(self.R):
                matrix[r : r + width, :, r] = taps
            self._matrices[k] = matrix.reshape(-1, self.R * K)
        return self._matrices[k]
