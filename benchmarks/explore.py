"""How soon the explorer answers a zoom: ten million bins × 100 features, mapped from disk.

``python benchmarks/explore.py`` makes a sparse file (4 GB to look at, a few MB on disk) with some
rows of data in it, and a model whose activations are as long, and times what a zoom asks for: the
picture of the recording with its motifs, the lanes, and the marks of the events.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.explorer.marks import marks_in
from motifold.explorer.picture import View, lane_pixels, lanes_of, recording_pixels
from motifold.explorer.session import Session
from motifold.explorer.subject import Subject
from motifold.io import Recording

K, L, RATE = 5, 20, 100.0
REPEATS = 5


def made(folder: Path, T: int, N: int) -> tuple[CNMF, Recording]:
    """A model and a recording of T bins, of which a hundredth holds data."""
    small = make_sequences(5000, N, K, L, activation_probability=0.005, random_state=0)
    model = CNMF(K, L, random_state=0, max_iter=50).fit(small.X)
    X = np.memmap(folder / "x.raw", np.float32, "w+", shape=(T, N))
    H = np.zeros((T, K), np.float32)
    for start in range(0, T - 5000, 500_000):
        X[start : start + 5000] = small.X
        H[start : start + 5000] = model.activations_
    X.flush()
    model.activations_, model.lengths_ = H, [T]
    return model, Recording(X, "x.raw", RATE)


def seconds(call: object, *arguments: object) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call(*arguments)  # type: ignore[operator]
        taken.append(time.perf_counter() - start)
    return median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bins", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, recording = made(Path(folder), given.bins, given.features)
        start = time.perf_counter()
        session = Session(Subject.of(model, recording))
        print(f"opened in {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        counts = session.counts()
        print(f"{sum(counts.values())} events in {time.perf_counter() - start:.1f} s")
        order = session.subject.sorted_order
        print(f"{'bins in view':>12} {'recording':>10} {'lanes':>8} {'marks':>8}  (s, median)")
        n = given.bins
        while n >= 100:
            view = View.of(session.subject, (0, n / RATE), None)
            picture = seconds(recording_pixels, session, view, "data and motifs", order)
            lanes = seconds(lane_pixels, session.subject, 0, n, lanes_of(session))
            marks = seconds(marks_in, session, 0, n)
            print(f"{n:12d} {picture:10.3f} {lanes:8.3f} {marks:8.3f}")
            n //= 4
        start = time.perf_counter()
        session.note(0, threshold=0.5)
        session.counts()
        print(f"another threshold: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
