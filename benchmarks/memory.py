"""Peak memory of a fit beyond the data: ``.venv/bin/python benchmarks/memory.py [T]``."""

from __future__ import annotations

import json
import re
import resource
import warnings
from pathlib import Path

import harness
import numpy as np

from motifold import CNMF

N, K, L = 250, 5, 20


def peak_megabytes() -> float:
    """The most memory this program has held so far.

    Not what getrusage says where there is better: that counts the process which started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit a large problem for a few iterations and print what it took above X, as JSON."""
    parser = harness.parser(__doc__)
    parser.add_argument("T", type=int, nargs="?", default=400_000)
    options = parser.parse_args()
    T = 2000 if options.smoke else options.T
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    small = rng.random((20_000, 60), dtype=np.float32)
    CNMF(2, 5, max_iter=3, tol=0).fit(small)  # compiles
    X = np.empty((T, N), dtype=np.float32)
    for a in range(0, T, 1000):
        X[a : a + 1000] = rng.random((min(1000, T - a), N), dtype=np.float32)
    before = peak_megabytes()
    CNMF(K, L, max_iter=5, tol=0, random_state=0).fit(X)
    extra, size = peak_megabytes() - before, X.nbytes / 2**20
    print(json.dumps({"T": T, "X": size, "extra": extra, "allowed": 0.25 * size + 200}))


if __name__ == "__main__":
    main()
