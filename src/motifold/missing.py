"""Missing entries: each counts as X̂ of the last iterate, and only they are computed.

A majorisation: with the missing entries replaced by X̂, ½‖X − X̂‖² is above the loss of the observed
entries and touches it at the iterate. Whatever lowers it lowers the observed loss. The data holds
zeros at missing places, so that what they add to the statistics is a sum over them alone.
"""

from __future__ import annotations

import numpy as np

from motifold.kernels import missing as kernels
from motifold.kernels.windows import shift_and_add
from motifold.parallel import Workers
from motifold.problem import Array, HiddenBlock, Problem
from motifold.toeplitz import padded_rows, windows


def filled_P(problem: Problem, W: Array, H: Array, workers: Workers) -> Array:
    """What the missing entries add to P, (N, L·K), if they are those of X̂ = W∗H."""
    N, L, K = W.shape
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K))

    def group_sum(blocks: list[HiddenBlock]) -> Array:
        P = np.zeros((N, L * K), dtype=W.dtype)
        for block in blocks:
            rows = _rows(block, H, L)
            if block.columns is not None:
                kernels.fill_P(rows.ravel(), oldest_first, K, block.first, block.columns, P)
            else:
                fit, H_tilde = _hidden_fit(block, rows, oldest_first, workers)
                P += fit.T @ H_tilde
        return P

    P = np.zeros((N, L * K))
    for group in workers.map(group_sum, problem.hidden):
        P += group
    return P.reshape(N, L, K)[:, ::-1].reshape(N, L * K).astype(W.dtype, copy=False)


def filled_C(problem: Problem, W: Array, H: Array, workers: Workers) -> tuple[Array, float]:
    """What the missing entries add to C (T, K) if they are those of X̂, and their Σ X̂²."""
    N, L, K = W.shape
    oldest_first = np.ascontiguousarray(W[:, ::-1].reshape(N, L * K))
    C, power = np.zeros((problem.T, K), dtype=W.dtype), 0.0

    def block_sum(block: HiddenBlock) -> tuple[Array, float]:
        rows = _rows(block, H, L)
        part = np.zeros(rows.shape, dtype=W.dtype)
        if block.columns is not None:
            flat = part.reshape(-1)
            args = rows.ravel(), oldest_first, K, block.first, block.columns, flat
            return part, kernels.fill_C(*args)
        fit, _ = _hidden_fit(block, rows, oldest_first, workers)
        shift_and_add(fit @ oldest_first, L - 1, part)
        return part, float(np.einsum("tn,tn->t", fit, fit).sum(dtype=np.float64))

    sums = workers.map(lambda blocks: [block_sum(block) for block in blocks], problem.hidden)
    for blocks, parts in zip(problem.hidden, sums, strict=True):
        for block, (part, block_power) in zip(blocks, parts, strict=True):
            begin = block.a - L + 1
            first = max(0, begin)
            start = block.segment.start
            C[start + first : start + block.b] += part[first - begin :]
            power += block_power
    if problem.boundary == "valid":
        C[~problem.allowed] = 0
    return C, power


def _rows(block: HiddenBlock, H: Array, L: int) -> Array:
    return padded_rows(H[block.segment.start : block.segment.stop], block.a, block.b, L)


def _hidden_fit(
    block: HiddenBlock, rows: Array, oldest_first: Array, workers: Workers
) -> tuple[Array, Array]:
    """X̂ of a block at its missing entries, zero elsewhere, and its rows of H̃."""
    N, LK = oldest_first.shape
    H_tilde = windows(rows, LK // rows.shape[1], 1, workers)
    fit = workers.buffer("product", (block.b - block.a, N), rows.dtype)
    np.matmul(H_tilde, oldest_first.T, out=fit)
    assert block.segment.observed is not None
    np.multiply(fit, ~block.segment.observed[block.a : block.b], out=fit)
    return fit, H_tilde
