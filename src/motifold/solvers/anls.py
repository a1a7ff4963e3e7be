"""Alternating nonnegative least squares (the paper's section III-B)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf

from motifold.kernels.hals import sweep_columns
from motifold.kernels.pivoting import pass_H, pivot_rows
from motifold.model import Array, Penalties
from motifold.solvers.base import HStatistics, Inner, SolverOptions, Workers, WStatistics
from motifold.solvers.faces import leap
from motifold.solvers.hals import HALS

# Ridge on a Gram of unit diagonal that may be indefinite.
_RIDGE = 1e-10
# Rows of W that one thread solves at a time.
_ROWS = 16
_MAX_EXACT_PASSES = 1000
# Passes after which conjugate gradients go on where they got to, if they have not ended.
_PASSES_TO_A_LEAP = 20
# J that falls by no more, in roundings of its own, falls no longer.
_FLAT = 4
# Sweeps of HALS where a penalty has made the Gram indefinite.
_SWEEPS_INSTEAD = 4


class ANLS(SolverOptions):
    """Block coordinate descent: exact nonnegative least squares by block principal pivoting.

    Parameters
    ----------
    h_passes : int or "exact"
        Passes over the columns of H per iteration, each column solved exactly with the others
        fixed. 1 is the paper's algorithm; ``"exact"`` repeats passes until H moves no more, the
        exact solution of the H problem, with conjugate gradients between them where they are slow.

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
            sweeps = replace(inner, max_sweeps=max(_SWEEPS_INSTEAD, inner.max_sweeps))
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
        passes, least = replace(inner, max_sweeps=max(self._passes(), inner.max_sweeps)), 0.0
        exact = self.h_passes == "exact"
        if exact:
            passes = replace(inner, max_sweeps=_MAX_EXACT_PASSES, shrink=1e-12)
            # Single precision never gets there: what is left are moves of a rounding error.
            least = float(np.vdot(H, H)) * float(np.finfo(H.dtype).eps) ** 2
        elif inner.max_sweeps <= passes.max_sweeps:
            passes = replace(passes, shrink=0.0)  # as many as were asked for
        C, A, E, padding = statistics.C, statistics.A, statistics.E, statistics.padding
        rows = padding.padded(H)
        l1, l2 = penalties.l1_H, penalties.l2_H
        made, last = itertools.count(), np.inf

        def sweep() -> float:
            nonlocal last
            if exact and next(made) % _PASSES_TO_A_LEAP == _PASSES_TO_A_LEAP - 1:
                padding.unpad(rows, H)
                before, last = last, leap(H, statistics, l1, l2, inner.expired or _never)
                padding.padded(H, out=rows)
                # Where the best activations are no single ones, H may move on for ever.
                if before - last <= _FLAT * np.finfo(H.dtype).eps * abs(last):
                    return 0.0
            return float(pass_H(rows, C, A, E, padding.layout, l1, l2))

        passes.repeat(sweep, least)
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
    X : (R, M) float64, starts

    Returns
    -------
    (R, M) float64. Where G is singular it is one solution of several, and a row that resists is
    zero: a caller who needs descent has to compare objectives.
    """
    diagonal = np.diagonal(G)
    useful = diagonal > 0
    unit = np.where(useful, 1 / np.sqrt(np.where(useful, diagonal, 1)), 0.0)
    Z = np.where(useful, X * np.sqrt(diagonal), 0.0)
    G, Q = G * unit[:, None] * unit, Q * unit
    solved = np.empty(len(Q), dtype=bool)

    def solve(first: int) -> None:
        rows = slice(first, first + _ROWS)
        pivot_rows(G, Q[rows], Z[rows], solved[rows])

    for _ in workers.map(solve, range(0, len(Q), _ROWS)):
        pass
    Z[~solved] = 0
    return np.maximum(Z, 0) * unit


def _never() -> bool:
    return False


def _is_definite(G: Array) -> bool:
    """Whether G has a Cholesky factorisation, rounding allowed for."""
    unit = 1 / np.sqrt(np.maximum(np.diagonal(G), np.finfo(np.float64).tiny))
    with np.errstate(over="ignore"):  # motifs that are not active, coupled: not definite
        scaled = G * unit[:, None] * unit
    np.fill_diagonal(scaled, 1 + _RIDGE)
    return bool(dpotrf(scaled)[1] == 0)


def _quadratic(G: Array, Q: Array, X: Array) -> Array:
    """½x'Gx − q'x for every row (R,)."""
    return np.einsum("rm,rm->r", 0.5 * X @ G - Q, X)
