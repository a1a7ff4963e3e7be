"""Motifs learnt from a stream: a chunk at a time, from sums that do not grow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from motifold.data import Data
from motifold.engines.cpu import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.statistics import WStatistics
from motifold.engines.cpu.threads import Workers
from motifold.fit.running import Running
from motifold.model import Array, Boundary, Mask, Model, Penalties
from motifold.model.motifs import oldest_first
from motifold.solvers import HALS, Inner, Solver
from motifold.solvers.learnt import kkt_residual_W, update_background, update_motifs

# The weight of what came when s of t rows had come is (s/t)^this: activations that were found with
# motifs still raw count ever less (Mairal et al. 2010, section 3.4.2, where it is called ρ).
_FADING = 4.0
# For each chunk: how often its activations and the motifs are found in turn; sweeps of H, when the
# chunk is first seen and then; sweeps of W.
_TURNS, _FIRST, _AGAIN = 3, Inner(max_sweeps=200, shrink=1e-3), Inner(max_sweeps=50, shrink=1e-2)
_MOTIFS = Inner(max_sweeps=8)


_BYTES = 2**23  # of windows of H at a time
# Rows beside a gap are left out where there are so many times as many.
_LONG = 8


@dataclass(frozen=True)
class Settings:
    """What is learnt, and how; the same for all chunks of a stream."""

    boundary: Boundary
    penalties: Penalties
    fixed: Mask | None
    background: bool
    signed: bool
    solver: Solver
    n_jobs: int | None

    def problem(self, X: Array, observed: Mask | None, L: int, boundary: Boundary) -> Problem:
        """Of some rows, which may be below zero: what came before has been taken from them."""
        data = Data.of([X], None if observed is None else [observed])
        settings = boundary, self.penalties, self.fixed
        more: dict[str, Any] = {"background": self.background, "signed": True}
        problem = Problem.of(data, self.penalties.K, L, *settings, **more)
        if problem.scale != 1:
            raise ValueError(
                "The numbers of this chunk are of quite another size than those before, too far to "
                "compute with both: give the stream in one unit."
            )
        model = replace(problem.model, signed=self.signed)
        return problem.with_model(model)


@dataclass(frozen=True)
class Learnt:
    """The state after a chunk, its activations (rows, K), and how far motifs are from optimal.

    The rows are those that were open before and the new ones; ``observed`` (rows, N), or None.
    """

    state: Running
    activations: Array
    observed: Mask | None
    kkt_W: float
    squared_residual: float


def begun(W: Array, scale: float, level: Array | None = None) -> Running:
    """The state before the first row; W (N, L, K), ``level`` (K,) of the activations."""
    N, L, K = W.shape
    sums = np.zeros((N, L * K)), np.zeros((L * K, L * K))
    past, nothing = np.zeros((L - 1, K)), np.zeros((0, N))
    level = np.zeros(K) if level is None else level
    return Running(W, *sums, past, nothing, None, scale, 0, 0, 0.0, 0.0, 0.0, level)


def learn(
    settings: Settings,
    state: Running,
    X: Array,
    observed: Mask | None,
    *,
    forget: float | None = None,
    ends: bool = False,
) -> Learnt:
    """Take a chunk (rows, N) in the working scale; ``ends``: the segment ends with it.

    ``forget`` is the half-life in rows, None for none.
    """
    L = state.W.shape[1]
    fresh = len(X)
    X, observed = _joined(state, X, observed)
    n_open = 0 if ends else min(len(X), 2 * (L - 1))
    done = len(X) - n_open
    counted = _counted(state, len(X), done, ends)
    boundary = settings.boundary if ends else "zero"
    problem = settings.problem(_without_past(state, X, observed), observed, L, boundary)
    seen = max(state.n_seen + fresh, 1)
    keep = (state.n_seen / seen) ** _FADING if done else 1.0
    if forget is not None:
        keep *= 0.5 ** (fresh / forget)
    W, kkt = state.W, 0.0
    with Workers.for_passes(settings.n_jobs, problem.multiplications) as workers:
        engine = CPUEngine(problem, workers)
        H = _activations(engine, W, None, state.level)
        for turn in range(_TURNS):
            if turn:
                H = _activations(engine, W, H, state.level)
            sums = _sums(settings, state.H, W, X, observed, H, counted)
            P, B = keep * state.P + sums.P, keep * state.B + sums.B
            if done:
                W, kkt = _motifs(settings, problem.model, W, P, B, workers)
        W = _revived(engine, problem.model, W, H)
    rows = np.concatenate([state.H, H])[done : done + L - 1]
    new = Running(
        W,
        P,
        B,
        np.zeros_like(state.H) if ends else rows,
        X[done:].copy(),
        None if observed is None else observed[done:].copy(),
        state.scale,
        seen,
        0 if ends else state.n_done + done,
        keep * state.weight + counted[1] - counted[0],
        keep * state.power + sums.power,
        keep * state.residual + sums.residual,
        H[:done].mean(axis=0) if done else state.level,
    )
    return Learnt(new, H, observed, kkt, sums.residual)


@dataclass(frozen=True)
class _Sums:
    P: Array
    B: Array
    residual: float
    power: float


def _counted(state: Running, n_rows: int, done: int, ends: bool) -> tuple[int, int]:
    """The rows that enter the sums: all that are done, but for those beside a gap.

    At the start of a segment motifs that began before it are not known, and what they leave would
    be learnt as a part of others; at its end activations rest on a few lags. Where segments are so
    short that it matters they count.
    """
    reach = state.W.shape[1] - 1
    if n_rows < _LONG * 2 * reach:
        return 0, done
    first = max(0, 2 * reach - state.n_done)
    return min(first, done), max(min(first, done), done - reach * ends)


def _joined(state: Running, X: Array, observed: Mask | None) -> tuple[Array, Mask | None]:
    """The open rows and the new ones."""
    if not len(state.X):
        return X, observed
    if observed is not None or state.observed is not None:
        before = np.ones(state.X.shape, bool) if state.observed is None else state.observed
        observed = np.concatenate(
            [before, np.ones(X.shape, bool) if observed is None else observed]
        )
    return np.concatenate([state.X.astype(X.dtype, copy=False), X]), observed


def _without_past(state: Running, X: Array, observed: Mask | None) -> Array:
    """X less what motifs that began before it explain of its first rows."""
    past = state.H
    n = min(len(past), len(X))
    if not past.any() or not n:
        return X
    rows = np.concatenate([past, np.zeros((n, past.shape[1]))])
    made = _windows(rows, len(past) + 1)[:n] @ oldest_first(state.W).T
    ahead = X.copy()
    ahead[:n] -= made
    if observed is not None:
        ahead[:n][~observed[:n]] = 0
    return ahead


def _windows(H: Array, L: int) -> Array:
    """Every run of L rows, flattened, the oldest first: (rows − L + 1, L·K)."""
    view = np.lib.stride_tricks.sliding_window_view(H, L, axis=0)  # (rows, K, L)
    return view.transpose(0, 2, 1).reshape(len(view), -1)


def _activations(engine: CPUEngine, W: Array, H: Array | None, level: Array) -> Array:
    """Of the rows, from those of the turn before, or from a level (K,).

    Where activations are dense a start at zero would give nearly all to the motif that is swept
    first.
    """
    motifs = engine.put_motifs(W)
    problem = engine.activation_problem(motifs)
    start = engine.level(level) if H is None else engine.put(H)
    inner = _FIRST if H is None else _AGAIN
    return engine.sweep(start, problem, HALS("tiles"), inner).astype(np.float64)


def _sums(
    settings: Settings,
    past: Array,
    W: Array,
    X: Array,
    observed: Mask | None,
    H: Array,
    counted: tuple[int, int],
) -> _Sums:
    """P, B, squared residual and power of the rows that count, some of them at a time."""
    N, L, K = W.shape
    H = np.concatenate([past, H])
    H[:, K - settings.background :] = 1
    P, B, residual, power = np.zeros((N, L * K)), np.zeros((L * K, L * K)), 0.0, 0.0
    step = max(256, _BYTES // (8 * L * K))
    for a in range(counted[0], counted[1], step):
        b = min(a + step, counted[1])
        tilde = _windows(H[a : b + L - 1], L).reshape(b - a, L, K)[:, ::-1].reshape(b - a, L * K)
        fit = tilde @ W.reshape(N, L * K).T
        rows = X[a:b].astype(np.float64)
        power += float(np.einsum("tn,tn->", rows, rows))  # missing entries are zero
        if observed is not None:
            rows = np.where(observed[a:b], rows, fit)
        left = rows - fit
        residual += float(np.einsum("tn,tn->", left, left))
        P += rows.T @ tilde
        B += tilde.T @ tilde
    return _Sums(P, B, residual, power)


def _motifs(
    settings: Settings, model: Model, W: Array, P: Array, B: Array, workers: Workers
) -> tuple[Array, float]:
    """The motifs that are best for the sums, and the KKT residual of those that were there."""
    between = model.penalties.between_motifs(model.L)
    whole = P, B if between is None else B + between
    P, B = whole
    statistics = WStatistics(P, B, workers)
    if model.held is not None:
        held = np.tile(model.held, model.L)
        explained = W.reshape(P.shape)[:, held] @ B[np.ix_(held, ~held)]
        own = np.ascontiguousarray(B[np.ix_(~held, ~held)])
        statistics = WStatistics(P[:, ~held] - explained, own, workers, explained, P[:, ~held])
    kkt = kkt_residual_W(model, W, statistics)
    _, L, K = W.shape
    unseen = ~np.diagonal(B).reshape(L, K).any(axis=0)
    kept = W[:, :, unseen]
    W = update_motifs(settings.solver, model, W, statistics, _MOTIFS)
    W[:, :, unseen] = kept  # one that has not occurred yet is not known to be wrong
    if model.background:
        update_background(W, *whole, signed=model.signed)
    return W, kkt


def _revived(engine: CPUEngine, model: Model, W: Array, H: Array) -> Array:
    """A motif that has become empty goes where the chunk is explained worst."""
    empty = [k for k in model.learnt if not W[:, :, k].any()]
    if not empty:
        return W
    found = engine.worst_window(engine.put_motifs(W), engine.put(H))
    if found is None:
        return W
    W = W.copy()
    window = np.asarray(found[1], dtype=np.float64)
    W[:, :, empty[0]] = window.T / np.linalg.norm(window)
    return W
