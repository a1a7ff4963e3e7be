"""All measurements in one run: the same data, the same starts, rivals interleaved.

``make bench`` (about 15 minutes) or ``make bench-quick`` (under 3); ``--problems`` takes any names
of problems.py. Writes docs/benchmarks.md (which page.py writes anew from the same numbers),
docs/images/benchmark-*.png and benchmarks/results.json; ``--quick`` writes to benchmarks/quick/ and
``--smoke`` to a temporary folder, without torchnmf if it is not installed.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import harness
import numpy as np
from harness import ROOT, time_to
from problems import ABOUT, Benchmark, load
from rivals import (
    motifold_curve,
    residual_hals_curve,
    sklearn_nmf,
    torchnmf_curve,
)

# The problems that the numbers in the README are about, and the others, with less time for each.
MAIN = ["synthetic-50000", "sparse-50000", "song", "speech"]
OTHERS = [f"{kind}-{T}" for kind in ("synthetic", "sparse") for T in (500, 2500, 10000)]
OTHERS += ["long-motifs", "wide"]
NMF = ["nmf-tall", "nmf-wide", "nmf-square"]
_POINTS = 200  # of a curve that is kept: as many as a picture shows


def warm_up() -> None:
    """Compile every kernel in both shapes of its arguments: not part of any measurement."""
    tiny = Benchmark("tiny", np.ones((60, 5), np.float32), 2, 4)
    for solver in ("mu", "hals", "anls"):
        motifold_curve(tiny, tiny.start(0), 0.05, solver=solver)
    if find_spec("torchnmf"):
        torchnmf_curve(tiny, tiny.start(0), 0.05)


def against_torchnmf(names: list[str], seeds: int, seconds: float) -> list[dict[str, Any]]:
    """Time to the loss that torchnmf has after ``seconds``, for each start; and who gets lowest."""
    rows = []
    for name in names:
        problem = load(name)
        ratios, losses, best, curves = [], [], [], {}
        for seed in range(seeds):
            start = problem.start(seed)
            rival = torchnmf_curve(problem, start, seconds)
            ours = {
                solver: motifold_curve(problem, start, seconds / 6, solver=solver)
                for solver in ("hals", "anls", "mu")
            }
            losses.append(rival[-1][1])
            ratios.append({s: rival[-1][0] / time_to(c, rival[-1][1]) for s, c in ours.items()})
            best.append({s: c[-1][1] for s, c in ours.items()})
            curves = {"torchnmf": rival, **ours}
        row = {"problem": name, "rival_loss": median(losses), "seconds": seconds, "curves": curves}
        for solver in ("hals", "anls", "mu"):
            row[f"speedup_{solver}"] = median(ratio[solver] for ratio in ratios)
            row[f"loss_{solver}"] = median(value[solver] for value in best)
        rows.append(row)
        print({k: v for k, v in row.items() if k != "curves"}, flush=True)
    return rows


def against_residual_hals(name: str, seconds: float) -> dict[str, Any]:
    """Time to the loss that the paper's own form of HALS reaches."""
    problem = load(name)
    start = problem.start(0)
    rival = residual_hals_curve(problem, start, seconds)
    ours = motifold_curve(problem, start, seconds, until=rival[-1][1])
    row = {
        "problem": name,
        "rival_seconds": rival[-1][0],
        "rival_iterations": len(rival) - 1,
        "rival_loss": rival[-1][1],
        "speedup": rival[-1][0] / time_to(ours, rival[-1][1]),
    }
    print(row, flush=True)
    return row


def against_sklearn(names: list[str], seeds: int) -> list[dict[str, Any]]:
    """L = 1: time to the loss of scikit-learn's NMF(solver="cd") after 100 iterations."""
    rows = []
    for name in names:
        problem = load(name)
        ratios = []
        for seed in range(seeds):
            start = problem.start(seed)
            seconds, loss = sklearn_nmf(problem, start, 100)
            ours = motifold_curve(problem, start, 20 * seconds, until=loss)
            ratios.append(seconds / time_to(ours, loss))
        rows.append({"problem": name, "speedup": median(ratios)})
        print(rows[-1], flush=True)
    return rows


def against_products(sizes: list[int], smoke: bool = False) -> list[dict[str, float]]:
    """One iteration against the bare products: in a process without torch, whose threads spin."""
    command = [sys.executable, str(ROOT / "benchmarks" / "iteration.py"), "--json", "--samples"]
    command += [str(T) for T in sizes]
    command += ["--smoke"] if smoke else []
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(shown)


def memory(smoke: bool = False) -> dict[str, float]:
    """Peak memory beyond X, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py")]
    command += ["--smoke"] if smoke else []
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def thread_share(rows: list[dict[str, float]], T: float) -> float:
    """Speed-up of an iteration by the second thread, over that of the bare products."""
    one, two = (next(r for r in rows if r["T"] == T and r["threads"] == n) for n in (1, 2))
    return (one["published"] / two["published"]) / (one["products"] / two["products"])


def write_table(results: dict[str, Any], path: Path, images: Path) -> None:
    """The page for the docs."""
    info = results["machine"]
    lines = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {results['date']} at commit {info['commit']} on "
        f"{info['cores']} cores, Python {info['python']}, numpy {info['numpy']}, torch "
        f"{info.get('torch')}. Single precision, the same start for all, compilation excluded, "
        f"medians over {results['seeds']} starts.",
        "",
        "Other sections are of other runs, and say of which commit. `make bench-page` writes all "
        "of the page anew from the numbers that were kept (`benchmarks/*.json`), and measures "
        "nothing.",
        "",
        "## The problems",
        "",
        *harness.table(("name", "what it is", "T × N", "K", "L"), ABOUT, words=2),
        "",
        "## Against torchnmf (NMFD, two threads)",
        "",
        f"How many times sooner we reach the loss it has after {results['seconds']:g} s, and the "
        f"lowest loss we reach in {results['seconds'] / 6:g} s.",
        "",
        "| problem | torchnmf's loss | HALS | ANLS | MU (ours) | HALS ends at | ANLS | MU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [_torchnmf_row(row) for row in results["torchnmf"]]
    lines += ["", "0× means that the loss was not reached in a sixth of torchnmf's time.", ""]
    if results["others"]:
        seconds = results["others"][0]["seconds"]
        lines += [
            f"The other problems, one start each, {seconds:g} s for torchnmf and a sixth for us:",
            "",
            "| problem | torchnmf's loss | HALS | ANLS | MU (ours) | HALS ends at | ANLS | MU |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *(_torchnmf_row(row) for row in results["others"]),
            "",
        ]
    lines += [f"Loss against time, the last of the starts, at commit {info['commit']}:", ""]
    prefix = images.relative_to(path.parent).as_posix()
    for row in results["torchnmf"]:
        name = row["problem"]
        lines.append(f"![{name}]({prefix}/benchmark-{name}.png)")
    lines.append("")
    row = results["residual"]
    lines += [
        "## Against the paper's own form of HALS (residual kept, compiled, one thread)",
        "",
        f"On {row['problem']}: {row['rival_iterations']} iterations in {row['rival_seconds']:.1f} "
        f"s reach a loss of {row['rival_loss']:.4f}; we reach it {row['speedup']:.3g} times "
        "sooner.",
        "",
        '## L = 1, against scikit-learn\'s NMF(solver="cd") after 100 iterations',
        "",
        "| problem | times sooner |",
        "|---|---:|",
        *(f"| {row['problem']} | {row['speedup']:.3g}× |" for row in results["sklearn"]),
        "",
        "## One iteration",
        "",
        "Both data passes, one sweep of each factor, Grams, loss and KKT residual, against the two "
        "bare matrix products of the same shapes (milliseconds).",
        "",
        "| T | threads | products | iteration | ratio | accelerated iteration |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for row in results["iteration"]:
        lines.append(
            f"| {row['T']} | {row['threads']} | {row['products']:.0f} | {row['published']:.0f} | "
            f"{row['published'] / row['products']:.2f} | {row['accelerated']:.0f} |"
        )
    sizes = dict.fromkeys(row["T"] for row in results["iteration"])
    lines += [
        "",
        "The second thread brings so much of what it brings the bare products: "
        + ", ".join(f"{thread_share(results['iteration'], T):.2f} at T = {T}" for T in sizes)
        + ".",
    ]
    if held := results["memory"]:
        lines += [
            "",
            f"Peak memory of a fit with T = {held['T']} beyond X itself ({held['X']:.0f} MB): "
            f"{held['extra']:.0f} MB.",
        ]
    page = path.read_text() if path.exists() else ""
    # Sections of other scripts stay.
    kept = [harness.section_of(page, name) for name in harness.section_names(page)]
    path.write_text("\n".join(lines) + "\n\n" + "\n\n".join(kept).rstrip() + "\n")


def thinned(curve: harness.Curve) -> harness.Curve:
    """The points of a curve that a logarithmic axis of time has room for, and its ends."""
    if len(curve) <= _POINTS:
        return curve
    steps = np.unique(np.geomspace(1, len(curve), _POINTS).astype(int)) - 1
    return [curve[i] for i in steps]


def _torchnmf_row(row: dict[str, Any]) -> str:
    speedups = " | ".join(f"{row[f'speedup_{s}']:.3g}×" for s in ("hals", "anls", "mu"))
    losses = " | ".join(f"{row[f'loss_{s}']:.4f}" for s in ("hals", "anls", "mu"))
    return f"| {row['problem']} | {row['rival_loss']:.4f} | {speedups} | {losses} |"


def draw(results: dict[str, Any], folder: Path) -> None:
    """Loss against time, one picture per problem."""
    from matplotlib.figure import Figure

    colours = {"torchnmf": "#888888", "hals": "#0072B2", "anls": "#009E73", "mu": "#D55E00"}
    for row in results["torchnmf"]:
        if "curves" not in row:  # of a run that did not keep them: its pictures stay
            continue
        figure = Figure(figsize=(5, 3.2), layout="constrained")
        axes = figure.add_subplot()
        for name, curve in row["curves"].items():
            seconds, losses = np.array(curve).T
            label = name if name == "torchnmf" else name.upper()
            axes.semilogx(np.maximum(seconds, 1e-2), losses, label=label, color=colours[name])
        title = f"{row['problem']} ({results['machine']['commit']})"
        axes.set(xlabel="seconds", ylabel="relative loss")
        axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(title, fontsize="medium")
        # Above the axes, where no curve is.
        axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
        figure.savefig(folder / f"benchmark-{row['problem']}.png", dpi=110)


def measure_all(
    names: list[str], seeds: int, seconds: float, quick: bool, all_problems: bool
) -> Any:
    """Everything for the page."""
    return {
        "machine": harness.machine(),
        "date": datetime.date.today().isoformat(),
        "seeds": seeds,
        "seconds": seconds,
        "torchnmf": against_torchnmf(names, seeds, seconds),
        "others": against_torchnmf(OTHERS, 1, 6.0) if all_problems else [],
        "residual": against_residual_hals(
            "synthetic-2500" if quick else "synthetic-50000", seconds if quick else 60.0
        ),
        "sklearn": against_sklearn(NMF, seeds),
        "iteration": against_products([10000] if quick else [50000, 400000]),
        "memory": {} if quick else memory(),
    }


def measure_tiny() -> dict[str, Any]:
    """The same on next to nothing: to see that all of it runs."""
    names = ["synthetic-500"] if find_spec("torchnmf") else []
    return {
        "machine": harness.machine(),
        "date": datetime.date.today().isoformat(),
        "seeds": 1,
        "seconds": 0.3,
        "torchnmf": against_torchnmf(names, 1, 0.3),
        "others": [],
        "residual": against_residual_hals("synthetic-500", 0.1),
        "sklearn": against_sklearn(["nmf-square"], 1),
        "iteration": against_products([400], smoke=True),
        "memory": memory(smoke=True),
    }


def main() -> None:
    """Measure, write, draw."""
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    quick = options.quick
    warm_up()
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            write(measure_tiny(), Path(folder), Path(folder), Path(folder))
        return
    names = options.problems or (["synthetic-2500", "song"] if quick else MAIN)
    seeds = options.seeds or (1 if quick else 3)
    seconds = options.seconds or (5.0 if quick else 30.0)
    results = measure_all(names, seeds, seconds, quick, not (quick or options.problems))
    if quick:
        folder = ROOT / "benchmarks" / "quick"
        folder.mkdir(exist_ok=True)
        write(results, folder, folder, folder)
    else:
        write(results, ROOT / "docs", ROOT / "docs" / "images", ROOT / "benchmarks")


def write(results: dict[str, Any], pages: Path, images: Path, numbers: Path) -> None:
    """The page, the pictures and the numbers."""
    write_table(results, pages / "benchmarks.md", images)
    draw(results, images)
    for row in results["torchnmf"]:  # of these there are pictures, which can so be drawn again
        row["curves"] = {name: thinned(curve) for name, curve in row["curves"].items()}
    for row in results["others"]:
        row.pop("curves", None)
    harness.save(numbers / "results.json", results)


if __name__ == "__main__":
    main()
