"""What a divergence is measured against: the best constant of every feature, and a floor for X̂."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from motifold.data.facts import place_of
from motifold.engines.cpu.problem import Problem
from motifold.kernels.ratios import add_feature_sums, divergence_from, divergence_of_entries


@dataclass(frozen=True)
class Reference:
    """What two looks at X tell of its divergences.

    Attributes
    ----------
    means : (N,), of what is observed of every feature: for any β its best constant
    squares : (N,), Σx² of every feature
    total : sum of all that is observed
    deviance : twice the divergence of X from the means
    floor : what is added to X̂, so that it is nowhere zero: rounding of X's mean
    """

    means: np.ndarray
    squares: np.ndarray
    total: float
    deviance: float
    floor: float


def reference(problem: Problem) -> Reference:
    """The reference of a problem, made once."""
    if "reference" not in problem.kept:
        problem.kept["reference"] = _new_reference(problem)
    return problem.kept["reference"]


def _new_reference(problem: Problem) -> Reference:
    beta, eps, count = problem.model.loss.beta, np.finfo(problem.dtype).eps, _count(problem)
    by_entries = problem.sparse and beta > 0
    total, squares = (_sums_of_entries if by_entries else _sums_of_rows)(problem)
    means = total / np.maximum(count, 1)
    positive = means > 0
    divergence = (_of_entries if by_entries else _of_rows)(problem, means)
    # What the rounding of the means leaves of a constant recording is nothing.
    if divergence <= (4 * eps) ** 2 * float(count[positive] @ means[positive] ** beta):
        divergence = 0.0
    floor = float(eps) * (float(means[positive].mean()) if positive.any() else 1.0)
    return Reference(means, squares, float(total.sum()), 2 * divergence, floor)


def _count(problem: Problem) -> np.ndarray:
    """How many entries of every feature are observed."""
    count = np.zeros(problem.N)
    for segment in problem.segments:
        observed = segment.observed
        count += len(segment) if observed is None else np.count_nonzero(observed, axis=0)
    return count


def _sums_of_rows(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Σx and Σx² of every feature."""
    total, squares = np.zeros(problem.N), np.zeros(problem.N)
    for segment, a, b in problem.data.blocks(problem.L * problem.K):
        rows = np.ascontiguousarray(segment.rows(a, b))
        add_feature_sums(rows, rows.dtype.type(problem.scale), total, squares)
    return total, squares


def _of_rows(problem: Problem, means: np.ndarray) -> float:
    """The divergence of X from the means; features that are silent have none."""
    beta, kind = problem.model.loss.beta, problem.dtype.type
    level = np.where(means > 0, means, 1).astype(problem.dtype)
    weights = (means > 0).astype(problem.dtype)
    found = 0.0
    for block in problem.data.blocks(problem.L * problem.K):
        segment, a, b = block
        rows = np.ascontiguousarray(segment.rows(a, b))
        seen = np.empty((0, problem.N), bool)
        if segment.observed is not None:
            seen = np.ascontiguousarray(segment.observed[a:b])
        if beta <= 0 and (zero := (rows == 0) & (seen if seen.size else True)).any():
            raise _zero_error(problem, block, zero)
        if beta <= 0 and seen.size:
            rows = np.where(seen, rows, 1)
        found += divergence_from(rows, level, weights, seen, kind(problem.scale), kind(beta))
    return found


def _sums_of_entries(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The same of a sparse matrix, where zeros add nothing."""
    total, squares = np.zeros(problem.N), np.zeros(problem.N)
    for columns, x in _entries(problem):
        total += np.bincount(columns, x, problem.N)
        squares += np.bincount(columns, x * x, problem.N)
    return total, squares


def _of_entries(problem: Problem, means: np.ndarray) -> float:
    """The divergence of a sparse X: of its zeros from the means alone, of its entries in sum."""
    beta, level = problem.model.loss.beta, np.where(means > 0, means, 1)
    found = float(np.sum((_count(problem) * level**beta / beta)[means > 0]))
    for columns, x in _entries(problem):
        found += divergence_of_entries(columns, x, level, beta)
    return found


def _entries(problem: Problem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Columns and values of the entries, segment by segment, in the working scale."""
    for segment in problem.segments:
        assert segment.sparse is not None
        low, high = segment.sparse.starts[[0, -1]]
        values = segment.sparse.values[low:high].astype(np.float64) * problem.scale
        yield segment.sparse.columns[low:high], values


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
