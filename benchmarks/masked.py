"""What a mask costs: one iteration with a share of the entries missing against one without.

``.venv/bin/python benchmarks/masked.py [--threads 1 2] [--missing 0.05 ...]``, as ``iteration.py``.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from iteration import K, L, N, median_milliseconds

from motifold.datasets import make_sequences
from motifold.descent import Acceleration, Rules
from motifold.fit import Loop
from motifold.parallel import Workers
from motifold.problem import Problem
from motifold.solvers import HALS


def measure(T: int, missing: float, threads: int, rounds: int) -> dict[str, float]:
    """Milliseconds of an iteration, published and accelerated, with and without the mask."""
    X = make_sequences(T, N, K, L, random_state=0).X.astype(np.float32)
    rng = np.random.default_rng(0)
    W, H = rng.random((N, L, K), dtype=np.float32), rng.random((T, K), dtype=np.float32)
    observed = rng.random(X.shape) >= missing
    problems = {
        "whole": Problem.from_arrays([X], K, L),
        "masked": Problem.from_arrays([np.where(observed, X, 0)], K, L, masks=[observed]),
    }
    with Workers(threads) as workers:
        rivals = {}
        for form, acceleration in [("published", None), ("accelerated", Acceleration())]:
            for name, problem in problems.items():
                rules = Rules(tol=0, acceleration=acceleration)
                loop = Loop(problem, HALS(), rules, workers)
                state = loop.descent.iterate(loop.start(W, H))
                rivals[f"{form} {name}"] = partial(loop.descent.iterate, state)
        return median_milliseconds(rivals, rounds)


def main() -> None:
    """Print a row for every share and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.05])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for threads in options.threads:
        for missing in options.missing:
            row = measure(options.samples, missing, threads, options.rounds)
            ratios = [row[f"{form} masked"] / row[f"{form} whole"] for form in FORMS]
            times = "  ".join(f"{name} {value:.4g}" for name, value in row.items())
            print(f"threads {threads}  missing {missing:.0%}  {times}  ratios", end=" ")
            print("  ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)


FORMS = ("published", "accelerated")

if __name__ == "__main__":
    main()
