"""The two passes over the data by matrix products: what is read in which blocks, and the calls.

Nothing of the data's size is allocated. Blocks are stretches of the recording, across segments
where these are short. Arrays are handed to the kernels by address, so that one call does all of
them, in whatever memory order they came. What has no usable address is read block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from motifold.data import Segment
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import SECONDS_OF_MULTIPLICATION, Workers
from motifold.kernels.passes import pass_one, pass_residual, pass_two, products_of_blocks
from motifold.model import Array
from motifold.model.motifs import newest_first, oldest_first

# Blocks: so many, where they are not too short for the matrix products.
_BLOCKS, _SHORT = 64, 512
# Sums of the data itself would overflow where it is nearer to the largest number than so many
# powers of two, and its products would lose digits, or all of them, so near to the smallest: it is
# then scaled block by block before anything is multiplied.
_HEADROOM = 40
# Groups of blocks whose sums are taken in the data's precision: at most so many, for the threads'
# sake, and bytes that their sums may take.
_GROUPS, _GROUP_BYTES = 32, 2**25
# Of data that is read block by block: blocks and bytes of it that are worked on together.
_BATCH_BLOCKS, _BATCH_BYTES = 64, 2**25


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
    data: tuple[Array, ...] = ()

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
    of_group, base_of_group = np.zeros((L * K, N), dtype=H.dtype), np.zeros(base.shape)
    total, ends = np.zeros((L * K, N)), set((whole.groups[1:] - 1).tolist())
    for first, part in batches(problem, whole):
        products, smalls = _products_of_blocks(part, H, N, L * K, workers)
        for i in range(len(products)):
            # In the order and precision of the kernel that has all of the data.
            of_group += products[i]
            base_of_group += smalls[i]
            if first + i in ends:
                total += of_group
                base += base_of_group
                of_group[:], base_of_group[:] = 0, 0
    P = newest_first(np.ascontiguousarray(whole.scale * total.T), L).reshape(P.shape)
    return P, base


def _products_of_blocks(
    part: WorkList, H: Array, N: int, LK: int, workers: Workers
) -> tuple[Array, Array]:
    """H̃·X (blocks, L·K, N) and the lag products (blocks, K, L·K) of every block of a part."""
    K, m = H.shape[1], len(part.blocks) - 1
    products = workers.buffer("sums", (m, LK, N), H.dtype)
    smalls, flags = np.empty((m, K, LK), H.dtype), np.zeros(m + 2, dtype=np.int64)

    def work(threads: int) -> None:
        buffers = (
            workers.buffer("windows", (part.rows, LK), H.dtype),
            workers.buffer("data", (part.rows, N), H.dtype),
        )
        lists = part.pieces, part.blocks, part.columns
        products_of_blocks(H, *lists, buffers, products, smalls, flags, threads)

    workers.together(work, SECONDS_OF_MULTIPLICATION * (N + K) * LK * part.n_rows)
    return products, smalls


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
    for _, part in [] if whole.readable else batches(problem, whole):
        halos = _correlate_part(part, W_tilde, C, workers)
        add_to_rows_before(part, halos.reshape(len(halos), L - 1, K), C)
    if whole.scale != 1:
        C *= problem.dtype.type(whole.scale)
    return C


def add_to_rows_before(part: WorkList, halos: Array, C: Array) -> None:
    """Add what the blocks of a part have for rows before its own (changes C).

    halos : (blocks, L − 1, K), of every block for the rows before it
    """
    reach, begins = halos.shape[1], part.pieces[0, 4]
    for i, first in enumerate(part.blocks[:-1]):
        own, start = part.pieces[first, 4:]
        low, high = max(own - reach, start), min(own, begins)
        if low >= high:
            return  # nor do those behind it reach so far
        C[low:high] += halos[i, low - own + reach : high - own + reach]


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

    def of_part(part: WorkList) -> list[float]:
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
        return norms.tolist()

    if whole.readable:
        return sum(of_part(whole))
    return sum(norm for _, part in batches(problem, whole) for norm in of_part(part))


def batches(problem: Problem, whole: WorkList) -> Iterator[tuple[int, WorkList]]:
    """Runs of blocks with the number of the first, read from sources that have no address.

    Each has enough blocks for all threads; no bit depends on how many they are.
    """
    rows = np.add.reduceat(whole.pieces[:, 3], whole.blocks[:-1])
    row_bytes = problem.N * problem.dtype.itemsize
    sum_bytes = problem.N * problem.L * problem.K * problem.dtype.itemsize
    most = max(1, min(_BATCH_BLOCKS, _GROUP_BYTES // sum_bytes))
    first, n_blocks = 0, len(whole.blocks) - 1
    while first < n_blocks:
        last, nbytes = first + 1, rows[first] * row_bytes
        while last < min(n_blocks, first + most):
            nbytes += rows[last] * row_bytes
            if nbytes > _BATCH_BYTES:
                break
            last += 1
        yield first, _read_batch(problem, whole, first, last)
        first = last


def _read_batch(problem: Problem, whole: WorkList, first: int, last: int) -> WorkList:
    """Blocks first to last by themselves: views of what the sources have ready, or copies."""
    pieces = whole.pieces[whole.blocks[first] : whole.blocks[last]].copy()
    found = np.searchsorted(problem.bounds[:, 0], pieces[:, 5])
    parts = []
    for i, (n, own, start) in zip(found, pieces[:, 3:].tolist(), strict=True):
        part = problem.segments[i].rows(own - start, own - start + n)
        if whole.scale != problem.scale:
            part = part * part.dtype.type(problem.scale)
        parts.append(part if _has_address(part) else np.array(part, dtype=problem.dtype))
    pieces[:, 0] = [part.ctypes.data for part in parts]
    pieces[:, 1:3] = [part.strides for part in parts]
    blocks = whole.blocks[first : last + 1] - whole.blocks[first]
    longest = int(np.add.reduceat(pieces[:, 3], blocks[:-1]).max())
    return WorkList(pieces, blocks, np.arange(last - first + 1), longest, data=tuple(parts))


def _has_address(X: Array | None) -> bool:
    return X is not None and X.flags.aligned and X.dtype.isnative


def work_list(problem: Problem) -> WorkList:
    """The blocks of a problem, made once."""
    if "work list" not in problem.kept:
        spans = [(0, len(segment)) for segment in problem.segments]
        problem.kept["work list"] = work_list_of(problem, spans)
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


def work_list_of(problem: Problem, spans: Sequence[tuple[int, int]]) -> WorkList:
    """The blocks of some rows, a to b of every segment; short ones are taken together."""
    rows = min(problem.block_rows, max(_SHORT, -(-problem.T // _BLOCKS)))
    pieces: list[tuple[int, ...]] = []
    blocks, filled = [0], 0
    for segment, (first, last) in zip(problem.segments, spans, strict=True):
        start, (address, step, *rest) = segment.start, _place(segment)
        for a in range(first, last, rows):
            n = min(rows, last - a)
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
    scale, limits = problem.scale, np.finfo(problem.dtype)
    if not 2.0 ** (_HEADROOM - limits.maxexp) <= scale <= 2.0 ** (-limits.minexp - _HEADROOM):
        readable, scale = False, 1.0
    return WorkList(table, np.array(blocks), groups, longest, columns, readable, scale)
