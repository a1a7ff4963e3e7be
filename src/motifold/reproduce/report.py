"""What a reproduction leaves to read: the table of claims and the file of all curves."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from motifold.files import versions, write_whole
from motifold.reproduce.claims import RULES, claims_of
from motifold.reproduce.experiments import EXPERIMENTS, Experiment
from motifold.reproduce.measures import NEAR, Runs, near_loss, time_to
from motifold.reproduce.runs import ACCELERATIONS, ALGORITHMS, Plan, Run, RunStore

_COLUMNS = ("experiment", "data", "algorithm", "acceleration", "seed", "iteration", "seconds")
_INTRODUCTION = f"""\
Every algorithm ran as published (`acceleration=None`) and accelerated, from the same random
starts; claims are judged by the published form, which is the paper's. *Nearly converged* means
that {NEAR:.0%} of the way from the first loss to the last of that fit is done; a factor is the
median over starts of the time that one algorithm needs to get to where the other has nearly
converged. "Too short to tell" means that an algorithm the verdict needs was not nearly converged
in half of its time, or that MU did not arrive and the factor is but a bound: give a longer
`--time-limit`.

Bear in mind that the MU of this package is not the paper's: it works on the same small statistics
as HALS and ANLS (the tables have the cost of one iteration), and so is far faster than an MU that
forms the reconstruction again and again. A verdict *changed* means that the claim's direction is
right, but not its size. The paper's own recording of speech was never published; spoken digits of
the same shape stand in.
"""


def finished(out: Path) -> list[tuple[Plan, list[Run]]]:
    """The experiments in the folder all of whose fits are there."""
    found = []
    for experiment in EXPERIMENTS.values():
        store = RunStore(out, experiment.name)
        plan = store.plan(experiment)
        runs = store.load_all(plan) if plan else []
        if plan and len(runs) == plan.n_runs:
            found.append((plan, runs))
    return found


def write_curves(path: Path, runs: Sequence[Run]) -> None:
    """All curves in one CSV file, a row for each iteration."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, "loss"])
    for run in runs:
        key = (run.experiment, run.data, run.algorithm, run.acceleration, run.seed)
        for iteration, seconds, loss in zip(run.iteration, run.seconds, run.loss, strict=True):
            writer.writerow([*key, iteration, f"{seconds:.6f}", f"{loss:.9g}"])
    write_whole(path, text.getvalue())


def write_claims(path: Path, results: Sequence[tuple[Plan, list[Run]]]) -> None:
    """The table of claims, and of the times behind it, in Markdown."""
    parts = [
        "# The paper's claims, and what was measured\n",
        _INTRODUCTION,
        RULES,
        "",
        _machine(),
        "",
    ]
    for plan, runs in results:
        parts += [f"## {plan.experiment.title}\n", _how(plan), ""]
        rows = [
            (c.claim, c.measured, str(c.verdict)) for c in claims_of(plan.experiment.name, runs)
        ]
        parts += [*_table(("the paper", "measured here", "verdict"), rows), ""]
        parts += [_caption(), "", *_times(plan.experiment, runs), ""]
    write_whole(path, "\n".join(parts))


def _machine() -> str:
    found = versions(["numpy"])
    return (
        f"Measured on {os.cpu_count()} cores, Python {found['python']}, numpy {found['numpy']}, "
        "double precision; compilation is not counted."
    )


def _how(plan: Plan) -> str:
    times = ", ".join(
        f"{data.title} {plan.seconds_each(data):.2g} s" for data in plan.experiment.data_sets
    )
    starts = "one random start" if plan.seeds == 1 else f"{plan.seeds} random starts"
    return f"From {starts}; {plan.time_limit:g} s of fitting in all, which gives each fit: {times}."


def _caption() -> str:
    return (
        "Median seconds to where HALS, as published, has nearly converged (- where that was not "
        "reached in half of the starts or more), and median loss at the end:"
    )


def _times(experiment: Experiment, runs: Sequence[Run]) -> list[str]:
    """Seconds and final loss of each algorithm in both forms, a row for each data set."""
    variants = [(name, form) for form in ACCELERATIONS for name in ALGORITHMS]
    rows = []
    for data in experiment.data_sets:
        fits = Runs([run for run in runs if run.data == data.name])
        targets = [near_loss(run) for run in fits.of("HALS")]
        cells = [data.title]
        for variant in variants:
            of = fits.of(*variant)
            seconds = median(time_to(*pair) for pair in zip(of, targets, strict=True))
            shown = f"{seconds:.2g} s" if seconds < float("inf") else "-"
            cells.append(f"{shown}, {median(float(run.loss[-1]) for run in of):.4f}")
        rows.append(tuple(cells))
    titles = [name if form == "published" else f"{name} accelerated" for name, form in variants]
    return _table(("data", *titles), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]
