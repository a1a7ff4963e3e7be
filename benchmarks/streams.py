"""Streams: what a latency costs, how fast a push is, how good ``partial_fit`` is beside ``fit``.

``.venv/bin/python benchmarks/streams.py [latency push quality drift long]`` prints tables; drift
draws docs/images/streams-drift.png as well. Wall times are those of the machine as it is.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import harness
import numpy as np
from memory import peak_megabytes
from problems import SONGBIRD, load, planted
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF, find_events
from motifold.matching import match_motifs

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "streams-drift.png"


def neural() -> tuple[np.ndarray, int, int]:
    """NEURAL of the songbird file."""
    X = loadmat(SONGBIRD)["NEURAL"].T.astype(np.float64)
    return X, 5, 20


def relative_error(found: np.ndarray, H: np.ndarray) -> float:
    """‖found − H‖/‖H‖ over the bins that were given out."""
    H = H[: len(found)]
    return float(np.linalg.norm(found - H) / np.linalg.norm(H))


def latency_errors(X: np.ndarray, K: int, L: int) -> dict[int, tuple[float, float]]:
    """For each latency the relative error of the activations, and the certainty that is told."""
    model = CNMF(K, L, random_state=0, max_iter=100).fit(X)
    H = model.transform(X)
    found = {}
    for latency in (0, L // 4, L // 2, L - 1, 2 * L, 3 * L):
        final = model.stream(latency).push(X)
        found[latency] = relative_error(final.activations, H), float(final.certainty[0].mean())
    return found


def latencies(names: dict[str, tuple[np.ndarray, int, int]]) -> None:
    """The table of the docs."""
    print("| | d = 0 | L/4 | L/2 | L−1 | 2L | 3L |\n|---|---|---|---|---|---|---|")
    for name, (X, K, L) in names.items():
        cells = [f"{error:.3f} ({sure:.2f})" for error, sure in latency_errors(X, K, L).values()]
        print(f"| {name}, K{K} L{L} | {' | '.join(cells)} |", flush=True)


def push_times(T: int = 3000, N: int = 250, K: int = 5, L: int = 20) -> np.ndarray:
    """Seconds of each push of one bin."""
    X = planted(T, N, K, L)[0].astype(np.float64)
    model = CNMF(K, L, random_state=0, max_iter=20, tol=1e-2, n_jobs=1).fit(X[: T // 2])
    stream = model.stream()
    stream.push(X[:100])
    seconds = []
    for row in X[100:]:
        began = time.perf_counter()
        stream.push(row)
        seconds.append(time.perf_counter() - began)
    return np.array(seconds)


def live_events(T: int = 3000) -> tuple[int, int, int]:
    """Events of a stream, of find_events, and those that both have, but for the last latency."""
    X = planted(T, 30, 3, 10)[0].astype(np.float64)
    model = CNMF(3, 10, random_state=0, tol=1e-2).fit(X)
    stream = model.stream(30)
    events = stream.events()
    stream.push(X)
    stream.flush()
    mine = {(e["motif"], e["bin"]) for e in events.take() if e["bin"] < T - 30}
    theirs = {(e["motif"], e["bin"]) for e in find_events(model) if e["bin"] < T - 30}
    return len(mine), len(theirs), len(mine & theirs)


def quality(X: np.ndarray, K: int, L: int, chunk: int, passes: int) -> list[float]:
    """Loss on the whole, over that of a fit, after every pass in chunks of random order."""
    batch = CNMF(K, L, random_state=0).fit(X).loss_
    rng, model = np.random.default_rng(0), CNMF(K, L, random_state=0)
    starts = np.arange(0, len(X) - chunk // 2, chunk)
    ratios = []
    for _ in range(passes):
        for a in rng.permutation(starts):
            end = a + chunk if a + 3 * chunk // 2 <= len(X) else len(X)
            model.partial_fit(X[a:end], new_segment=True)
        ratios.append(-model.score(X) / batch)
    return ratios


def drift_courses(T: int = 20_000, N: int = 20, L: int = 8, chunk: int = 500) -> dict[str, list]:
    """Cosine of the motif with what it is now, with and without forgetting."""
    rng = np.random.default_rng(0)
    first, last = rng.random((2, 1, L, N)) ** 6
    share = np.clip((np.arange(T) - T / 2) / (T / 4), 0, 1)  # still, then it drifts
    X = 0.05 * rng.random((T, N))
    for start in np.flatnonzero(rng.random(T - L) < 0.03):
        now = (1 - share[start]) * first[0] + share[start] * last[0]
        X[start : start + L] += now
    start = {"n_init": 10, "random_state": 0}
    models = {"forget=500": CNMF(1, L, **start), "forget=None": CNMF(1, L, **start)}
    courses: dict[str, list] = {"bin": [], **{name: [] for name in models}}
    for a in range(0, T, chunk):
        courses["bin"].append(a + chunk)
        now = (1 - share[a + chunk - 1]) * first + share[a + chunk - 1] * last
        for name, model in models.items():
            forget = 500 if name == "forget=500" else None
            model.partial_fit(X[a : a + chunk], forget=forget)
            courses[name].append(float(match_motifs(now, model.components_).similarity[0]))
    return courses


def draw_drift(courses: dict[str, list], path: Path) -> None:
    """The picture of the docs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.subplots()
    for name, style in (("forget=500", "-"), ("forget=None", "--")):
        axes.plot(courses["bin"], courses[name], style, label=name)
    axes.set(xlabel="time bins seen", ylabel="cosine with the motif as it is now")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def long_stream(n_bins: int, chunk: int = 2000, N: int = 100) -> tuple[float, float, float]:
    """Bins per second of wall time, and peak megabytes after a tenth and at the end."""
    X = planted(min(20 * chunk, n_bins), N, 5, 20)[0]
    model = CNMF(5, 20, random_state=0, n_jobs=1)
    began, early = time.perf_counter(), 0.0
    for i, a in enumerate(range(0, n_bins, chunk)):
        first = a % len(X)
        model.partial_fit(X[first : first + chunk], new_segment=first == 0)
        if i == n_bins // chunk // 10:
            early = peak_megabytes()
    return n_bins / (time.perf_counter() - began), early, peak_megabytes()


def main() -> None:
    """Print what was asked for; all if nothing was."""
    parts = ("latency", "push", "quality", "drift", "long")
    parser = harness.parser(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []])
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.smoke:
        smoke()
        return
    asked = options.parts or parts
    if "latency" in asked:
        problems = {name: load(name) for name in ("song", "speech")}
        known = {name: (p.X.astype(float), p.K, p.L) for name, p in problems.items()}
        latencies({"neural": neural(), **known})
    if "push" in asked:
        tell_push(push_times(), live_events())
    if "quality" in asked:
        for name in ("sparse-50000", "synthetic-50000", "song", "speech"):
            p = load(name)
            ratios = quality(p.X, p.K, p.L, 1000 if name == "song" else 2000, 5)
            print(name, " ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)
    if "drift" in asked:
        courses = drift_courses()
        draw_drift(courses, IMAGE)
        print("drift, cosine at the end:", {k: round(v[-1], 3) for k, v in courses.items()})
    if "long" in asked:
        tell_long(10**6, long_stream(10**6))


def smoke() -> None:
    """All of it on next to nothing."""
    X = planted(400, 6, 2, 4)[0].astype(float)
    latencies({"made up": (X, 2, 4)})
    tell_push(push_times(300, 5, 2, 4), live_events(400))
    print("quality", quality(X, 2, 4, 100, 1))
    print({name: course[-1] for name, course in drift_courses(1000, 6, 4, 250).items()})
    tell_long(1000, long_stream(1000, 250, 5))


def tell_push(seconds: np.ndarray, events: tuple[int, int, int]) -> None:
    """Microseconds of a push; events that were found both ways."""
    median, late = np.percentile(seconds, [50, 99]) * 1e6
    print(f"push of one bin: median {median:.0f} µs, 99th percentile {late:.0f} µs")
    print("events: stream {}, find_events {}, both {}".format(*events))


def tell_long(n_bins: int, found: tuple[float, float, float]) -> None:
    """Speed and memory of a long stream."""
    rate, early, late = found
    print(
        f"{n_bins} bins: {rate:.0f} a second; peak {early:.0f} MB early, {late:.0f} MB at the end"
    )


if __name__ == "__main__":
    main()
