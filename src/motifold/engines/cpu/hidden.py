"""Missing entries: each counts as X̂ of the last iterate, and only they are computed.

A majorisation: with the missing entries replaced by X̂, ½‖X − X̂‖² is above the loss of the observed
entries and touches it at the iterate. Whatever lowers it lowers the observed loss. The data holds
zeros at missing places, so that what they add to the statistics is a sum over them alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from motifold.engines.cpu.problem import HiddenBlock, Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import padded_rows, windows
from motifold.kernels import hidden as kernels
from motifold.kernels.windows import shift_and_add
from motifold.model import Array
from motifold.model.motifs import newest_first, oldest_first

Values = list[list[Array | None]]


@dataclass(frozen=True)
class HiddenFit:
    """X̂ = W∗H at the missing entries.

    Attributes
    ----------
    W, H : the factors it belongs to, (N, L, K) and (T, K)
    values : for every block of ``problem.hidden`` its entries in the order they are listed, or None
        where they are many: those are made anew wherever they are needed
    power : Σ X̂² over the listed ones
    moved : the squared distance of the listed ones from those of another fit (or from zero)
    """

    problem: Problem
    W: Array
    H: Array
    values: Values
    power: float
    moved: float

    def rows(self, block: HiddenBlock) -> Array:
        """Rows of H from L−1 before the block on."""
        return _rows(self.H, block, self.problem.L)


def _rows(H: Array, block: HiddenBlock, L: int) -> Array:
    return padded_rows(H[block.segment.start : block.segment.stop], block.a, block.b, L)


def hidden_fit(
    problem: Problem, W: Array, H: Array, workers: Workers, old: HiddenFit | None = None
) -> HiddenFit:
    """X̂ of these factors at the missing entries."""
    W_tilde = oldest_first(W)

    def listed(block: HiddenBlock, before: Array | None) -> tuple[Array | None, float, float]:
        if block.columns is None:
            return None, 0.0, 0.0
        values = np.empty(len(block.columns), dtype=W.dtype)
        rows = _rows(H, block, problem.L).ravel()
        before = np.zeros_like(values) if before is None else before
        args = rows, W_tilde, W.shape[2], block.first, block.columns, before
        return values, *kernels.fit_values(*args, values)

    def group_values(
        group: tuple[list[HiddenBlock], list[Array | None]],
    ) -> list[tuple[Array | None, float, float]]:
        return [listed(*pair) for pair in zip(*group, strict=True)]

    befores: Values = [[None] * len(g) for g in problem.hidden] if old is None else old.values
    groups = list(workers.map(group_values, list(zip(problem.hidden, befores, strict=True))))
    values = [[entries for entries, _, _ in group] for group in groups]
    power = sum(power for group in groups for _, power, _ in group)
    moved = sum(moved for group in groups for _, _, moved in group)
    return HiddenFit(problem, W, H, values, power, moved)


def filled_P(fit: HiddenFit, workers: Workers) -> Array:
    """What the missing entries add to P, (N, L·K)."""
    N, L, K = fit.W.shape
    W_tilde = oldest_first(fit.W)

    def group_sum(group: tuple[list[HiddenBlock], list[Array | None]]) -> Array:
        P = np.zeros((N, L * K), dtype=fit.W.dtype)
        for block, values in zip(*group, strict=True):
            rows = fit.rows(block)
            if values is not None:
                kernels.add_to_P(rows.ravel(), values, K, block.first, block.columns, P)
            else:
                entries, H_tilde = _many_entries(block, rows, W_tilde, workers)
                P += entries.T @ H_tilde
        return P

    P = np.zeros((N, L * K))
    groups = list(zip(fit.problem.hidden, fit.values, strict=True))
    for group in workers.map(group_sum, groups):
        P += group
    return newest_first(P, L).astype(fit.W.dtype, copy=False)


def filled_C(fit: HiddenFit, workers: Workers) -> tuple[Array, float]:
    """What the missing entries add to C (T, K), and the sum of their squares."""
    problem = fit.problem
    _, L, K = fit.W.shape
    W_tilde = oldest_first(fit.W)
    C, power = np.zeros((problem.T, K), dtype=fit.W.dtype), fit.power

    def block_sum(block: HiddenBlock, values: Array | None) -> tuple[Array, float]:
        part = np.zeros((block.b - block.a + L - 1, K), dtype=fit.W.dtype)
        if values is not None:
            args = W_tilde, values, K, block.first, block.columns, part.reshape(-1)
            kernels.add_to_C(*args)
            return part, 0.0
        entries, _ = _many_entries(block, fit.rows(block), W_tilde, workers)
        shift_and_add(entries @ W_tilde, L - 1, part)
        return part, _squares(entries)

    groups = list(zip(problem.hidden, fit.values, strict=True))
    sums = workers.map(
        lambda group: [block_sum(*pair) for pair in zip(*group, strict=True)], groups
    )
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


def hidden_power(fit: HiddenFit, workers: Workers) -> float:
    """Σ X̂² over the missing entries."""
    return fit.power + _power_of_many(fit, workers)


def moved_power(old: HiddenFit, H: Array, workers: Workers) -> tuple[float, HiddenFit]:
    """How far missing entries move if H takes the place of the old one's, squared; the new ones."""
    new = hidden_fit(old.problem, old.W, H, workers, old)
    # X̂ is linear in H: where entries are not listed, the move is that of the difference.
    return new.moved + _power_of_many(replace(new, H=new.H - old.H), workers), new


def _power_of_many(fit: HiddenFit, workers: Workers) -> float:
    """Σ X̂² over the missing entries that are not listed."""
    W_tilde = oldest_first(fit.W)
    blocks = [block for group in fit.problem.hidden for block in group if block.columns is None]

    def power(block: HiddenBlock) -> float:
        return _squares(_many_entries(block, fit.rows(block), W_tilde, workers)[0])

    return sum(workers.map(power, blocks))


def _squares(values: Array) -> float:
    """Σ v², rows in their own precision, their sum in float64."""
    return float(np.einsum("tn,tn->t", values, values).sum(dtype=np.float64))


def _many_entries(
    block: HiddenBlock, rows: Array, W_tilde: Array, workers: Workers
) -> tuple[Array, Array]:
    """X̂ of a block at its missing entries, zero elsewhere, and its rows of H̃."""
    N, LK = W_tilde.shape
    H_tilde = windows(rows, LK // rows.shape[1], 1, workers)
    fit = workers.buffer("product", (block.b - block.a, N), rows.dtype)
    np.matmul(H_tilde, W_tilde.T, out=fit)
    assert block.segment.observed is not None
    np.multiply(fit, ~block.segment.observed[block.a : block.b], out=fit)
    return fit, H_tilde
