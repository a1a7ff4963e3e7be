"""Both data passes in every way, in nanoseconds per entry of X: what the cost model is made from.

``.venv/bin/python benchmarks/passes.py [--threads 1] [--double]``. The model is in
``motifold/spectral.py``; the last columns say what it would choose and whether that was best.
"""

from __future__ import annotations

import harness
import numpy as np

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
) -> tuple[dict[str, float], str]:
    """Nanoseconds per entry of X for both passes, in each of the ways; and the model's choice."""
    rng = np.random.default_rng(0)
    X = rng.random((T, N)).astype(dtype)
    W, H = rng.random((K, L, N)).astype(dtype), rng.random((T, K)).astype(dtype)
    with harness.inner_threads(threads) as workers:
        rivals, choice = harness.both_passes(X, W, H, workers)
        times = harness.median_milliseconds(rivals, rounds)
    return {way: 1e6 * value / (T * N) for way, value in times.items()}, choice


def main() -> None:
    """Print a row for every shape."""
    parser = harness.parser(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    dtype = np.float64 if options.double else np.float32
    print("      T     N   K    L  products  transforms  kept   the model says")
    for T, N, K, L in [(300, 10, 2, 5)] if options.smoke else SHAPES:
        row, choice = measure(T, N, K, L, options.threads, dtype, options.rounds)
        times = "  ".join(f"{row[way]:8.2f}" for way in ("products", "transforms", "kept"))
        print(f"{T:7d} {N:5d} {K:3d} {L:4d} {times}   {choice}", flush=True)


if __name__ == "__main__":
    main()
