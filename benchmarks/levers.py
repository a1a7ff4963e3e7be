"""What each lever brings: the same fit with and without it, medians over starts.

``.venv/bin/python benchmarks/levers.py [--seeds 3]``. One of the levers lives here and not in the
package, because it did not pay: motifs started at windows of the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import harness
import numpy as np
from problems import Benchmark, load, shaped

Fit = Callable[[Benchmark, int, float], harness.Curve]
SECONDS = {"synthetic-10000": 1.5, "synthetic-50000": 3.0, "sparse-50000": 2.0, "song": 1.0}
SECONDS |= {"speech": 3.0}


def as_it_is(problem: Benchmark, seed: int, seconds: float) -> harness.Curve:
    """Accelerated HALS from a random start."""
    return harness.accelerated_curve(problem.X, problem.K, problem.L, seed, seconds)


def without_a_part(problem: Benchmark, seed: int, seconds: float) -> harness.Curve:
    """No iterations on a part of the recording first."""
    sizes = problem.K, problem.L
    return harness.accelerated_curve(problem.X, *sizes, seed, seconds, first_iterations=0)


def from_windows(problem: Benchmark, seed: int, seconds: float) -> harness.Curve:
    """From motifs that are windows of the data."""
    motifs = windows_of_the_data(problem, np.random.default_rng(seed))
    return harness.accelerated_curve(problem.X, problem.K, problem.L, seed, seconds, motifs=motifs)


def windows_of_the_data(problem: Benchmark, rng: np.random.Generator) -> np.ndarray:
    """Motifs started at windows of X that differ: drawn like the centres of k-means++."""
    X, K, L = problem.X, problem.K, problem.L
    N = X.shape[1]
    sums = np.concatenate([[0.0], np.cumsum(np.einsum("tn,tn->t", X, X, dtype=np.float64))])
    energy = np.maximum(sums[L:] - sums[:-L], 0)
    left, W = energy.copy(), np.empty((K, L, N), dtype=X.dtype)
    for k in range(K):
        t = rng.choice(len(left), p=left / left.sum())
        W[k] = X[t : t + L]
        along = X @ (X[t : t + L].T / np.linalg.norm(X[t : t + L]))
        overlap = sum(along[lag : lag + len(left), lag] for lag in range(L))
        left = np.minimum(left, np.maximum(energy - overlap**2, 0))
    return W + (0.1 * X.mean() * rng.random(W.shape)).astype(X.dtype)


LEVERS: dict[str, Fit] = {
    "as it is": as_it_is,
    "without a part first": without_a_part,
    "windows of the data": from_windows,
}


def compare(problem: Benchmark, seconds: float, seeds: int) -> None:
    """Print the losses of all levers, whose runs are interleaved."""
    as_it_is(problem, 0, 0.2)  # compiles
    curves: dict[str, list[harness.Curve]] = {lever: [] for lever in LEVERS}
    for seed in range(seeds):
        for lever, fit in LEVERS.items():
            curves[lever].append(fit(problem, seed, seconds))
    print(f"{problem.name}: median loss after {seconds / 4:g}, {seconds / 2:g} and {seconds:g} s")
    for lever, runs in curves.items():
        losses = [
            np.median([harness.loss_at(run, part * seconds) for run in runs])
            for part in (0.25, 0.5, 1)
        ]
        print(f"  {lever:35s}" + "  ".join(f"{loss:.4f}" for loss in losses), flush=True)


def main() -> None:
    """Print a table for every problem."""
    parser = harness.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", nargs="+", default=list(SECONDS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.smoke:
        compare(shaped(5000, 8, 2, 5), 0.2, 1)
        return
    for name in options.problems:
        compare(load(name), SECONDS[name], options.seeds)


if __name__ == "__main__":
    main()
