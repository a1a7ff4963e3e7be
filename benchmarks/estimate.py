"""How long will it take: ``python benchmarks/estimate.py sizes|predicted [NAME …] [--page]``.

``sizes`` measures seconds of an iteration and of a whole fit against the size of the problem, with
one and with two threads. ``predicted`` compares ``CNMF.estimate`` with what was measured after it,
on the benchmarks' problems. Rows are added to estimate.json, so that a part can be measured by
itself; ``--page`` writes the page docs/how-to/how-long.md from it and measures nothing.
"""

from __future__ import annotations

import json
import re
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import harness
import numpy as np
import problems
from scipy.sparse import csr_array

from motifold import CNMF

RESULTS = harness.ROOT / "benchmarks" / "estimate.json"
PAGE = harness.ROOT / "docs" / "how-to" / "how-long.md"
GPU = harness.ROOT / "benchmarks" / "gpu.json"
# Features, motifs, lags, and the numbers of bins.
SIZES = {
    "250-5-20": (250, 5, 20, (10**3, 10**4, 50_000, 10**5, 10**6)),
    "30-3-20": (30, 3, 20, (10**3, 10**4, 10**5, 10**6, 10**7)),
    "1000-10-20": (1000, 10, 20, (10**3, 10**4, 10**5)),
    "100-20-50": (100, 20, 50, (10**3, 10**4, 10**5)),
}
THREADS = (1, 2)
# Seconds after which a fit is broken off that has shown what an iteration takes; of a prediction.
LIMIT, LONG = 20.0, 150.0
LEAST = 8
# What is predicted beside the problems themselves: name → problem, parameters, what is done to X.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sparse-10000, Kullback-Leibler": ("sparse-10000", {"beta_loss": "kullback-leibler"}),
    "sparse-10000, MU": ("sparse-10000", {"solver": "mu"}),
    "song, ANLS": ("song", {"solver": "anls"}),
    "sparse-10000, a tenth missing": ("sparse-10000", {}),
    "sparse-10000, entries below 1 zero, sparse": ("sparse-10000", {}),
    "sparse-10000, double precision": ("sparse-10000", {}),
    "sparse-10000, five starts": ("sparse-10000", {"n_init": 5}),
}
PLAIN = (
    *(f"{kind}-{T}" for kind in ("synthetic", "sparse") for T in (500, 2500, 10000, 50000)),
    "song",
    "neural",
    "speech",
    "long-motifs",
    "wide",
    "nmf-tall",
    "nmf-wide",
    "nmf-square",
)


class Watch:
    """A callback that notes when iterations ended, and may end the fit."""

    def __init__(self, limit: float) -> None:
        self.limit, self.noted = limit, [(0, 0.0)][:0]

    def __call__(self, state: Any) -> bool:
        self.noted.append((state.iteration, state.seconds))
        return len(self.noted) > LEAST and state.seconds > self.limit

    @property
    def iteration(self) -> float:
        """Seconds of one, the median."""
        count, when = np.array(self.noted).T
        return float(statistics.median(np.diff(when) / np.diff(count)))


def fitted(model: CNMF, X: Any, limit: float, **given: Any) -> dict[str, Any]:
    """Seconds of an iteration and of the fit, the latter None where it was broken off."""
    watch = Watch(limit)
    model.set_params(callback=watch)
    began = time.perf_counter()
    model.fit(X, **given)
    seconds = time.perf_counter() - began
    ended = model.stop_reason_ != "callback"
    model.set_params(callback=None)
    return {
        "iteration": watch.iteration,
        "fit": seconds if ended else None,
        "iterations": model.n_iter_ if ended else None,
    }


def sizes(name: str, smoke: bool) -> list[dict[str, Any]]:
    """Rows of one shape."""
    shape, _, only = name.partition(":")
    N, K, L, all_T = SIZES[shape]
    rows = []
    for T in (500,) if smoke else (int(only),) if only else all_T:
        X, *_ = problems.planted(T, N, K, L)
        for threads in THREADS:
            model = CNMF(K, L, n_jobs=threads, random_state=0)
            row = {"T": T, "N": N, "K": K, "L": L, "threads": threads}
            rows.append(row | fitted(model, X, 0.2 if smoke else LIMIT))
            print(rows[-1], flush=True)
    return rows


def problem_of(name: str) -> tuple[problems.Benchmark, Any, dict[str, Any], dict[str, Any]]:
    """The problem, its data, parameters, and what else is given to ``fit``."""
    base, parameters = VARIANTS.get(name, (name, {}))
    benchmark = problems.load(base)
    X: Any = benchmark.X
    given: dict[str, Any] = {}
    if "missing" in name:
        given["mask"] = np.random.default_rng(0).random(X.shape) > 0.1
    elif name.endswith("sparse"):
        X = csr_array(np.where(X < 1, 0, X))
    elif "double" in name:
        X = X.astype(np.float64)
    return benchmark, X, parameters, given


def predicted(name: str, smoke: bool) -> dict[str, Any]:
    """A row: what ``estimate`` says, and what came."""
    benchmark, X, parameters, given = problem_of(name)
    model = CNMF(benchmark.K, benchmark.L, random_state=0, **parameters)
    began = time.perf_counter()
    told = model.estimate(X, **given)
    seconds = time.perf_counter() - began
    found = fitted(model, X, 0.2 if smoke else LONG, **given)
    row = {"problem": name, "took": seconds, "told iteration": told.iteration_seconds}
    row |= {"told fit": told.fit_seconds, "told iterations": told.n_iter, **found}
    print(row, flush=True)
    return row


def kept() -> dict[str, Any]:
    """What has been measured so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(part: str, rows: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> None:
    """Add rows, in place of older ones of the same thing."""
    found, new = kept(), {key(row): row for row in rows}
    machine = harness.machine()
    before = found.get(part, {})
    old = [row for row in before.get("rows", []) if key(row) not in new]
    for row in old:  # of an earlier commit
        row.setdefault("commit", before["machine"]["commit"])
    added = [row | {"commit": machine["commit"]} for row in rows]
    about = {"machine": machine, "date": time.strftime("%Y-%m-%d")}
    harness.save(RESULTS, found | {part: {"rows": [*old, *added], **about}})


def commits(part: dict[str, Any]) -> str:
    """The commits that its rows were measured at."""
    last = part["machine"]["commit"]
    names = dict.fromkeys(row.get("commit", last) for row in part["rows"])
    return f"commit{'s' * (len(names) > 1)} {', '.join(names)}"


# --- the page -------------------------------------------------------------------------------------


def sixteen() -> dict[tuple[int, ...], float]:
    """Seconds of an iteration with 16 threads, of the page of benchmarks, by T, N, K, L."""
    section = harness.section_of(harness.PAGE.read_text(), "threads")
    shapes = {"synthetic-50000": (50_000, 250, 5, 20), "million": (10**6, 250, 5, 20)}
    found = {}
    for name, shape in shapes.items():
        match = re.search(rf"^\| {name} \| 16 \| [\d.]+ \| ([\d.]+) \|", section, re.MULTILINE)
        if match is not None:
            found[shape] = 1e-3 * float(match[1])
    return found


def on_gpu() -> dict[tuple[int, ...], float]:
    """The same on the GPU, of gpu.json."""
    rows = json.loads(GPU.read_text())["iterations"]["rows"]
    return {(row["T"], 250, 5, 20): 1e-3 * row["auto, all"] for row in rows}


def lines(found: dict[str, Any]) -> list[str]:
    """The tables of the page."""
    return [*_size_lines(found["sizes"]), "", *_predicted_lines(found["predicted"])]


def _table_of_sizes(part: dict[str, Any]) -> list[tuple[tuple[int, ...], list[float | None]]]:
    """Rows by size: seconds of an iteration by what has computed it, and of fits."""
    many, gpu = sixteen(), on_gpu()
    rows = {tuple(row[c] for c in ("T", "N", "K", "L", "threads")): row for row in part["rows"]}
    shapes = {shape[:4] for shape in rows} | set(many) | set(gpu)
    found = []
    for shape in sorted(shapes, key=lambda s: (s[1:], s[0])):
        one, two = (rows.get((*shape, threads), {}) for threads in THREADS)
        numbers = [one.get("iteration"), two.get("iteration"), many.get(shape), gpu.get(shape)]
        found.append((shape, [*numbers, one.get("fit"), two.get("fit")]))
    return found


def _drawn_sizes(table: list[tuple[tuple[int, ...], list[float | None]]]) -> list[str]:
    """The numbers as a picture, whose program has them in it."""
    names = ("1 core", "2 cores", "16 cores", "GPU", "a fit, 1 core", "a fit, 2 cores")
    curves = []
    for features in (250, 30):
        for i, name in enumerate(names):
            rows = [(shape[0], cells[i]) for shape, cells in table if shape[1] == features]
            points = [(T, float(f"{seconds:.2g}")) for T, seconds in rows if seconds is not None]
            if len(points) > 1:
                curves.append(f"    ({features}, {name!r}, {points}),")
    return ["```{picture} sizes", *_PICTURE.format(curves="\n".join(curves)).splitlines(), "```"]


_PICTURE = """\
:alt: Seconds against time bins, on logarithmic axes: nearly straight lines, the GPU's far below
:hidden:
from matplotlib.figure import Figure

curves = [
{curves}
]
inks = {{"1 core": "C0", "2 cores": "C1", "16 cores": "C2", "GPU": "C3"}}
figure = Figure(figsize=(9, 3.6), layout="constrained")
axes = dict(zip((False, True), figure.subplots(1, 2, sharex=True), strict=True))
for features, name, points in curves:
    machine = name.removeprefix("a fit, ")
    axes[name != machine].loglog(
        *zip(*points, strict=True), "o-" if features == 250 else "s:", color=inks[machine],
        markersize=4, label=f"{{machine}}, {{features}} features",
    )
for fit, axis in axes.items():
    axis.set(xlabel="time bins", ylabel="seconds", title="a whole fit" if fit else "an iteration")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize="small")
figure
"""


def _size_lines(part: dict[str, Any]) -> list[str]:
    table = _table_of_sizes(part)
    cells = [[*(f"{n:,}" for n in shape), *map(_seconds, row)] for shape, row in table]
    header = ["T", "N", "K", "L", "1 core", "2 cores", "16 cores", "GPU"]
    return [
        "## Seconds against size",
        "",
        f"Measured by `benchmarks/estimate.py sizes` on {part['date']} at {commits(part)}, on "
        f"{part['machine']['cores']} cores: made-up recordings "
        "(sparse activations of narrow motifs, noise), single precision, default settings. "
        "Of 16 cores and the GPU (an H200, which has these cores) the iterations of the "
        "[page of benchmarks](../benchmarks.md), on data of the same shapes. "
        f"A dash: not measured; of a fit also that it takes longer than {LIMIT:.0f} s.",
        "",
        *harness.table(
            [*header, "a fit, 1 core", "a fit, 2 cores"],
            cells,
            words=0,
        ),
        "",
        *_drawn_sizes(table),
        "",
        "*The same numbers. From some thousand bins on, time grows as they do.*",
    ]


def _predicted_lines(part: dict[str, Any]) -> list[str]:
    order = [*PLAIN, *VARIANTS]
    rows = sorted(part["rows"], key=lambda row: order.index(row["problem"]))
    cells, within = [], {"iteration": 0, "fit": 0}
    for row in rows:
        ratios = {}
        for name in within:
            measured = row[name]
            ratios[name] = None if measured is None else row[f"told {name}"] / measured
            within[name] += ratios[name] is not None and 0.5 <= ratios[name] <= 2
        cell = [row["problem"]]
        for name in within:
            ratio = "—" if ratios[name] is None else f"{ratios[name]:.2f}"
            cell += [_seconds(row[f"told {name}"]), _seconds(row[name]), ratio]
        cells.append([*cell, row["told iterations"], row["iterations"] or "—"])
    n, ended = len(rows), sum(row["fit"] is not None for row in rows)
    outside = [row["problem"] for row in rows if not _near(row)]
    missed = f" Outside: {'; '.join(outside)}." if outside else ""
    return [
        "## How good is the estimate",
        "",
        f"Measured by `benchmarks/estimate.py predicted` on {part['date']} at {commits(part)}, "
        f"{part['machine']['cores']} threads: `estimate(X)`, then the fit itself, one random start "
        f"of each. Within a factor of two: "
        f"{within['iteration']} of {n} iterations, {within['fit']} of {ended} "
        f"fits.{missed} An estimate took "
        f"{statistics.median(row['took'] for row in rows):.1f} s (median).",
        "",
        *harness.table(
            [
                "problem",
                "iteration, told",
                "measured",
                "ratio",
                "fit, told",
                "measured",
                "ratio",
                "iterations, told",
                "made",
            ],
            cells,
        ),
    ]


def _near(row: dict[str, Any]) -> bool:
    pairs = [(row[f"told {name}"], row[name]) for name in ("iteration", "fit")]
    return all(measured is None or 0.5 <= told / measured <= 2 for told, measured in pairs)


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s" if seconds < 99.5 \
        else f"{seconds:.0f} s"  # fmt: skip


def main() -> None:
    """Measure what is asked for; write the page."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("part", nargs="?", choices=("sizes", "predicted"))
    parser.add_argument("names", nargs="*", help="shapes (250-5-20, 250-5-20:1000) or problems")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    CNMF(2, 5, max_iter=3).fit(np.random.default_rng(0).random((900, 9), np.float32))  # compiles
    if options.smoke:
        sizes("250-5-20", True)
        predicted("synthetic-500", True)
        return
    if options.part == "sizes":
        for name in options.names or SIZES:
            rows = sizes(name, False)
            keep(
                "sizes",
                rows,
                lambda row: [row[c] for c in ("T", "N", "K", "L", "threads")].__str__(),
            )
    if options.part == "predicted":
        for name in options.names or (*PLAIN, *VARIANTS):
            keep("predicted", [predicted(name, False)], lambda row: row["problem"])
    if options.page:
        harness.write_section("estimate", lines(kept()), PAGE)


if __name__ == "__main__":
    main()
