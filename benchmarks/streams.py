"""Streams: what a latency costs, how fast a push is, how good ``partial_fit`` is beside ``fit``.

``.venv/bin/python benchmarks/streams.py [latency push quality drift long mapped] [--page]`` keeps
what it finds in streams.json, prints it, and writes the section of the page (of all that is kept,
if no part is named). Drift draws docs/images/streams-drift.png, too. Wall times are those of the
machine as it is; its load is told.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
import long_stream
import numpy as np
import streams_page
from problems import SONGBIRD, load, planted
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF, find_events
from motifold.matching import match_motifs

PARTS = ("latency", "push", "quality", "drift", "long", "mapped")
QUALITY = ("synthetic-50000", "song", "speech", "sparse-50000")
RESULTS = harness.ROOT / "benchmarks" / "streams.json"
_LATENCY_BINS = 6000  # at most
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "streams-drift.png"


def neural() -> tuple[np.ndarray, int, int]:
    """NEURAL of the songbird file."""
    X = loadmat(SONGBIRD)["NEURAL"].T.astype(np.float64)
    return X, 5, 20


def relative_error(found: np.ndarray, H: np.ndarray) -> float:
    """‖found − H‖/‖H‖ over the bins that were given out."""
    H = H[: len(found)]
    return float(np.linalg.norm(found - H) / np.linalg.norm(H))


def latency_errors(X: np.ndarray, K: int, L: int) -> dict[str, Any]:
    """For each latency the error of the activations, and the certainty that is told and found.

    And for some bins the error beside that of ``transform`` on data that is cut off there.
    """
    model = CNMF(K, L, random_state=0, max_iter=100).fit(X)
    X = X[:_LATENCY_BINS]
    H, whole = model.transform(X), model.stream(2 * L).push(X[: 3 * L]).certainty[0]
    some = np.arange(min(10 * L, len(X) // 2), len(X) - 2 * L, max(1, len(X) // 100))
    rows = []
    for name, d in latencies(L).items():
        final = model.stream(d).push(X)
        n, found = len(final.bins), final.activations
        left = np.square(found - H[:n]).sum(axis=0) / np.square(H[:n]).sum(axis=0)
        row = {"d": name, "error": relative_error(found, H)}
        row |= {"told": float(final.certainty.mean()), "begins": float(final.certainty[0].mean())}
        row["found"] = float((np.clip(1 - left, 0, 1) * whole).mean())
        if 0 < d < L - 1:
            cut = [model.transform(X[max(0, t - 10 * L) : t + d + 1])[-1 - d] for t in some]
            row["some"] = relative_error(found[some], H[some])
            row["cut off"] = relative_error(np.array(cut), H[some])
        rows.append(row)
        print("  ", row, flush=True)
    return {"K": K, "L": L, "rows": rows}


def latencies(L: int) -> dict[str, int]:
    """Those of the tables, by their names there."""
    return {"0": 0, "L/4": L // 4, "L/2": L // 2, "L − 1": L - 1, "2L": 2 * L, "3L": 3 * L}


def push(
    T: int = 3000, N: int = 250, K: int = 5, L: int = 20, events_of: int = 3000
) -> dict[str, Any]:
    """Microseconds of a push of one bin; events that are found live and afterwards."""
    median, late = np.percentile(push_times(T, N, K, L), [50, 99]) * 1e6
    sizes = {"N": N, "K": K, "L": L, "load": os.getloadavg()[0], "events_of": events_of}
    return sizes | {"median": median, "late": late, "events": live_events(events_of)}


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


def quality(
    X: np.ndarray, K: int, L: int, *, chunk: int, passes: int, seed: int = 0
) -> dict[str, Any]:
    """Loss on the whole after every pass in chunks of random order, beside that of a fit."""
    places = np.arange(0, max(len(X) - chunk // 2, 1), chunk)
    fit = float(CNMF(K, L, random_state=seed).fit(X).loss_)
    print(f"  start {seed}: fit {fit:.5f}; passes", end="", flush=True)
    rng, model, losses = np.random.default_rng(seed), CNMF(K, L, random_state=seed), []
    for _ in range(passes):
        for a in rng.permutation(places):
            end = a + chunk if a + 3 * chunk // 2 <= len(X) else len(X)
            model.partial_fit(X[a:end], new_segment=True)
        losses.append(-float(model.score(X)))
        print(f" {losses[-1]:.5f}", end="", flush=True)
    print()
    return {"K": K, "L": L, "chunk": chunk, "seed": seed, "fit": fit, "passes": losses}


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
    end = courses["bin"][-1]
    axes.axvspan(end / 2, 3 * end / 4, color="0.93", zorder=0, label="while the motif changes")
    for name, style in (("forget=500", "-"), ("forget=None", "--")):
        axes.plot(courses["bin"], courses[name], style, label=name)
    axes.set(xlabel="time bins seen", ylabel="cosine with the motif as it is now")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def smoke() -> None:
    """All of it on next to nothing."""
    X = planted(400, 6, 2, 4)[0].astype(float)
    with long_stream.recording(1000, 5, None) as path:
        found = {
            "latency": {"made up": latency_errors(X, 2, 4)},
            "push": push(300, 5, 2, 4, events_of=400),
            "quality": {f"up {i}": quality(X, 2, 4, chunk=100, passes=2) for i in range(2)},
            "drift": drift_courses(1000, 6, 4, 250),
            "long": long_stream.learnt(path, 1000, 5, 250),
            "mapped": long_stream.fitted(path, 1000, 5, 60),
        }
    print("\n".join(streams_page.lines(found)))


def measured(part: str, options: Any) -> Iterator[dict[str, Any]]:
    """What a part found, as soon as there is something."""
    if part == "latency":
        yield {"neural": latency_errors(*neural())}
        for name in ("song", "speech"):
            p = load(name)
            yield {name: latency_errors(p.X.astype(float), p.K, p.L)}
    elif part == "push":
        yield push()
    elif part == "quality":
        for name in options.problems or QUALITY:
            p, chunk = load(name), 1000 if name == "song" else 2000
            for seed in options.starts:
                found = quality(p.X, p.K, p.L, chunk=chunk, passes=5, seed=seed)
                yield {f"{name}, start {seed}": {"problem": name} | found}
    elif part == "drift":
        courses = drift_courses()
        draw_drift(courses, IMAGE)
        yield courses
    else:
        with long_stream.recording(options.bins, 100, options.folder) as path:
            if part == "long":
                yield long_stream.learnt(path, options.bins, 100)
            else:
                yield long_stream.fitted(path, options.bins, 100, options.seconds)


def main() -> None:
    """Measure what was asked for, all if nothing was; keep it, print it, write it."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--problems", nargs="*", choices=QUALITY, help="for quality")
    parser.add_argument("--starts", type=int, nargs="*", default=[0], help="for quality: seeds")
    parser.add_argument("--bins", type=int, default=10**7, help="of the long stream")
    parser.add_argument("--seconds", type=float, default=1200, help="for its fit, at most")
    parser.add_argument("--folder", type=Path, help="where the long recording is to stay")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.smoke:
        smoke()
        return
    for part in options.parts or ([] if options.page else PARTS):
        for found in measured(part, options):
            kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            kept[part] = kept.get(part, {}) | found | {"machine": harness.machine()}
            harness.save(RESULTS, kept)
    kept = json.loads(RESULTS.read_text())
    print("\n".join(streams_page.lines(kept)))
    if options.page:
        harness.write_section("streams", streams_page.lines(kept))


if __name__ == "__main__":
    main()
