"""What each lever brings: the same fit with and without it, medians over starts.

``.venv/bin/python benchmarks/levers.py [--seeds 3]``. Two of the levers live here and not in the
package, because they did not pay: motifs started at windows of the data, and iterations on
features compressed by a random projection.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from problems import Benchmark, load

from motifold.descent import Acceleration, Rules
from motifold.fit import Loop, search
from motifold.initialize import initial_factors
from motifold.parallel import Workers
from motifold.problem import Problem
from motifold.solvers import HALS
from motifold.state import LoopState, SearchState
from motifold.statistics import h_statistics, w_statistics

Fit = Callable[[Benchmark, int, float], list[tuple[float, float]]]
SECONDS = {"synthetic-10000": 1.5, "synthetic-50000": 3.0, "sparse-50000": 2.0, "song": 1.0}
SECONDS |= {"speech": 3.0}


@dataclass(frozen=True)
class Compressed:
    """Passes over X·Q instead of X, with Q (N, r) orthonormal: in the place of the transforms."""

    small: Problem
    Q: np.ndarray

    @classmethod
    def of(cls, problem: Problem, r: int, rng: np.random.Generator) -> Compressed:
        """A random projection that has seen the data once (Halko, Martinsson & Tropp 2011)."""
        X = problem.segments[0].X
        sketch = X.T @ (X @ rng.standard_normal((problem.N, r)).astype(X.dtype))
        Q = np.linalg.qr(sketch)[0]
        small = Problem.from_arrays([X @ Q], problem.K, problem.L)
        small.kept["spectra"] = None
        return cls(small, Q)

    def products(self, H: np.ndarray, workers: Workers) -> np.ndarray:
        """Pass 1, the largest lag first."""
        L, K = self.small.L, self.small.K
        P = w_statistics(self.small, H, workers).P.reshape(-1, L, K)[:, ::-1]
        return (self.Q @ P.reshape(-1, L * K)).astype(np.float64)

    def correlation(self, W: np.ndarray, workers: Workers) -> np.ndarray:
        """Pass 2."""
        N, L, K = W.shape
        small = (self.Q.T @ W.reshape(N, L * K)).reshape(-1, L, K)
        return h_statistics(self.small, np.ascontiguousarray(small), workers).C


def curve_of(state: LoopState, late: float = 0.0) -> list[tuple[float, float]]:
    """Seconds and losses of a fit, whose clock started so much too late."""
    return list(zip(state.history.seconds + late, state.history.loss, strict=True))


def plain(subset_iterations: int, start: Callable | None = None) -> Fit:
    """A fit by accelerated HALS, with a given number of iterations on a part of the data."""

    def fit(problem: Benchmark, seed: int, seconds: float) -> list[tuple[float, float]]:
        began = time.perf_counter()
        task = Problem.from_arrays([problem.X], problem.K, problem.L)
        W = None if start is None else start(problem, np.random.default_rng(seed))
        acceleration = Acceleration(subset_iterations=subset_iterations)
        rules = Rules(tol=0, max_iter=10**9, max_time=seconds, acceleration=acceleration)
        with Workers() as workers:
            loop = Loop(task, HALS(), rules, workers)
            return curve_of(search(loop, SearchState([seed]), W, began=began))

    return fit


def windows_of_the_data(problem: Benchmark, rng: np.random.Generator) -> np.ndarray:
    """Motifs started at windows of X that differ: drawn like the centres of k-means++."""
    X, K, L = problem.X, problem.K, problem.L
    N = X.shape[1]
    sums = np.concatenate([[0.0], np.cumsum(np.einsum("tn,tn->t", X, X, dtype=np.float64))])
    energy = np.maximum(sums[L:] - sums[:-L], 0)
    left, W = energy.copy(), np.empty((N, L, K), dtype=X.dtype)
    for k in range(K):
        t = rng.choice(len(left), p=left / left.sum())
        W[:, :, k] = X[t : t + L].T
        along = X @ (X[t : t + L].T / np.linalg.norm(X[t : t + L]))
        overlap = sum(along[lag : lag + len(left), lag] for lag in range(L))
        left = np.minimum(left, np.maximum(energy - overlap**2, 0))
    return W + (0.1 * X.mean() * rng.random(W.shape)).astype(X.dtype)


def compressed(rank: int, iterations: int) -> Fit:
    """Some iterations on compressed features, then on all of them."""

    def fit(problem: Benchmark, seed: int, seconds: float) -> list[tuple[float, float]]:
        began = time.perf_counter()
        task = Problem.from_arrays([problem.X], problem.K, problem.L)
        rules = Rules(tol=0, max_iter=10**9, max_time=seconds, acceleration=Acceleration())
        rng = np.random.default_rng(seed)
        with Workers() as workers:
            loop = Loop(task, HALS(), rules, workers)
            state = loop.start(*initial_factors(task, rng, workers))
            loop._noise = 0.0  # its loss is not that of X
            task.kept["spectra"] = Compressed.of(task, min(rank, task.N), rng)
            for _ in range(iterations):
                state = loop.descent.iterate(state)
            del task.kept["spectra"]
            late = time.perf_counter() - began
            loop = Loop(task, HALS(), rules, workers)
            end = loop.run(loop.start(state.W, state.H, late))
            return curve_of(end)

    return fit


LEVERS: dict[str, Fit] = {
    "as it is": plain(16),
    "without a part first": plain(0),
    "windows of the data": plain(16, windows_of_the_data),
    "compressed to 40, 15 iterations": compressed(40, 15),
}


def loss_at(curve: list[tuple[float, float]], seconds: float) -> float:
    """The loss reached by then."""
    return min((loss for when, loss in curve if when <= seconds), default=np.nan)


def main() -> None:
    """Print a table for every problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", nargs="+", default=list(SECONDS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.problems:
        problem, seconds = load(name), SECONDS[name]
        plain(16)(problem, 0, 0.2)  # compiles
        curves: dict[str, list] = {lever: [] for lever in LEVERS}
        for seed in range(options.seeds):
            for lever, fit in LEVERS.items():
                curves[lever].append(fit(problem, seed, seconds))
        print(f"{name}: median loss after {seconds / 4:g}, {seconds / 2:g} and {seconds:g} s")
        for lever, runs in curves.items():
            losses = [
                np.median([loss_at(run, part * seconds) for run in runs]) for part in (0.25, 0.5, 1)
            ]
            print(f"  {lever:35s}" + "  ".join(f"{loss:.4f}" for loss in losses), flush=True)


if __name__ == "__main__":
    main()
