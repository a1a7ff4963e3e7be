"""One iteration against the two bare matrix products that it cannot do without.

``.venv/bin/python benchmarks/iteration.py [--threads 1 2] [--samples T ...]``. Rivals are
interleaved and medians taken, since machines are noisy. An iteration is that of the loop: both data
passes, one sweep of each factor, the Grams, the loss and the KKT residual.
"""

from __future__ import annotations

import json

import harness
from problems import shaped

N, K, L = 250, 5, 20


def measure(T: int, threads: int, rounds: int) -> dict[str, float]:
    """Milliseconds of the products and of one iteration, published and accelerated."""
    benchmark = shaped(T, N, K, L)
    W, H = benchmark.start(0)
    problem = harness.inner_problem(benchmark.X, K, L)
    with harness.inner_threads(threads) as workers:
        rivals = {"products": harness.bare_products(benchmark.X, K, L, threads)}
        for name, accelerated in [("published", False), ("accelerated", True)]:
            rivals[name] = harness.iteration(problem, W, H, workers, accelerated=accelerated)
        return harness.median_milliseconds(rivals, rounds)


def main() -> None:
    """Print a row for every size and number of threads."""
    parser = harness.parser(__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, nargs="+", default=[50_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.samples, options.rounds = [400], 1
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
