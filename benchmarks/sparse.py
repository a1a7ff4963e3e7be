"""Counts as a sparse matrix against the same counts as an array: passes and whole iterations.

``.venv/bin/python benchmarks/sparse.py [--threads 2] [--share 0.02] [--double]``. Poisson counts of
planted sequences, so many of which are not zero. Times are medians over interleaved rounds.
"""

from __future__ import annotations

import harness
import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array

from motifold.datasets import make_sequences

SHAPE = (50_000, 250, 5, 20)  # T, N, K, L


def counts(T: int, N: int, K: int, L: int, share: float) -> np.ndarray:
    """Poisson counts (T, N), of which about a ``share`` is not zero."""
    rates = make_sequences(T, N, K, L, activation_probability=0.02, random_state=0).X
    rates += 0.1 * rates.mean()  # and something goes on all the time
    level = brentq(lambda c: np.mean(-np.expm1(-c * rates)) - share, 1e-9, 1e9)
    return np.random.default_rng(0).poisson(level * rates)


def measure(
    X: np.ndarray, K: int, L: int, threads: int | None, rounds: int
) -> dict[str, dict[str, float]]:
    """Milliseconds of each thing that is done, "dense" and "sparse"."""
    T, N = X.shape
    rng = np.random.default_rng(1)
    W, H = rng.random((K, L, N)).astype(X.dtype), rng.random((T, K)).astype(X.dtype)
    H *= rng.random(H.shape) < 0.1  # as a fit has them: most of them zero
    with harness.inner_threads(threads) as workers:
        rivals = {}
        for kind, data in (("dense", X), ("sparse", csr_array(X))):
            problem = harness.inner_problem(data, K, L)
            calls = harness.single_passes(problem, W, H, workers)
            for name, fast in (
                ("iteration, accelerated", True),
                ("iteration, as published", False),
            ):
                calls[name] = harness.iteration(problem, W, H, workers, accelerated=fast)
            rivals |= {(name, kind): call for name, call in calls.items()}
        times = harness.median_milliseconds(rivals, rounds)
    found: dict[str, dict[str, float]] = {}
    for (name, kind), value in times.items():
        found.setdefault(name, {})[kind] = value
    return found


def main() -> None:
    """Print a row for every pass and iteration."""
    parser = harness.parser(__doc__)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--share", type=float, default=0.02, help="of counts that are not zero")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    T, N, K, L = (400, 10, 2, 5) if options.smoke else SHAPE
    X = counts(T, N, K, L, options.share).astype(np.float64 if options.double else np.float32)
    rounds = 1 if options.smoke else options.rounds
    found = measure(X, K, L, options.threads, rounds)
    print(f"{T} × {N}, K = {K}, L = {L}, {X.dtype}, {np.mean(X > 0):.2%} not zero; milliseconds")
    rows = [
        [
            name,
            *(f"{value[kind]:.2f}" if kind in value else "" for kind in ("dense", "sparse")),
            f"{value['dense'] / value['sparse']:.1f}×" if "dense" in value else "",
        ]
        for name, value in found.items()
    ]
    print(*harness.table(["", "dense", "sparse", "faster"], rows), sep="\n")


if __name__ == "__main__":
    main()
