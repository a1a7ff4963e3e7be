"""Alternating nonnegative least squares (the paper's section III-B)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf

from motifold.kernels.hals import sweep_columns
from motifold.kernels.pivoting import pass_H, pivot_rows
from motifold.model import Array, Penalties
from motifold.solvers.base import HStatistics, Inner, SolverOptions, Workers, WStatistics
from motifold.solvers.hals import HALS

# Dual variables of the scaled problem (unit diagonal) count as negative below minus this.
_TOLERANCE = 1e-12
# Ridge on the scaled Gram where it is singular.
_RIDGE = 1e-10
_MAX_EXCHANGES = 100
# Rows of W that one thread solves at a time.
_ROWS = 16
_MAX_EXACT_PASSES = 1000
# Sweeps of HALS where a penalty has made the Gram indefinite.
_SWEEPS_INSTEAD = 4


class ANLS(SolverOptions):
    """Block coordinate descent: exact nonnegative least squares by block principal pivoting.

    Parameters
    ----------
    h_passes : int or "exact"
        Passes over the columns of H per iteration, each column solved exactly with the others
        fixed. 1 is the paper's algorithm; ``"exact"`` repeats passes until H moves no more, the
        exact solution of the H problem.

    Examples
    --------
    >>> from motifold import CNMF, ANLS
    >>> model = CNMF(n_components=2, n_lags=3, solver=ANLS(h_passes="exact"))
    """

    def __init__(self, h_passes: int | Literal["exact"] = 1) -> None:
        self.h_passes = h_passes

    def update_W(
        self, W: Array, statistics: WStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """Every row of W̃ by nonnegative least squares with the common Gram B."""
        N, L, K = W.shape
        old = W.reshape(N, L * K)
        G = statistics.B.astype(np.float64)
        np.fill_diagonal(G, np.diagonal(G) + np.tile(penalties.l2_W, L))
        Q = statistics.P.astype(np.float64) - np.tile(penalties.l1_W, L)
        if penalties.between_motifs(L) is not None and not _is_definite(G):
            sweeps = Inner(max(_SWEEPS_INSTEAD, inner.max_sweeps), inner.shrink)
            HALS().update_W(W, statistics, penalties, sweeps)
            return
        new = nonnegative_rows(G, Q, old.astype(np.float64), statistics.workers)
        rose = _quadratic(G, Q, new) > _quadratic(G, Q, old.astype(np.float64))
        if np.any(rose):
            new[rose] = old[rose]
            lines = np.ascontiguousarray(new[rose].T)
            free = np.zeros(L * K)
            sweep_columns(lines, G @ lines - Q[rose].T, G, free, free)
            new[rose] = lines.T
        old[...] = new

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """Columns of H in the order of time, each by nonnegative least squares."""
        passes = Inner(max(self._passes(), inner.max_sweeps), inner.shrink)
        if self.h_passes == "exact":
            passes = Inner(_MAX_EXACT_PASSES, shrink=1e-12)
        elif inner.max_sweeps <= passes.max_sweeps:
            passes = Inner(passes.max_sweeps, shrink=0.0)  # as many as were asked for
        C, A, E, padding = statistics.C, statistics.A, statistics.E, statistics.padding
        rows = padding.padded(H)
        l1, l2 = penalties.l1_H, penalties.l2_H
        passes.repeat(lambda: float(pass_H(rows, C, A, E, padding.layout, l1, l2)))
        padding.unpad(rows, H)

    def _passes(self) -> int:
        if self.h_passes == "exact":
            return _MAX_EXACT_PASSES
        if isinstance(self.h_passes, (int, np.integer)) and self.h_passes >= 1:
            return int(self.h_passes)
        raise ValueError(
            f"ANLS: h_passes must be a positive integer or 'exact', not {self.h_passes!r}."
        )


def nonnegative_rows(G: Array, Q: Array, X: Array, workers: Workers) -> Array:
    """Argmin ½x'Gx − q'x over x ≥ 0 for every row q of Q, by block principal pivoting.

    Parameters
    ----------
    G : (M, M) float64, symmetric positive semidefinite
    Q : (R, M) float64, right-hand sides
    X : (R, M) float64, starts; only their supports are used

    Returns
    -------
    (R, M) float64. Where G is singular a slightly regularised problem is solved, so that a caller
    who needs descent has to compare objectives.
    """
    diagonal = np.diagonal(G)
    useful = diagonal > 0
    unit = np.where(useful, 1 / np.sqrt(np.where(useful, diagonal, 1)), 0.0)
    G, Q, Z = G * unit[:, None] * unit, Q * unit, np.where(useful, X, 0.0)
    solved = np.empty(len(Q), dtype=bool)

    def solve(first: int) -> None:
        rows = slice(first, first + _ROWS)
        pivot_rows(G, Q[rows], Z[rows], solved[rows])

    for _ in workers.map(solve, range(0, len(Q), _ROWS)):
        pass
    if not solved.all():
        Z[~solved] = _regularised_rows(G, Q[~solved], X[~solved])
    return np.maximum(Z, 0) * unit


def _regularised_rows(G: Array, Q: Array, X: Array) -> Array:
    """The same with a ridge where a passive Gram is singular; G has a diagonal of ones or zeros."""
    useful = np.diagonal(G) > 0
    passive = (X > 0) & useful
    Z = np.zeros_like(Q)
    open_rows = np.arange(Q.shape[0])
    fewest = np.full(Q.shape[0], Q.shape[1] + 1)
    chances = np.full(Q.shape[0], 3)
    for _ in range(_MAX_EXCHANGES):
        _solve_grouped(G, Q, passive, Z, open_rows)
        z, held = Z[open_rows], passive[open_rows]
        dual = z @ G - Q[open_rows]
        magnitude = np.abs(z) @ np.abs(G) + np.abs(Q[open_rows])
        wrong = np.where(held, z < 0, (dual < -_TOLERANCE * magnitude) & useful)
        count = wrong.sum(axis=1)
        still = count > 0
        open_rows, wrong, count = open_rows[still], wrong[still], count[still]
        if not open_rows.size:
            break
        better = count < fewest[open_rows]
        fewest[open_rows[better]] = count[better]
        chances[open_rows] = np.where(better, 3, chances[open_rows] - 1)
        # The backup rule: once the chances are used up, exchange the last one only.
        backup = chances[open_rows] < 0
        last = wrong.shape[1] - 1 - np.argmax(wrong[backup, ::-1], axis=1)
        wrong[backup] = False
        wrong[np.flatnonzero(backup), last] = True
        passive[open_rows] ^= wrong
    return Z


def _solve_grouped(G: Array, Q: Array, passive: np.ndarray, Z: Array, rows: np.ndarray) -> None:
    """Solve the rows on their passive sets, rows with equal sets together (changes Z)."""
    sets, group = np.unique(np.packbits(passive[rows], axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(group.ravel(), minlength=len(sets)))
    for members in np.split(rows[order], ends[:-1]):
        index = np.flatnonzero(passive[members[0]])
        Z[members] = 0.0
        if not index.size:
            continue
        block = G[np.ix_(index, index)]
        right = Q[np.ix_(members, index)].T
        _, solution, failed = dposv(block, right)
        if failed or not np.isfinite(solution).all():
            _, solution, failed = dposv(block + _RIDGE * np.eye(index.size), right)
        if not failed:
            Z[np.ix_(members, index)] = solution.T


def _is_definite(G: Array) -> bool:
    """Whether G has a Cholesky factorisation, rounding allowed for."""
    unit = 1 / np.sqrt(np.maximum(np.diagonal(G), np.finfo(np.float64).tiny))
    scaled = G * unit[:, None] * unit
    np.fill_diagonal(scaled, 1 + _RIDGE)
    return bool(dpotrf(scaled)[1] == 0)


def _quadratic(G: Array, Q: Array, X: Array) -> Array:
    """½x'Gx − q'x for every row (R,)."""
    return np.einsum("rm,rm->r", 0.5 * X @ G - Q, X)
