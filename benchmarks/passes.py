"""Both data passes in every way, in nanoseconds per entry of X: what the cost model is made from.

``.venv/bin/python benchmarks/passes.py [--threads 1] [--double]``. The model is in
``motifold/spectral.py``; the last columns say what it would choose and whether that was best.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from iteration import median_milliseconds

from motifold.parallel import Workers
from motifold.problem import Problem
from motifold.spectral import Spectra, best_way
from motifold.statistics import h_statistics, w_statistics

SHAPES = [
    # T, N, K, L
    (20_000, 250, 5, 5),
    (20_000, 250, 5, 20),
    (20_000, 250, 5, 50),
    (20_000, 100, 3, 200),
    (20_000, 257, 20, 12),
    (20_000, 257, 20, 50),
    (4_440, 141, 3, 50),
    (2_000, 2000, 5, 20),
    (50_000, 60, 3, 30),
]


def measure(
    T: int, N: int, K: int, L: int, threads: int, dtype: type, rounds: int
) -> dict[str, float]:
    """Nanoseconds per entry of X for both passes, in each of the ways."""
    rng = np.random.default_rng(0)
    X = rng.random((T, N)).astype(dtype)
    W, H = rng.random((N, L, K)).astype(dtype), rng.random((T, K)).astype(dtype)
    problems = {way: Problem.from_arrays([X], K, L) for way in ("products", "transforms", "kept")}
    for way, problem in problems.items():
        problem.kept["spectra"] = None if way == "products" else Spectra(problem, way == "kept")
    with Workers(threads) as workers:

        def passes(problem: Problem) -> None:
            w_statistics(problem, H, workers)
            h_statistics(problem, W, workers)

        rivals = {way: partial(passes, problem) for way, problem in problems.items()}
        times = median_milliseconds(rivals, rounds)
    return {way: 1e6 * value / (T * N) for way, value in times.items()}


def main() -> None:
    """Print a row for every shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    dtype = np.float64 if options.double else np.float32
    print("      T     N   K    L  products  transforms  kept   the model says")
    for T, N, K, L in SHAPES:
        row = measure(T, N, K, L, options.threads, dtype, options.rounds)
        times = "  ".join(f"{row[way]:8.2f}" for way in ("products", "transforms", "kept"))
        choice = best_way(N, T, K, L, np.dtype(dtype).itemsize)
        print(f"{T:7d} {N:5d} {K:3d} {L:4d} {times}   {choice}", flush=True)


if __name__ == "__main__":
    main()
