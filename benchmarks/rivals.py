"""Those we measure against, each as a curve of (seconds, relative loss) from a given start."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from harness import Curve, LoopState
from numba import njit
from problems import Benchmark

from motifold import CNMF

Start = tuple[np.ndarray, np.ndarray]


def motifold_curve(
    problem: Benchmark,
    start: Start,
    seconds: float,
    *,
    solver: str = "hals",
    acceleration: str | None = "auto",
    until: float = 0.0,
) -> Curve:
    """Ours; ends early where the loss reaches ``until``."""
    curve: Curve = []

    def note(state: LoopState) -> bool:
        curve.append((state.seconds, state.loss))
        return state.loss <= until

    model = CNMF(
        problem.K,
        problem.L,
        solver=solver,
        acceleration=acceleration,
        tol=0,
        max_iter=10**9,
        max_time=seconds,
        callback=note,
    )
    model.fit(problem.X, components_init=start[0], activations_init=start[1])
    return [(0.0, model.history_.loss[0]), *curve]


def torchnmf_curve(problem: Benchmark, start: Start, seconds: float) -> Curve:
    """Torchnmf's NMFD: multiplicative updates in PyTorch, two threads."""
    import torch
    from torchnmf.nmf import NMFD

    torch.set_num_threads(2)
    T = len(problem.X)
    V = torch.from_numpy(np.ascontiguousarray(problem.X.T))[None]
    W = torch.from_numpy(np.ascontiguousarray(start[0].transpose(2, 0, 1)))
    # It has T − L + 1 activations: the first of ours.
    H = torch.from_numpy(np.ascontiguousarray(start[1][: T - problem.L + 1].T))[None]
    model = NMFD(W=W.clone(), H=H.clone())
    norm = float(torch.linalg.norm(V))

    def loss() -> float:
        with torch.no_grad():
            return float(torch.linalg.norm(V - model())) / norm

    return _timed(lambda: model.fit(V, beta=2, tol=0, max_iter=1), loss, seconds)


def residual_hals_curve(problem: Benchmark, start: Start, seconds: float) -> Curve:
    """The paper's own form of HALS: the residual is kept, each update costs O(NT) or O(NL)."""
    W = np.ascontiguousarray(start[0])  # (K, L, N)
    H = start[1].copy()
    E = problem.X.copy()
    for lag in range(problem.L):
        E[lag:] -= H[: len(H) - lag] @ W[:, lag]
    norm = np.linalg.norm(problem.X)
    _residual_hals(E[:60].copy(), W.copy(), H[:60].copy())  # compiles
    return _timed(lambda: _residual_hals(E, W, H), lambda: np.linalg.norm(E) / norm, seconds)


def sklearn_nmf(problem: Benchmark, start: Start, iterations: int) -> tuple[float, float]:
    """Seconds and loss of scikit-learn's coordinate descent after so many iterations (L = 1)."""
    from sklearn.decomposition import NMF

    model = NMF(problem.K, init="custom", solver="cd", tol=0, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit_transform(problem.X, W=start[1].copy(), H=start[0][:, 0].copy())
        seconds = time.perf_counter() - began
    return seconds, model.reconstruction_err_ / float(np.linalg.norm(problem.X))


def _timed(step: Callable[[], object], loss: Callable[[], float], seconds: float) -> Curve:
    """Run steps until the time is up; measuring the loss is not counted."""
    elapsed, curve = 0.0, [(0.0, float(loss()))]
    while elapsed < seconds:
        began = time.perf_counter()
        step()
        elapsed += time.perf_counter() - began
        curve.append((elapsed, float(loss())))
    return curve


@njit(nogil=True, fastmath=True)
def _residual_hals(E, W, H):
    """One iteration, W then H, both with the residual E (T, N) kept up to date."""
    T, N = E.shape
    K, L, _ = W.shape
    top = np.empty(N, dtype=E.dtype)
    for k in range(K):
        for lag in range(L):
            top[:] = 0
            bottom = np.float32(0)
            for t in range(lag, T):
                h = H[t - lag, k]
                if h != 0:
                    bottom += h * h
                    for n in range(N):
                        top[n] += E[t, n] * h
            for n in range(N):
                new = max(np.float32(0), W[k, lag, n] + top[n] / bottom) if bottom > 0 else 0
                top[n] = new - W[k, lag, n]
                W[k, lag, n] = new
            for t in range(lag, T):
                h = H[t - lag, k]
                if h != 0:
                    for n in range(N):
                        E[t, n] -= top[n] * h
    for k in range(K):
        for t in range(T):
            left = min(L, T - t)
            top_h, norm = np.float32(0), np.float32(0)
            for lag in range(left):
                for n in range(N):
                    top_h += W[k, lag, n] * E[t + lag, n]
                    norm += W[k, lag, n] * W[k, lag, n]
            new_h = max(np.float32(0), H[t, k] + top_h / norm) if norm > 0 else np.float32(0)
            d = new_h - H[t, k]
            if d != 0:
                H[t, k] = new_h
                for lag in range(left):
                    for n in range(N):
                        E[t + lag, n] -= d * W[k, lag, n]
