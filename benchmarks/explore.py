"""How soon the explorer answers a zoom: ten million bins × 100 features, mapped from disk.

``python benchmarks/explore.py`` makes a sparse file (4 GB to look at, a few MB on disk) with some
rows of data in it, and a model whose activations are as long, and times what a zoom asks for: the
picture of the recording with its motifs, the lanes, and the marks of the events.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import harness
import numpy as np

from motifold import CNMF
from motifold.datasets import make_sequences

K, L, RATE, ROUNDS = 5, 20, 100.0, 5


def made(folder: Path, T: int, N: int) -> tuple[CNMF, np.ndarray]:
    """A model and a recording of T bins, of which a hundredth holds data."""
    rows = min(5000, T // 4)
    small = make_sequences(rows, N, K, L, activation_probability=0.005, random_state=0)
    model = CNMF(K, L, random_state=0, max_iter=50, tol=1e-2).fit(small.X)
    X = np.memmap(folder / "x.raw", np.float32, "w+", shape=(T, N))
    H = np.zeros((T, K), np.float32)
    for start in range(0, T - rows, 100 * rows):
        X[start : start + rows] = small.X
        H[start : start + rows] = model.activations_
    X.flush()
    model.activations_, model.lengths_ = H, [T]
    return model, X


def main() -> None:
    smoke = harness.parser(__doc__).parse_args().smoke
    T, N = (4000, 10) if smoke else (10_000_000, 100)
    with tempfile.TemporaryDirectory() as folder:
        model, X = made(Path(folder), T, N)
        start = time.perf_counter()
        explored = harness.Explored(model, X, RATE)
        print(f"opened in {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        print(f"{explored.events()} events in {time.perf_counter() - start:.1f} s")
        n = T
        while n >= 100:
            found = harness.median_milliseconds(explored.zoom(n), 1 if smoke else ROUNDS)
            parts = ", ".join(f"{name} {value:.0f} ms" for name, value in found.items())
            print(f"{n} bins in view: {parts}")
            n //= 4
        start = time.perf_counter()
        explored.threshold(0.5)
        print(f"another threshold: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
