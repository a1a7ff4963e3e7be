"""What a divergence is measured against: the best constant of every feature, and a floor for X̂."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from motifold.data.facts import place_of
from motifold.engines.cpu.problem import Problem

# A divergence of this share of the sums that it is the difference of is none: X is constant.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Reference:
    """What one look at X tells of its divergences.

    Attributes
    ----------
    means : (N,), of what is observed of every feature: for any β its best constant
    total : sum of all that is observed
    deviance : twice the divergence of X from them
    floor : what is added to X̂, so that it is nowhere zero: rounding of X's mean
    """

    means: np.ndarray
    total: float
    deviance: float
    floor: float


def reference(problem: Problem) -> Reference:
    """The reference of a problem, made once."""
    if "reference" not in problem.kept:
        problem.kept["reference"] = _new_reference(problem)
    return problem.kept["reference"]


def _new_reference(problem: Problem) -> Reference:
    beta = problem.model.loss.beta
    count, total, powers = (_of_entries if problem.sparse and beta > 0 else _of_rows)(problem)
    means = total / np.maximum(count, 1)
    positive = means > 0
    against = _against_means(beta, count, means, powers)
    rounding = _ROUNDING * (np.abs(powers) + np.abs(powers - against))
    deviance = 2 * float(np.sum(against[positive & (against > rounding)]))
    level = float(means[positive].mean()) if positive.any() else 1.0
    floor = float(np.finfo(problem.dtype).eps) * level
    return Reference(means, float(total.sum()), max(0.0, deviance), floor)


Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def _of_rows(problem: Problem) -> Sums:
    """Of every feature: how much is observed, its sum, and the sum of its powers."""
    beta, N = problem.model.loss.beta, problem.N
    count, total, powers = np.zeros(N), np.zeros(N), np.zeros(N)
    for block in problem.data.blocks(problem.L * problem.K):
        segment, a, b = block
        x = problem.scaled_block(segment, a, b).astype(np.float64)
        seen = np.ones(x.shape, bool) if segment.observed is None else segment.observed[a:b]
        if beta <= 0 and (zero := seen & (x == 0)).any():
            raise _zero_error(problem, block, zero)
        count += seen.sum(axis=0)
        total += x.sum(axis=0)
        powers += np.where(seen, _power(x, beta), 0).sum(axis=0)
    return count, total, powers


def _of_entries(problem: Problem) -> Sums:
    """The same of a sparse matrix, where zeros add nothing."""
    beta, N = problem.model.loss.beta, problem.N
    count, total, powers = np.zeros(N), np.zeros(N), np.zeros(N)
    for segment in problem.segments:
        assert segment.sparse is not None
        observed = segment.observed
        count += len(segment) if observed is None else np.count_nonzero(observed, axis=0)
        low, high = segment.sparse.starts[[0, -1]]
        columns = segment.sparse.columns[low:high]
        x = segment.sparse.values[low:high].astype(np.float64) * problem.scale
        total += np.bincount(columns, x, N)
        powers += np.bincount(columns, _power(x, beta), N)
    return count, total, powers


def _power(x: np.ndarray, beta: float) -> np.ndarray:
    """The part of the divergence of x that is of x alone."""
    if beta == 1:
        return x * np.log(np.where(x > 0, x, 1))
    if beta == 0:
        return -np.log(np.where(x > 0, x, 1))
    positive = x if beta > 0 else np.where(x > 0, x, 1)
    return positive**beta / (beta * (beta - 1))


def _against_means(
    beta: float, count: np.ndarray, means: np.ndarray, powers: np.ndarray
) -> np.ndarray:
    """Σ d_β(x | mean) of every feature, from sums: Σx = count·mean."""
    m = np.where(means > 0, means, 1)
    if beta == 1:
        return powers - count * m * np.log(m)
    if beta == 0:
        return powers + count * np.log(m)
    return powers + count * m**beta * (1 / beta - 1 / (beta - 1))


def _zero_error(problem: Problem, block, zero: np.ndarray) -> ValueError:  # type: ignore[no-untyped-def]
    name, first = place_of(problem.data, block)
    row, column = (int(i) for i in np.argwhere(zero)[0])
    loss = problem.model.loss
    what = "the Itakura-Saito divergence" if loss.beta == 0 else f"beta_loss={loss.beta:g}"
    return ValueError(
        f"{what} needs X > 0: {name} is zero at row {first + row}, column {column}. Set a floor "
        "of your own, e.g. np.maximum(X, 1e-6 * X.max()), or use "
        'beta_loss="kullback-leibler", which takes zeros.'
    )
