"""One iteration against the two bare matrix products that it cannot do without.

``.venv/bin/python benchmarks/iteration.py [--threads 1 2] [--samples T ...]``. Rivals are
interleaved and medians taken, since machines are noisy. An iteration is that of the loop: both data
passes, one sweep of each factor, the Grams, the loss and the KKT residual.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from motifold.datasets import make_sequences
from motifold.descent import Acceleration, Rules
from motifold.fit import Loop
from motifold.parallel import Workers
from motifold.problem import Problem
from motifold.solvers import HALS

N, K, L = 250, 5, 20


def median_milliseconds(rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median time of each rival over interleaved rounds, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for i in range(rounds + 1):
        for name, call in rivals.items():
            time.sleep(0.05)  # BLAS's own threads spin for a while after their work,
            call()  # and after a pause processors take a while to get going
            began = time.perf_counter()
            call()
            if i:
                times[name].append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in times.items()}


def measure(T: int, threads: int, rounds: int, dtype: type = np.float32) -> dict[str, float]:
    """Milliseconds of the products and of one iteration, published and accelerated."""
    X = make_sequences(T, N, K, L, random_state=0).X.astype(dtype)
    rng = np.random.default_rng(0)
    W, H = rng.random((N, L, K)).astype(dtype), rng.random((T, K)).astype(dtype)
    stacked, flat = rng.random((T, L * K)).astype(dtype), W.reshape(N, L * K)
    problem = Problem.from_arrays([X], K, L)

    def products() -> None:
        with threadpool_limits(threads, user_api="blas"):
            X.T @ stacked
            X @ flat

    with Workers(threads) as workers:
        loops = {
            "published": Loop(problem, HALS(), Rules(tol=0), workers),
            "accelerated": Loop(
                problem, HALS(), Rules(tol=0, acceleration=Acceleration()), workers
            ),
        }
        # Always the same iteration, the second: later ones do other things now and then.
        states = {name: loop.descent.iterate(loop.start(W, H)) for name, loop in loops.items()}
        rivals: dict[str, Callable[[], object]] = {"products": products}
        for name, loop in loops.items():
            rivals[name] = partial(loop.descent.iterate, states[name])
        return median_milliseconds(rivals, rounds)


def main() -> None:
    """Print a row for every size and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, nargs="+", default=[50_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for T in options.samples:
        for threads in options.threads:
            row = {"T": T, "threads": threads, **measure(T, threads, options.rounds)}
            row["ratio"] = row["published"] / row["products"]
            rows.append(row)
            if not options.json:
                print("  ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
