"""A cluster: the same fit on 1, 2 and 4 workers, what a round costs, workers that are killed.

``.venv/bin/python benchmarks/cluster.py [equality speed centre kills model]`` measures (all of
them, if none is named) and keeps the numbers in benchmarks/cluster.json; ``--page`` writes
docs/developers/scaling.md from them, with the picture of the model. Workers are processes of this
machine. Where others use it too, compare processor seconds, which are told beside wall times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).parent)
sys.path = [folder for folder in sys.path if folder != HERE]  # workers run this, too
import dask.array  # noqa: E402, F401  (it looks for a package ``sparse``, and there is a script here)

sys.path.insert(0, HERE)

import harness  # noqa: E402
import numpy as np  # noqa: E402
from problems import planted  # noqa: E402

NUMBERS = Path(__file__).with_name("cluster.json")
PAGE = harness.ROOT / "docs" / "developers" / "scaling.md"
IMAGE = harness.ROOT / "docs" / "images" / "scaling.svg"
K, L = 5, 20
# Of the paper study: bins, features, and links of the client in bytes a second.
BINS, FEATURES, LINKS = 10**9, 250, {"10 Gbit/s": 1.25e9, "100 Gbit/s": 1.25e10}
WORKERS = (16, 32, 64, 128, 256)


@contextmanager
def cluster(n: int, **options: Any) -> Iterator[Any]:
    """A client of n worker processes with one thread each, started again if they die."""
    import dask
    from distributed import Client, LocalCluster

    settings = {"distributed.deploy.lost-worker-timeout": "600s"}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0", **options) as local,
        Client(local, direct_to_workers=True) as client,
    ):
        yield client


def recording(T: int, N: int) -> np.ndarray:
    """Sequences in noise, float32."""
    return planted(T, N, K, L)[0].astype(np.float32)


def fitted(client: Any, X: np.ndarray, n_iter: int, **more: Any) -> tuple[Any, dict[str, float]]:
    """A fit of so many iterations, and what it took; processor seconds are those of the workers."""
    from motifold.dask import CNMF

    ends, own = [], []

    def note(state: Any) -> None:
        ends.append(time.perf_counter())
        own.append(time.thread_time())

    callback = more.pop("callback", note)
    settings = {"random_state": 0, "tol": 0, "max_iter": n_iter, "acceleration": None}
    settings |= {"solver": harness.HALS("tiles"), "client": client, "n_jobs": 1}
    before = client.run(time.process_time)
    model = CNMF(K, L, **settings | more, callback=callback).fit(X)
    after = client.run(time.process_time)
    used = [after[w] - before[w] for w in after if w in before]
    numbers = {"processor": max(used, default=np.nan) / n_iter}
    if len(ends) > 2:
        numbers["wall"] = min(np.diff(ends))
        numbers["centre"] = statistics.median(np.diff(own))
    return model, numbers


def equality(smoke: bool) -> dict[str, Any]:
    """1, 2 and 4 workers bit by bit; and beside one machine."""
    from motifold import CNMF

    X = recording(12_000 if smoke else 40_000, 8 if smoke else 50).astype(np.float64)
    n_iter = 2 if smoke else 20
    settings = {"random_state": 0, "tol": 0, "max_iter": n_iter, "n_jobs": 1}
    local = CNMF(K, L, **settings).fit(X)
    found = []
    for n in (1, 2) if smoke else (1, 2, 4):
        with cluster(n, processes=not smoke) as client:
            model = fitted(client, X, n_iter, acceleration="auto", solver="auto")[0]
            found.append(
                (model.history_.objective, model.components_, np.asarray(model.activations_))
            )
    pairs = [pair for other in found[1:] for pair in zip(found[0], other, strict=True)]
    same = all(np.array_equal(a, b) for a, b in pairs)
    apart = float(np.abs(found[0][0] / local.history_.objective - 1).max())
    return {"same bits": same, "apart": apart, "stop": [model.stop_reason_, local.stop_reason_]}


def speed(smoke: bool) -> dict[str, Any]:
    """One worker against two, single threads."""
    X = recording(12_000 if smoke else 10**6, 8 if smoke else 100)
    found = {}
    for n in (2,) if smoke else (1, 2):
        with cluster(n, processes=not smoke) as client:
            found[str(n)] = fitted(client, X, 3 if smoke else 5)[1]
    return found


def centre(smoke: bool) -> dict[str, Any]:
    """The centre's own time per iteration with many shards; rounds, and bytes of an answer."""
    n_shards = 2 if smoke else 64
    X = recording(12_000 if smoke else 64 * 4096 + 4096, 8 if smoke else 100)
    with cluster(2, processes=not smoke) as client, harness.shards(n_shards):
        model, numbers = fitted(client, X, 4 if smoke else 20)
        return {"shards": model.activations_.numblocks[0], **numbers}


def rounds(smoke: bool) -> dict[str, Any]:
    """An empty round, and one that brings 200 kB from every worker, in seconds."""
    found = {}
    for n in (2,) if smoke else (1, 2, 4):
        with cluster(n, processes=not smoke) as client:
            found[str(n)] = harness.rounds_of_crew(client, 5 if smoke else 50)
    return found


def kills(smoke: bool) -> dict[str, Any]:
    """Workers killed at random moments of a fit."""
    X = recording(12_000, 8).astype(np.float64)
    n_iter, n_kills = (4, 1) if smoke else (200, 20)
    rng, killed = random.Random(0), []
    with cluster(2) as client:
        calm = fitted(client, X, n_iter)[0]
        J, H = calm.history_.objective, np.asarray(calm.activations_)

        def kill(state: Any) -> None:
            due = n_iter * (len(killed) + 0.5) / n_kills
            if len(killed) < n_kills and state.iteration >= due:
                worker = rng.choice(list(client.cluster.workers.values()))
                if worker.pid:
                    os.kill(worker.pid, signal.SIGKILL)
                    killed.append(state.iteration)

        began = time.perf_counter()
        model = fitted(client, X, n_iter, callback=kill)[0]
        numbers = {
            "kills": len(killed),
            "iterations": int(model.n_iter_),
            "apart": float(abs(model.history_.objective[-1] / J[-1] - 1)),
            "same bits": bool(np.array_equal(np.asarray(model.activations_), H)),
            "seconds": time.perf_counter() - began,
        }
        del model, calm
        time.sleep(1)
        numbers["left behind"] = client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.tasks)
        )
    return numbers


# The model of an iteration --------------------------------------------------------------------


def iteration_seconds(
    numbers: dict[str, Any], T: float, N: float, n: int, link: float
) -> dict[str, float]:
    """Seconds of an iteration on n workers: computing, rounds, bytes through the client's link.

    Computing is measured per bin at N = 100, and its passes grow with N. An iteration is six
    rounds: P and B, four sweeps, sums. Every worker sends its part of P and B (at most two nodes
    of the tree, about), every shard its edges in each sweep; W goes to every worker.
    """
    shards = min(max(16, T * N * 4 / 2**26), 1024)
    per_bin = numbers["speed"]["1"]["wall"] / 10**6 * (N / 100)
    empty = {int(k): v["empty"] for k, v in numbers["rounds"].items()}
    slope = max(0.0, (empty[max(empty)] - empty[1]) / (max(empty) - 1))
    P = 8 * (N * L * K + (L * K) ** 2)
    edges = 8 * 4 * shards * 6 * (L - 1) * K
    return {
        "computing": T * per_bin / n,
        "rounds": 6 * (empty[1] + slope * (n - 1)),
        "link": (n * (2 * P + 4 * N * L * K) + edges) / link,
    }


def model(numbers: dict[str, Any]) -> dict[str, Any]:
    """The predictions."""
    return {
        name: {str(n): iteration_seconds(numbers, BINS, FEATURES, n, link) for n in WORKERS}
        for name, link in LINKS.items()
    }


def workers_at_most(numbers: dict[str, Any], link: float) -> int:
    """The number of workers at which more of them no longer help: what grows meets what shrinks."""
    n = 1
    while True:
        parts = iteration_seconds(numbers, BINS, FEATURES, n, link)
        if parts["computing"] <= parts["rounds"] + parts["link"]:
            return n
        n += max(1, n // 50)


PARTS = {"equality": equality, "speed": speed, "centre": centre, "rounds": rounds, "kills": kills}


TEXT = """# How a cluster scales

Written by `benchmarks/cluster.py --page` from what it measured at commit {commit} on worker
processes of one machine with {cores} cores.

| measured | |
|---|---|
{measured}

## 10⁹ bins × 250

A model of an iteration with K = 5, L = 20. Computing: measured per bin, divided among workers of
one thread each. Six rounds: measured, with what each further worker adds. The client's link: parts
of P and B from every worker, edges of shards, motifs to every worker. Reading the data happens once
and is not in it. Nothing here has run on more than four processes, and a link between machines has
a latency of its own that a loopback has not.

![Seconds of an iteration over the number of workers](../images/scaling.svg)

| link of the client | workers | computing, s | rounds, s | link, s | together, s |
|---|---|---|---|---|---|
{predicted}

It stops scaling where rounds and link, which grow with the number of workers, take as long as the
computing, which shrinks: by this model at about {ends}.
Two things would move that point: sums of P taken among the workers, by a tree of them, so that the
link carries one P and not one for each; and calls that reach workers by a tree. Workers with more
threads do both at once, since there are fewer of them.
"""


def page(numbers: dict[str, Any]) -> str:
    """The page of the docs."""
    one, two = numbers["speed"]["1"], numbers["speed"]["2"]
    equal, killed, centre_ = numbers["equality"], numbers["kills"], numbers["centre"]
    bits = {True: "the same bits", False: "not the same bits"}
    times = {
        kind: ", ".join(f"{1e3 * found[kind]:.1f}" for found in numbers["rounds"].values())
        for kind in ("empty", "full")
    }
    of_two = {kind: f"{one[kind]:.2f}, {two[kind]:.2f}" for kind in ("processor", "wall")}
    ratio = {kind: f"{one[kind] / two[kind]:.2f}" for kind in of_two}
    size = "10⁶ bins × 100, one worker and two"
    measured = {
        "1, 2 and 4 workers": bits[equal["same bits"]],
        "J beside that of `motifold.CNMF`, 20 iterations": f"apart by {equal['apart']:.0e} at most"
        f" (both end by {equal['stop'][0]})",
        f"an iteration of {size}, seconds of the best": f"{of_two['wall']}: {ratio['wall']} times",
        "processor seconds of the busiest worker, the start among them": of_two["processor"],
        f"the centre's own time per iteration at {centre_['shards']} shards": (
            f"{1e3 * centre_['centre']:.1f} ms"
        ),
        f"an empty round to {', '.join(numbers['rounds'])} workers": f"{times['empty']} ms",
        "a round that brings 200 kB from each": f"{times['full']} ms",
        f"{killed['kills']} workers killed in {killed['iterations']} iterations": "it ends, "
        f"{bits[killed['same bits']]}, J apart by {killed['apart']:.0e}, "
        f"{killed['left behind']} tasks left behind",
    }
    predicted = [
        f"| {name} | {n} | {p['computing']:.2f} | {p['rounds']:.2f} | {p['link']:.2f} | "
        f"{sum(p.values()):.2f} |"
        for name, of_link in model(numbers).items()
        for n, p in of_link.items()
    ]
    return TEXT.format(
        cores=numbers["machine"]["cores"],
        commit=numbers["machine"]["commit"],
        ends=" and ".join(
            f"{workers_at_most(numbers, link):,} workers ({name})" for name, link in LINKS.items()
        ),
        measured="\n".join(f"| {what} | {value} |" for what, value in measured.items()),
        predicted="\n".join(predicted),
    )


def draw(numbers: dict[str, Any]) -> None:
    """The picture of the model."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "motifold"
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, of_link), colour in zip(model(numbers).items(), ("#1f77b4", "#d95f02"), strict=True):
        totals = [sum(parts.values()) for parts in of_link.values()]
        axes.plot(WORKERS, totals, "o-", color=colour, label=name)
    ideal = [parts["computing"] for parts in of_link.values()]
    axes.plot(WORKERS, ideal, "k--", linewidth=1, label="computing alone")
    axes.set(xscale="log", yscale="log", ylabel="seconds of an iteration")
    axes.set_xlabel("workers (one thread each)")
    axes.set_xticks(WORKERS, [str(n) for n in WORKERS])
    axes.minorticks_off()
    axes.legend(frameon=False, title="link of the client")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGE, metadata={"Date": None})


def main() -> None:
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    args = parser.parse_args()
    numbers = {} if args.smoke or not NUMBERS.exists() else json.loads(NUMBERS.read_text())
    if not args.page:
        for name in args.parts or PARTS:
            if args.smoke and name == "kills":
                continue  # it needs processes, which take longer to start than all else
            numbers[name] = PARTS[name](args.smoke)
            print(name, json.dumps(numbers[name], default=float), flush=True)
            if not args.smoke:
                numbers["machine"] = harness.machine()
                harness.save(NUMBERS, numbers)
        return
    PAGE.write_text(page(numbers))
    draw(numbers)


if __name__ == "__main__":
    main()
