"""Windows over rows, and the product with a block-Toeplitz matrix by matrix products.

The H problem's Gram is block-Toeplitz (the paper's section III-B): row t of A∗H is a window of
2L−1 rows of H times fixed taps. Taking R rows of the result together turns this thin product into
one that BLAS does well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from motifold.engines.cpu.threads import Workers
from motifold.kernels import correlation as kernels
from motifold.model import Array

# Columns that make a matrix product worth its name, and rows of windows at a time.
_COLUMNS, _BLOCK_BYTES = 96, 2**19
# Pieces of such a product, for the threads' sake, and seconds of one multiplication, about.
_BLOCKS, _SECONDS = 64, 2e-11


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


def fitted_rows(
    H: Array, W_tilde: Array, a: int, b: int, workers: Workers, out: Array | None = None
) -> Array:
    """Rows a to b of X̂ in one segment, (b − a, N).

    H (T_i, K), the segment's activations; W_tilde (L·K, N), the oldest lag first.
    """
    L = len(W_tilde) // H.shape[1]
    rows = padded_rows(H, a, b, L)
    return np.matmul(windows(rows, L, 1, workers), W_tilde, out=out)


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


def correlate(
    H: Array,
    A: Array,
    E: Array,
    bounds: npt.NDArray[np.int64],
    workers: Workers,
    C: Array | None = None,
) -> Array:
    """A∗H (T, K), less C if it is given: the products of every placed motif with X̂, less X.

    A (K, 2L−1, K) and E (L, K, L, K) as in ``HStatistics``: by A where no motif is cut off by the
    end of a segment, by E among those that are.
    """
    K, L = H.shape[1], len(E)
    H, A, E = (np.ascontiguousarray(part) for part in (H, A, E))
    C = np.empty((0, K), dtype=H.dtype) if C is None else np.ascontiguousarray(C)
    # R rows at a time cost (R + 2L − 2)/(2L − 1) as many products.
    R = max(1, min(-(-_COLUMNS // K), 2 * L - 1))
    width = (R + 2 * L - 2) * K
    uncut = np.maximum(0, bounds[:, 2] - bounds[:, 0] - L + 1)
    firsts = np.concatenate([[0], np.cumsum(-(-uncut // R))])
    n_windows, n_segments = int(firsts[-1]), len(bounds)
    block = max(16, _BLOCK_BYTES // (width * H.itemsize))
    block = max(1, min(block, -(-n_windows // _BLOCKS)))
    steps = np.array([block, max(1, n_segments // _BLOCKS)])
    items = -(-n_windows // steps[0]) + -(-n_segments // steps[1])
    flags = np.zeros(items + 2, dtype=np.int64)
    out = np.empty_like(H)
    matrix = _toeplitz_block(A, R)

    def work(threads: int) -> None:
        buffers = (
            workers.buffer("windows", (block, width), H.dtype),
            workers.buffer("product", (block, R * K), H.dtype),
        )
        lists = bounds, firsts, steps
        kernels.correlate(H, C, A, E, matrix, *lists, buffers, out, flags, threads)

    multiplications = n_windows * matrix.size + n_segments * (L * K) ** 2
    workers.together(work, _SECONDS * multiplications)
    return out


def _toeplitz_block(A: Array, R: int) -> Array:
    """The block of the Toeplitz matrix that maps R + 2L − 2 rows to R rows."""
    _, width, K = A.shape
    # out[t, k] = Σ_s H[s, j] A[j, t−s, k]: against time, hence the reversal.
    taps = A[:, ::-1].transpose(1, 0, 2)
    matrix = np.zeros((R + width - 1, K, R, K), dtype=A.dtype)
    across, along, on, within = matrix.strides
    # Column r has the taps from row r on.
    diagonals = np.lib.stride_tricks.as_strided(
        matrix, (R, width, K, K), (across + on, across, along, within)
    )
    diagonals[...] = taps
    return matrix.reshape(-1, R * K)
