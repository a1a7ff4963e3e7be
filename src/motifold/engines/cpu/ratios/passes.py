"""The two passes over the data for a β-divergence, each one compiled call per thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.engines.cpu import sparse
from motifold.engines.cpu.passes import WorkList, add_to_rows_before, batches, work_list
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.ratios.reference import reference
from motifold.engines.cpu.threads import SECONDS_OF_MULTIPLICATION, Workers
from motifold.kernels.majoriser import column_sums, sum_of_fit
from motifold.kernels.ratios import ratio_pass_one, ratio_pass_two
from motifold.model import Array
from motifold.model.motifs import oldest_first

# Multiplications that the ratio and the logarithm of an entry are worth, about.
_ENTRY = 20


@dataclass(frozen=True)
class Ratios:
    """The two parts of a gradient, ``below − above``, and the divergence where they were taken.

    Attributes
    ----------
    above, below : like the factor; ``below`` may be one row for all features
    divergence : of X from X̂
    """

    above: Array
    below: Array
    divergence: float


def of_motifs(problem: Problem, W: Array, H: Array, workers: Workers) -> Ratios:
    """Pass 1: products of the ratios with H̃, (N, L, K)."""
    if problem.sparse and not two_ratios(problem):
        return _of_entries_for_motifs(problem, W, H, workers)
    N, L, K = W.shape
    W_tilde = np.ascontiguousarray(oldest_first(W).T)
    H = np.ascontiguousarray(H)
    two = two_ratios(problem)
    above, below = np.zeros((N, L, K)), np.zeros((N if two else 1, L, K))
    divergence = 0.0
    whole = work_list(problem)

    def add_part(part: WorkList) -> None:
        nonlocal divergence
        m = len(part.groups) - 1
        P, Q = np.empty_like(above), np.empty_like(below)
        sums = workers.buffer("sums", (1 + two, m, L * K, N), H.dtype)
        lags, divergences = np.empty((m, L * K)), np.empty(m)
        flags = np.zeros(m + 2, dtype=np.int64)
        lists, numbers = _lists(problem, part), _numbers(problem, whole)

        def work(threads: int) -> None:
            product = workers.buffer("product", (L * K, N), H.dtype)
            buffers = _buffers(part, N, L * K, two, H.dtype, workers)
            results = sums, lags, P, Q, divergences
            ratio_pass_one(H, W_tilde, lists, buffers, product, numbers, *results, flags, threads)

        workers.together(work, _seconds(part, N, L * K, two))
        above[...] += P
        below[...] += Q
        divergence += sum(divergences.tolist())

    for part in [whole] if whole.readable else _batches(problem, whole):
        add_part(part)
    dtype = problem.dtype
    parts = above.astype(dtype, copy=False), below.astype(dtype, copy=False)
    return Ratios(*parts, settled_divergence(problem, divergence))


def of_activations(problem: Problem, W: Array, H: Array, workers: Workers) -> Ratios:
    """Pass 2: products of the ratios with every placed motif, (T, K)."""
    if problem.sparse and not two_ratios(problem):
        return _of_entries_for_activations(problem, W, H, workers)
    N, L, K = W.shape
    V = oldest_first(W)
    W_tilde = np.ascontiguousarray(V.T)
    H = np.ascontiguousarray(H)
    two = two_ratios(problem)
    C = np.empty((1 + two, problem.T, K), dtype=problem.dtype)
    whole = work_list(problem)

    def set_part(part: WorkList) -> tuple[Array, float]:
        m = len(part.blocks) - 1
        halos = workers.buffer("halos", (1 + two, m, (L - 1) * K), C.dtype)
        divergences, flags = np.empty(m), np.zeros(m + 2, dtype=np.int64)
        lists, numbers = _lists(problem, part), _numbers(problem, whole)

        def work(threads: int) -> None:
            product = workers.buffer("spread", (part.rows, L * K), H.dtype)
            buffers = _buffers(part, N, L * K, two, H.dtype, workers)
            results = halos, C, divergences
            ratio_pass_two(
                H, W_tilde, V, lists, buffers, product, numbers, *results, flags, threads
            )

        workers.together(work, _seconds(part, N, L * K, two))
        return halos, sum(divergences.tolist())

    if whole.readable:
        divergence = set_part(whole)[1]
    else:
        divergence = 0.0
        for part in _batches(problem, whole):
            halos, more = set_part(part)
            divergence += more
            for before, target in zip(halos, C, strict=True):
                add_to_rows_before(part, before.reshape(len(before), L - 1, K), target)
    below = C[1] if two else _placed_sums(problem, W)
    return Ratios(C[0], below, settled_divergence(problem, divergence))


def settled_divergence(problem: Problem, divergence: float) -> float:
    """Not below zero, as rounding might have it; zero where X and X̂ are zero but for the floor."""
    known, beta = reference(problem), problem.model.loss.beta
    if known.means.any() or beta <= 0:
        return max(0.0, divergence)
    of_floor = problem.T * problem.N * known.floor**beta / beta
    return divergence if divergence > 2 * of_floor else 0.0


def _of_entries_for_motifs(problem: Problem, W: Array, H: Array, workers: Workers) -> Ratios:
    """Pass 1 for sparse counts: X̂ is computed where X is not zero, and in sum."""
    floor = np.full(problem.N, reference(problem).floor, dtype=problem.dtype)
    above, _, logs = sparse.ratio_products(problem, W, H, floor, 0.0, workers)
    below = window_sums(problem, H)[None]
    kind = problem.dtype
    divergence = _divergence_of_entries(problem, W, H, logs)
    return Ratios(above.astype(kind, copy=False), below.astype(kind, copy=False), divergence)


def _of_entries_for_activations(problem: Problem, W: Array, H: Array, workers: Workers) -> Ratios:
    """Pass 2 for sparse counts."""
    floor = np.full(problem.N, reference(problem).floor, dtype=problem.dtype)
    above, logs = sparse.ratio_correlation(problem, W, H, floor, 0.0, workers)
    divergence = _divergence_of_entries(problem, W, H, logs)
    return Ratios(above, _placed_sums(problem, W), divergence)


def _divergence_of_entries(problem: Problem, W: Array, H: Array, logs: float) -> float:
    """Σ x·log(x/x̂) − Σx + Σx̂, from the first of these."""
    known = reference(problem)
    fitted = sum_of_fit(H, _lag_sums(W), problem.data.layout.left)
    entries = problem.N * problem.T
    return max(0.0, logs - known.total + fitted + known.floor * entries)


def window_sums(problem: Problem, H: Array) -> Array:
    """Σ_t H[t−ℓ] within the segments, (L, K)."""
    L, (starts, _, stops) = problem.L, problem.bounds.T
    sums = np.empty((L, problem.K))
    sums[0] = column_sums(np.ascontiguousarray(H))
    for lag in range(1, L):
        rows = stops - lag
        sums[lag] = sums[lag - 1] - H[rows[rows >= starts]].sum(axis=0, dtype=np.float64)
    return np.maximum(sums, 0)


def _placed_sums(problem: Problem, W: Array) -> Array:
    """Σ over its lags and features of every placed motif, cut off where its segment ends (T, K)."""
    left = np.minimum(problem.data.layout.left, problem.L)
    placed: Array = _lag_sums(W).astype(problem.dtype)[left - 1]
    return placed


def _lag_sums(W: Array) -> Array:
    """Σ over features of every motif's first lags, (L, K), in float64."""
    sums: Array = W.sum(axis=0, dtype=np.float64).cumsum(axis=0)
    return sums


def two_ratios(problem: Problem) -> bool:
    """Whether the second ratio has to be computed: it is one everywhere for β = 1."""
    return problem.model.loss.beta != 1 or any(s.observed is not None for s in problem.segments)


def _numbers(problem: Problem, whole: WorkList) -> tuple[Any, Any, Any]:
    """The scale of the data, unless it has been scaled already; the floor, and β."""
    kind = problem.dtype.type
    scale = problem.scale if whole.scale == problem.scale else 1.0
    return kind(scale), kind(reference(problem).floor), kind(problem.model.loss.beta)


def _seconds(part: WorkList, N: int, LK: int, two: bool) -> float:
    return SECONDS_OF_MULTIPLICATION * part.n_rows * N * ((2 + two) * LK + _ENTRY)


def _buffers(
    part: WorkList, N: int, LK: int, two: bool, dtype: np.dtype, workers: Workers
) -> tuple[Array, ...]:
    return (
        workers.buffer("windows", (part.rows, LK), dtype),
        workers.buffer("data", (part.rows, N), dtype),
        workers.buffer("fit", (part.rows, N), dtype),
        workers.buffer("second", (part.rows if two else 1, N), dtype),
        workers.buffer("observed", (part.rows, N), np.uint8),
    )


def _lists(problem: Problem, part: WorkList) -> tuple[np.ndarray, ...]:
    return part.pieces, part.blocks, part.groups, _masks(problem, part)


def _masks(problem: Problem, part: WorkList) -> np.ndarray:
    """Where what is observed of every piece stands, (pieces, 3); no rows if nothing is missing."""
    if all(segment.observed is None for segment in problem.segments):
        return np.empty((0, 3), dtype=np.int64)
    table = np.zeros((len(part.pieces), 3), dtype=np.int64)
    found = np.searchsorted(problem.bounds[:, 0], part.pieces[:, 5])
    for row, i, (own, start) in zip(table, found, part.pieces[:, 4:].tolist(), strict=True):
        observed = problem.segments[i].observed
        if observed is not None:
            across, along = observed.strides
            row[:] = observed.ctypes.data + (own - start) * across, across, along
    return table


def _batches(problem: Problem, whole: WorkList) -> Iterator[WorkList]:
    return (part for _, part in batches(problem, whole))
