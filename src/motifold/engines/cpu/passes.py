"""The two passes over the data by matrix products: what is read in which blocks, and the calls.

Nothing of the data's size is allocated. Blocks are stretches of the recording, across segments
where these are short. Arrays are handed to the kernels by address, so that one call does all of
them, in whatever memory order they came. What has no usable address is read block by block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from motifold.data import Segment
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import SECONDS_OF_MULTIPLICATION, Workers
from motifold.kernels.passes import pass_one, pass_residual, pass_two
from motifold.model import Array
from motifold.model.motifs import oldest_first

# Blocks: so many, where they are not too short for the matrix products.
_BLOCKS, _SHORT = 64, 512
# Sums of the data itself would overflow where it is nearer to the largest number than so many
# powers of two: it is then scaled block by block before anything is summed.
_HEADROOM = 40
# Groups of blocks whose sums are taken in the data's precision: at most so many, for the threads'
# sake, and bytes that their sums may take.
_GROUPS, _GROUP_BYTES = 32, 2**25


@dataclass(frozen=True)
class WorkList:
    """What the passes read, as ``kernels.passes`` has it.

    Attributes
    ----------
    pieces, blocks, groups : of int64
    rows : of the longest block
    columns : whether features stand one after the other in memory
    readable : whether all of the data is in arrays with a usable address
    scale : with which sums of it are to be multiplied; what has been copied may be scaled already
    data : keeps what has been copied
    """

    pieces: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    rows: int
    columns: bool = False
    readable: bool = True
    scale: float = 1.0
    data: Array | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all blocks together."""
        return int(self.pieces[:, 3].sum())


def lag_products(
    problem: Problem, H: Array, workers: Workers, read: bool = True
) -> tuple[Array, Array]:
    """Pass 1: Σ_t X[t, n] H[t−ℓ, k] as (N, L, K), and the lag products of H, (K, L·K), in float64.

    The latter are over the rows that all lags share, see ``statistics``. With ``read=False`` the
    data is left alone, and the former are none.
    """
    N, L, K = problem.N if read else 0, problem.L, problem.K
    H = np.ascontiguousarray(H)
    P, base = np.zeros((N, L, K)), np.zeros((K, L * K))
    whole = work_list(problem)
    if whole.readable or not read:
        return _products_of_part(whole, H, N, base, workers), base
    for group in range(len(whole.groups) - 1):
        # The sums of a group are in the data's precision, as those of the kernel are.
        P_group, base_group = np.zeros(P.shape, dtype=H.dtype), np.zeros(base.shape)
        for block in range(*whole.groups[group : group + 2]):
            part = block_alone(problem, whole, block)
            P_group += _products_of_part(part, H, N, base_group, workers).astype(H.dtype)
        P += P_group
        base += base_group
    return whole.scale * P, base


def _products_of_part(part: WorkList, H: Array, N: int, base: Array, workers: Workers) -> Array:
    """What a part of the data adds to P (N, L, K), and to ``base`` (changes it)."""
    K, LK = base.shape
    m, scale = len(part.groups) - 1, part.scale
    P = np.empty((N, LK // K, K))
    sums = workers.buffer("sums", (m, LK, N), H.dtype)
    bases, flags = np.empty((m, K, LK)), np.zeros(m + 2, dtype=np.int64)

    def work(threads: int) -> None:
        buffers = (
            workers.buffer("windows", (part.rows, LK), H.dtype),
            workers.buffer("data", (part.rows, N), H.dtype),
            workers.buffer("product", (LK, N), H.dtype),
        )
        lists = part.pieces, part.blocks, part.groups, part.columns
        pass_one(H, *lists, buffers, sums, bases, P, base, scale, flags, threads)

    workers.together(work, SECONDS_OF_MULTIPLICATION * (N + K) * LK * part.n_rows)
    return P


def correlation(problem: Problem, W: Array, workers: Workers) -> Array:
    """Pass 2: C = W⋆X, C[t, k] = Σ_ℓ Σ_n W[n, ℓ, k] X[t+ℓ, n] within each segment, (T, K)."""
    _, L, K = W.shape
    W_tilde = oldest_first(W)
    C = np.empty((problem.T, K), dtype=problem.dtype)
    whole = work_list(problem)
    if whole.readable:
        _correlate_part(whole, W_tilde, C, workers)
    for block in range(0 if whole.readable else len(whole.blocks) - 1):
        part = block_alone(problem, whole, block)
        halos = _correlate_part(part, W_tilde, C, workers)
        own, start = part.pieces[0, 4:]  # what it adds to the block before
        there = min(L - 1, own - start)
        C[own - there : own] += halos[0].reshape(L - 1, K)[L - 1 - there :]
    if whole.scale != 1:
        C *= problem.dtype.type(whole.scale)
    return C


def _correlate_part(part: WorkList, W: Array, C: Array, workers: Workers) -> Array:
    """Set the rows of C that belong to a part of the data (changes C).

    W is (N, L·K), the oldest lag first. Returns what each block adds to rows before its own.
    """
    N, LK = W.shape
    m = len(part.blocks) - 1
    halos = workers.buffer("halos", (m, LK - C.shape[1]), C.dtype)
    flags = np.zeros(m + 2, dtype=np.int64)

    def work(threads: int) -> None:
        buffers = (
            workers.buffer("windows", (part.rows, LK), C.dtype),
            workers.buffer("data", (part.rows, N), C.dtype),
        )
        lists = part.pieces, part.blocks, part.columns
        pass_two(W, *lists, buffers, halos, C, flags, threads)

    workers.together(work, SECONDS_OF_MULTIPLICATION * N * LK * part.n_rows)
    return halos


def squared_residual(problem: Problem, W: Array, H: Array, workers: Workers) -> float:
    """‖X − X̂‖² of all entries, in the working scale."""
    N, L, K = W.shape
    W_tilde = np.ascontiguousarray(oldest_first(W).T)
    H = np.ascontiguousarray(H)
    whole = work_list(problem)
    scale = problem.dtype.type(whole.scale)

    def of_part(part: WorkList) -> float:
        m = len(part.blocks) - 1
        norms, flags = np.empty(m), np.zeros(m + 2, dtype=np.int64)

        def work(threads: int) -> None:
            buffers = (
                workers.buffer("windows", (part.rows, L * K), H.dtype),
                workers.buffer("data", (part.rows, N), H.dtype),
                workers.buffer("product", (part.rows, N), H.dtype),
            )
            lists = part.pieces, part.blocks, part.columns
            pass_residual(H, W_tilde, *lists, buffers, scale, norms, flags, threads)

        workers.together(work, SECONDS_OF_MULTIPLICATION * N * L * K * part.n_rows)
        return sum(norms.tolist())

    if whole.readable:
        return of_part(whole)
    return sum(of_part(block_alone(problem, whole, i)) for i in range(len(whole.blocks) - 1))


def block_alone(problem: Problem, whole: WorkList, block: int) -> WorkList:
    """A block by itself, copied: where the data has no address that a kernel could use."""
    pieces = whole.pieces[slice(*whole.blocks[block : block + 2])].copy()
    found = np.searchsorted(problem.bounds[:, 0], pieces[:, 5])
    parts = [
        problem.segments[i].rows(own - start, own - start + n)
        for i, (n, own, start) in zip(found, pieces[:, 3:].tolist(), strict=True)
    ]
    data = np.array(parts[0], order="C") if len(parts) == 1 else np.concatenate(parts)
    if whole.scale != problem.scale:
        data *= data.dtype.type(problem.scale)
    before = np.cumsum(pieces[:, 3]) - pieces[:, 3]
    pieces[:, 0] = data.ctypes.data + before * data.strides[0]
    pieces[:, 1:3] = data.strides
    alone = np.array([0, 1])
    return WorkList(pieces, np.array([0, len(pieces)]), alone, len(data), data=data)


def _has_address(X: Array | None) -> bool:
    return X is not None and X.flags.aligned and X.dtype.isnative


def work_list(problem: Problem) -> WorkList:
    """The blocks of a problem, made once."""
    if "work list" not in problem.kept:
        problem.kept["work list"] = _new_work_list(problem)
    return problem.kept["work list"]


def _place(segment: Segment) -> tuple[int, int, int, int]:
    """Where kernels find the first row of a segment, bytes to the next one, and two things more.

    Of an array: the strides (``kernels.passes``). Of a sparse matrix the rows are where their
    entries begin, and these are elsewhere (``kernels.sparse``).
    """
    X, entries = segment.array, segment.sparse
    if X is not None:
        across, along = X.strides
        return X.ctypes.data, across, across, along
    if entries is not None:
        starts, columns, values = entries.starts, entries.columns, entries.values
        return starts.ctypes.data, starts.strides[0], columns.ctypes.data, values.ctypes.data
    return 0, 0, 0, 0


def _new_work_list(problem: Problem) -> WorkList:
    """The blocks of a problem; those that together are not longer than one become one."""
    rows = min(problem.block_rows, max(_SHORT, -(-problem.T // _BLOCKS)))
    pieces: list[tuple[int, ...]] = []
    blocks, filled = [0], 0
    for segment in problem.segments:
        start, (address, step, *rest) = segment.start, _place(segment)
        for a in range(0, len(segment), rows):
            n = min(rows, len(segment) - a)
            if filled and filled + n > rows:
                blocks.append(len(pieces))
                filled = 0
            pieces.append((address + a * step, *rest, n, start + a, start))
            filled += n
    blocks.append(len(pieces))
    table = np.array(pieces, dtype=np.int64)
    n_blocks = len(blocks) - 1
    bytes_of_sum = problem.N * problem.L * problem.K * problem.dtype.itemsize
    n_groups = min(n_blocks, max(1, min(_GROUPS, _GROUP_BYTES // bytes_of_sum)))
    groups = n_blocks * np.arange(n_groups + 1) // n_groups
    size = problem.dtype.itemsize
    readable = all(_has_address(segment.array) for segment in problem.segments)
    columns = readable and bool(np.all((table[:, 1] == size) & (table[:, 2] != size)))
    longest = int(np.add.reduceat(table[:, 3], blocks[:-1]).max())
    scale = problem.scale
    if scale * 2.0 ** (np.finfo(problem.dtype).maxexp - _HEADROOM) < 1:
        readable, scale = False, 1.0
    return WorkList(table, np.array(blocks), groups, longest, columns, readable, scale)
