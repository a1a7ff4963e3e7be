"""All measurements in one run: the same data, the same starts, rivals interleaved.

``make bench`` (about 15 minutes) or ``make bench-quick`` (under 3); ``--problems`` takes any names
of problems.py. Writes docs/benchmarks.md,
docs/images/benchmark-*.png and benchmarks/results.json; ``--quick`` writes to benchmarks/quick/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from pages import section_of
from problems import Benchmark, load
from rivals import (
    Curve,
    motifold_curve,
    residual_hals_curve,
    sklearn_nmf,
    torchnmf_curve,
)

ROOT = Path(__file__).parents[1]
# The problems that the numbers in the README are about, and the others, with less time for each.
MAIN = ["synthetic-50000", "sparse-50000", "song", "speech"]
OTHERS = [f"{kind}-{T}" for kind in ("synthetic", "sparse") for T in (500, 2500, 10000)]
OTHERS += ["long-motifs", "wide"]


def time_to(curve: Curve, loss: float) -> float:
    """Seconds until the curve is at or below ``loss``; infinite if it never is."""
    return next((seconds for seconds, value in curve if value <= loss), float("inf"))


def warm_up() -> None:
    """Compile every kernel in both shapes of its arguments: not part of any measurement."""
    tiny = Benchmark("tiny", np.ones((60, 5), np.float32), 2, 4)
    for solver in ("mu", "hals", "anls"):
        motifold_curve(tiny, tiny.start(0), 0.05, solver=solver)
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


def against_sklearn(seeds: int) -> list[dict[str, Any]]:
    """L = 1: time to the loss of scikit-learn's NMF(solver="cd") after 100 iterations."""
    rows = []
    for name in ("nmf-tall", "nmf-wide", "nmf-square"):
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


def against_products(sizes: list[int]) -> list[dict[str, float]]:
    """One iteration against the bare products: in a process without torch, whose threads spin."""
    command = [sys.executable, str(ROOT / "benchmarks" / "iteration.py"), "--json", "--samples"]
    command += [str(T) for T in sizes]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(shown)


def memory() -> dict[str, float]:
    """Peak memory beyond X, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def thread_share(rows: list[dict[str, float]], T: float) -> float:
    """Speed-up of an iteration by the second thread, over that of the bare products."""
    one, two = (next(r for r in rows if r["T"] == T and r["threads"] == n) for n in (1, 2))
    return (one["published"] / two["published"]) / (one["products"] / two["products"])


def machine() -> dict[str, Any]:
    """What the numbers belong to."""
    packages = ("numpy", "scipy", "numba", "scikit-learn", "torch", "torchnmf")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": commit,
        **{name: version(name) for name in packages},
    }


def write_table(results: dict[str, Any], path: Path, images: Path) -> None:
    """The page for the docs."""
    info = results["machine"]
    lines = [
        "# Benchmarks",
        "",
        f"Written by `make bench` at commit {info['commit']} on {info['cores']} cores, Python "
        f"{info['python']}, numpy {info['numpy']}, torch {info['torch']}. Single precision, the "
        f"same start for all, compilation excluded, medians over {results['seeds']} starts.",
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
    lines += ["Loss against time, the last of the starts:", ""]
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
    kept = [section for name in ("penalties", "findings") if (section := section_of(page, name))]
    path.write_text("\n".join(lines) + "\n\n" + "\n\n".join(kept).rstrip() + "\n")


def _torchnmf_row(row: dict[str, Any]) -> str:
    speedups = " | ".join(f"{row[f'speedup_{s}']:.3g}×" for s in ("hals", "anls", "mu"))
    losses = " | ".join(f"{row[f'loss_{s}']:.4f}" for s in ("hals", "anls", "mu"))
    return f"| {row['problem']} | {row['rival_loss']:.4f} | {speedups} | {losses} |"


def draw(results: dict[str, Any], folder: Path) -> None:
    """Loss against time, one picture per problem."""
    from matplotlib.figure import Figure

    colours = {"torchnmf": "#888888", "hals": "#0072B2", "anls": "#009E73", "mu": "#D55E00"}
    for row in results["torchnmf"]:
        figure = Figure(figsize=(5, 3.2), layout="constrained")
        axes = figure.add_subplot()
        for name, curve in row["curves"].items():
            seconds, losses = np.array(curve).T
            label = name if name == "torchnmf" else f"motifold {name.upper()}"
            axes.semilogx(np.maximum(seconds, 1e-2), losses, label=label, color=colours[name])
        axes.set(xlabel="seconds", ylabel="relative loss", title=row["problem"])
        axes.legend()
        figure.savefig(folder / f"benchmark-{row['problem']}.png", dpi=110)


def main() -> None:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    quick = options.quick
    names = options.problems or (["synthetic-2500", "song"] if quick else MAIN)
    seeds = options.seeds or (1 if quick else 3)
    seconds = options.seconds or (5.0 if quick else 30.0)
    warm_up()
    results = {
        "machine": machine(),
        "seeds": seeds,
        "seconds": seconds,
        "torchnmf": against_torchnmf(names, seeds, seconds),
        "others": [] if quick or options.problems else against_torchnmf(OTHERS, 1, 6.0),
        "residual": against_residual_hals(
            "synthetic-2500" if quick else "synthetic-50000", seconds if quick else 60.0
        ),
        "sklearn": against_sklearn(seeds),
        "iteration": against_products([10000] if quick else [50000, 400000]),
        "memory": {} if quick else memory(),
    }
    folder = ROOT / "benchmarks" / "quick" if quick else ROOT / "docs"
    images = folder if quick else folder / "images"
    folder.mkdir(exist_ok=True)
    write_table(results, folder / "benchmarks.md", images)
    draw(results, images)
    path = (folder if quick else ROOT / "benchmarks") / "results.json"
    path.write_text(json.dumps(results, indent=1, default=float))
    print(f"written: {folder / 'benchmarks.md'}, {path}")


if __name__ == "__main__":
    main()
