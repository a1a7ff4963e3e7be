"""X̂, and what it leaves of X: the loss by its residual, and where X is explained worst."""

from __future__ import annotations

import numpy as np

from motifold.data import Block, Segment
from motifold.engines.cpu import passes, sparse
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import fitted_rows
from motifold.model import Array, Mask
from motifold.model.motifs import oldest_first


def squared_residual(problem: Problem, W: Array, H: Array, workers: Workers) -> float:
    """‖X − X̂‖² from the residual itself, in time blocks, accumulated in float64.

    Like ‖X‖² it counts observed entries only.
    """
    if not problem.hidden and problem.weights is None:
        if problem.sparse:
            return sparse.squared_residual(problem, W, H, workers)
        return passes.squared_residual(problem, W, H, workers)
    N = len(W)
    W_tilde = np.ascontiguousarray(oldest_first(W).T)

    def block_norm(segment: Segment, a: int, b: int) -> float:
        fit = workers.buffer("product", (b - a, N), problem.dtype)
        fitted_rows(H[segment.start : segment.stop], W_tilde, a, b, workers, out=fit)
        np.subtract(problem.scaled_block(segment, a, b), fit, out=fit)
        if segment.observed is not None:
            np.multiply(fit, segment.observed[a:b], out=fit)
        # Row sums in the data's precision, their sum in float64: as good, and no copy.
        return float(np.einsum("tn,tn->t", fit, fit).sum(dtype=np.float64))

    norms = workers.map(lambda blocks: [block_norm(*block) for block in blocks], problem.groups())
    return sum(norm for group in norms for norm in group)


def worst_window(
    problem: Problem, W: Array, H: Array, workers: Workers, starts: Mask | None = None
) -> tuple[int, Array] | None:
    """Where L bins are explained worst: their first row in H, and max(0, X − X̂) there (L, N).

    ``starts`` (T,): where it may begin. None if no segment has L bins there, or nothing is left to
    explain.
    """

    def energies(blocks: list[Block]) -> list[Array]:
        parts = [_unexplained(problem, W, H, block, workers) for block in blocks]
        return [np.einsum("tn,tn->t", part, part, dtype=np.float64) for part in parts]

    if problem.sparse:
        energy = sparse.unexplained_power(problem, W, H, workers)
    else:
        energy = np.concatenate([e for g in workers.map(energies, problem.groups()) for e in g])
    return worst_window_of(problem, W, H, energy, workers, starts)


def _unexplained(problem: Problem, W: Array, H: Array, block: Block, workers: Workers) -> Array:
    """max(0, X − X̂) of a block."""
    segment, a, b = block
    W_tilde = np.ascontiguousarray(oldest_first(W).T)
    fit = fitted_rows(H[segment.start : segment.stop], W_tilde, a, b, workers)
    return np.maximum(problem.scaled_block(segment, a, b) - fit, 0)


def worst_window_of(
    problem: Problem,
    W: Array,
    H: Array,
    energy: Array,
    workers: Workers,
    starts: Mask | None = None,
) -> tuple[int, Array] | None:
    """The same where Σ max(0, X − X̂)² of every row is known, (T,)."""
    L = W.shape[1]
    best: tuple[float, Segment, int] | None = None
    for segment in problem.segments:
        sums = np.concatenate([[0.0], np.cumsum(energy[segment.start : segment.stop])])
        if len(sums) > L:
            in_windows = sums[L:] - sums[:-L]
            if starts is not None:
                in_windows *= starts[segment.start :][: len(in_windows)]
            a = int(np.argmax(in_windows))
            if in_windows[a] > 0 and (best is None or in_windows[a] > best[0]):
                best = float(in_windows[a]), segment, a
    if best is None:
        return None
    _, segment, a = best
    return segment.start + a, _unexplained(problem, W, H, (segment, a, a + L), workers)


def reconstruct(W: Array, H: Array, bounds: np.ndarray) -> Array:
    """X̂ (T, N) of motifs W (N, L, K) and activations H (T, K), segment by segment."""
    N, L, K = W.shape
    W_tilde = np.ascontiguousarray(oldest_first(W).T)
    out = np.empty((H.shape[0], N), dtype=np.result_type(W, H))
    step = max(128, 2**18 // (L * K))
    serial = Workers(1)
    for start, _, stop in bounds:
        for a in range(0, stop - start, step):
            b = min(a + step, stop - start)
            target = out[start + a : start + b]
            fitted_rows(H[start:stop], W_tilde, a, b, serial, out=target)
    return out
