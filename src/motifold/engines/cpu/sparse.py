"""The passes over data that is a sparse matrix: over its entries, never over its zeros.

For squared error these are the same statistics as of dense data. For Kullback–Leibler's divergence
the ratio X/X̂ is zero where X is, so that X̂ is computed at the entries alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.engines.cpu.passes import WorkList, work_list
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import SECONDS_OF_MULTIPLICATION, Workers
from motifold.kernels import sparse as kernels
from motifold.model import Array
from motifold.model.motifs import oldest_first


def lag_products(problem: Problem, H: Array, workers: Workers) -> Array:
    """Pass 1: Σ_t X[t, n] H[t−ℓ, k] as (N, L, K), in float64."""
    return _pass_one(problem, None, H, workers)[0]


def correlation(problem: Problem, W: Array, workers: Workers) -> Array:
    """Pass 2: C = W⋆X, C[t, k] = Σ_ℓ Σ_n W[n, ℓ, k] X[t+ℓ, n] within each segment, (T, K)."""
    return _pass_two(problem, _motifs(problem, W), None, workers)[0]


def ratio_products(
    problem: Problem, W: Array, H: Array, background: Array, floor: float, workers: Workers
) -> tuple[Array, Array, float]:
    """Pass 1 of the ratio R = X/X̂, X̂ being W∗H and a background (N,), and at least ``floor``.

    Returns Σ_t R[t, n] H[t−ℓ, k] as (N, L, K), Σ_t R[t, n] as (N,), and Σ X log R, in float64 and
    in the working scale. The floor is to be so large that no ratio overflows.
    """
    return _pass_one(problem, _motifs(problem, W, background, floor), H, workers)


def ratio_correlation(
    problem: Problem, W: Array, H: Array, background: Array, floor: float, workers: Workers
) -> tuple[Array, float]:
    """Pass 2 of the ratio: Σ_ℓ Σ_n W[n, ℓ, k] R[t+ℓ, n] within each segment, (T, K); Σ X log R."""
    return _pass_two(problem, _motifs(problem, W, background, floor), H, workers)


def squared_residual(problem: Problem, W: Array, H: Array, workers: Workers) -> float:
    """‖X − X̂‖² of all entries and zeros, in the working scale.

    X̂ is made block by block, but for the rows that no motif reaches.
    """
    N, L, K = W.shape
    W_tilde = np.ascontiguousarray(oldest_first(W).T)
    H = np.ascontiguousarray(H)
    work, m = work_list(problem), len(work_list(problem).blocks) - 1
    norms, flags = np.empty(m), np.zeros(m + 2, dtype=np.int64)

    def residual(threads: int) -> None:
        buffers = (
            workers.buffer("windows", (work.rows, L * K), H.dtype),
            workers.buffer("product", (work.rows, N), H.dtype),
        )
        data = _lists(work), _kinds(problem), _scale(problem)
        kernels.pass_residual(H, W_tilde, *data, buffers, norms, flags, threads)

    workers.together(residual, SECONDS_OF_MULTIPLICATION * problem.T * N * L * K)
    return sum(norms.tolist())


def unexplained_power(problem: Problem, W: Array, H: Array, workers: Workers) -> Array:
    """Σ_n max(0, X − X̂)² of every row, (T,)."""
    W_tilde, H = oldest_first(W), np.ascontiguousarray(H)
    work, m = work_list(problem), len(work_list(problem).blocks) - 1
    energy, flags = np.empty(problem.T), np.zeros(m + 2, dtype=np.int64)
    data = _lists(work), _kinds(problem), _scale(problem)

    def unexplained(threads: int) -> None:
        kernels.pass_unexplained(H, W_tilde, *data, energy, flags, threads)

    workers.together(unexplained, SECONDS_OF_MULTIPLICATION * problem.multiplications)
    return energy


def _pass_one(
    problem: Problem, model: tuple[Any, ...] | None, H: Array, workers: Workers
) -> tuple[Array, Array, float]:
    """P (N, L, K), and with a model of the ratio, the sums of it; see ``ratio_products``."""
    N, L, K = problem.N, problem.L, problem.K
    H = np.ascontiguousarray(H)
    work, m = work_list(problem), len(work_list(problem).groups) - 1
    ratio = model is not None
    model = model or _motifs(problem, np.empty((0, L, K), dtype=H.dtype))
    sums = workers.buffer("sums", (m, N, L * K), H.dtype)
    totals, logs, P = np.zeros((m, N)), np.zeros(m), np.empty((N, L, K))
    flags = np.zeros(m + 2, dtype=np.int64)
    data = _lists(work), _kinds(problem), model, _scale(problem), ratio

    def products(threads: int) -> None:
        kernels.pass_one(H, *data, sums, totals, logs, P, flags, threads)

    workers.together(products, (1 + ratio) * SECONDS_OF_MULTIPLICATION * problem.multiplications)
    return P, totals.sum(axis=0), float(sum(logs.tolist()))


def _pass_two(
    problem: Problem, model: tuple[Any, ...], H: Array | None, workers: Workers
) -> tuple[Array, float]:
    """C (T, K); with H, that of the ratio, and Σ X log R."""
    L, K = problem.L, problem.K
    work, m = work_list(problem), len(work_list(problem).blocks) - 1
    C = np.empty((problem.T, K), dtype=problem.dtype)
    ratio = H is not None
    H = np.empty((0, K), dtype=problem.dtype) if H is None else np.ascontiguousarray(H)
    halos = workers.buffer("halos", (m, (L - 1) * K), C.dtype)
    logs, flags = np.zeros(m), np.zeros(m + 2, dtype=np.int64)
    data = _lists(work), _kinds(problem), model, _scale(problem), ratio

    def correlate(threads: int) -> None:
        Y = workers.buffer("windows", (work.rows, L * K), C.dtype)
        kernels.pass_two(H, *data, Y, halos, C, logs, flags, threads)

    workers.together(correlate, (1 + ratio) * SECONDS_OF_MULTIPLICATION * problem.multiplications)
    return C, sum(logs.tolist())


def _motifs(
    problem: Problem, W: Array, background: Array | None = None, floor: float = 0.0
) -> tuple[Array, Array, np.floating]:
    """What the kernels call the model: W (N, L·K), the background (N,) and the floor."""
    dtype = problem.dtype
    levels = np.zeros(len(W)) if background is None else background
    return oldest_first(W), np.ascontiguousarray(levels, dtype=dtype), dtype.type(floor)


def _lists(work: WorkList) -> tuple[Any, Any, Any]:
    return work.pieces, work.blocks, work.groups


def _kinds(problem: Problem) -> tuple[Any, Any, Any]:
    """Empty arrays of the types that the entries of the data are kept in."""
    entries = problem.segments[0].sparse
    assert entries is not None
    return entries.starts[:0], entries.columns[:0], entries.values[:0]


def _scale(problem: Problem) -> np.floating:
    return problem.dtype.type(problem.scale)
