"""What a mask costs: one iteration with a share of the entries missing against one without.

``.venv/bin/python benchmarks/masked.py [--threads 1 2] [--missing 0.05 ...]``, as ``iteration.py``.
"""

from __future__ import annotations

import harness
import numpy as np
from iteration import K, L, N
from problems import shaped

FORMS = {"published": False, "accelerated": True}


def measure(T: int, missing: float, threads: int, rounds: int) -> dict[str, float]:
    """Milliseconds of an iteration, published and accelerated, with and without the mask."""
    benchmark = shaped(T, N, K, L)
    X = benchmark.X
    W, H = benchmark.start(0)
    observed = np.random.default_rng(0).random(X.shape) >= missing
    problems = {
        "whole": harness.inner_problem(X, K, L),
        "masked": harness.inner_problem(X, K, L, observed),
    }
    with harness.inner_threads(threads) as workers:
        rivals = {
            f"{form} {name}": harness.iteration(problem, W, H, workers, accelerated=accelerated)
            for form, accelerated in FORMS.items()
            for name, problem in problems.items()
        }
        return harness.median_milliseconds(rivals, rounds)


def main() -> None:
    """Print a row for every share and number of threads."""
    parser = harness.parser(__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.05])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.smoke:
        options.samples, options.rounds = 400, 1
    for threads in options.threads:
        for missing in options.missing:
            row = measure(options.samples, missing, threads, options.rounds)
            ratios = [row[f"{form} masked"] / row[f"{form} whole"] for form in FORMS]
            times = "  ".join(f"{name} {value:.4g}" for name, value in row.items())
            print(f"threads {threads}  missing {missing:.0%}  {times}  ratios", end=" ")
            print("  ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
