"""The paper's experiments, run with this package: curves, figures, and a table of its claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from motifold.reproduce.experiments import EXPERIMENTS
from motifold.reproduce.report import finished, write_claims, write_curves
from motifold.reproduce.runs import Plan, RunStore, run_plan

__all__ = ["reproduce"]


def reproduce(
    experiments: Sequence[str],
    out: Path,
    *,
    time_limit: float | None = None,
    seeds: int = 3,
    data_home: Path | None = None,
    tell: Callable[[str], Any] = print,
) -> list[Path]:
    """Run experiments of the paper and write what they show.

    Each finished fit is a file below ``out/runs``; a call that was interrupted goes on from there.

    Parameters
    ----------
    experiments : sequence of {"synthetic", "songbird", "speech"}
        Which of them to run.
    out : path
        Folder for the results; made if it is not there.
    time_limit : float or None, default=None
        Seconds of fitting for each experiment in all. They are divided over its data sets, three
        algorithms in two forms, and the starts. None means 600 for synthetic, 120 for songbird and
        600 for speech: long enough for most verdicts.
    seeds : int, default=3
        Number of random starts.
    data_home : path or None, default=None
        Folder of the recordings, as in ``fetch_songbird``.
    tell : callable, default=print
        Hears what goes on, line by line.

    Returns
    -------
    list of path
        The files: figures, ``curves.csv`` and ``claims.md``. The latter two cover every finished
        experiment in ``out``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from motifold.reproduce import reproduce
    >>> reproduce(["songbird"], Path("results"), time_limit=20)  # doctest: +SKIP
    """
    from motifold.reproduce.figures import draw_figures  # fails at once without matplotlib

    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name in experiments:
        experiment = EXPERIMENTS[name]
        seconds = experiment.time_limit if time_limit is None else time_limit
        plan = Plan(experiment, seeds, seconds)
        recordings = {data.name: data.load(data_home) for data in experiment.data_sets}
        tell(f"{experiment.title}: {plan.n_runs} fits, {seconds:g} s in all.")
        runs = run_plan(plan, RunStore(out, name), recordings)
        written += draw_figures(experiment, runs, recordings, out)
    results = finished(out)
    write_curves(out / "curves.csv", [run for _, runs in results for run in runs])
    write_claims(out / "claims.md", results)
    return [*written, out / "curves.csv", out / "claims.md"]
