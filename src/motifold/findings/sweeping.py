"""The sweep over parameters and seeds, in parallel processes, resumable."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from motifold.data.given import takes_recordings
from motifold.data.validation import check_masked_recording
from motifold.engines.cpu.threads import free_cores
from motifold.engines.cuda import sharing
from motifold.engines.dask.cluster import completed_of
from motifold.files import fingerprint_of_all
from motifold.findings.agreement import Dissimilarities
from motifold.findings.choices import (
    Choice,
    Crossover,
    choose_n_components,
    choose_n_lags,
    evidence_notes,
    find_crossover,
    range_notes,
)
from motifold.findings.grid import Point, points_of
from motifold.findings.processes import end_with
from motifold.findings.store import RunStore, run_key
from motifold.findings.table import Table
from motifold.findings.trial import Run, Settings, SweepData, Test, run_trials
from motifold.fit.progress import work_bar
from motifold.prepare import Preparation

# Entries of X up to which a GPU is shared by processes, of those at most, and runs that are worth
# starting one for: on an H200 ten take 1.6 s where four take 2.6; each takes seconds to start.
_SMALL, _PROCESSES_OF_GPU, _WORTH_A_PROCESS = 2**24, 10, 8
# Runs of one point whose steps are taken as one, at most, and tasks for each process: with one of
# them the last would be waited for.
_RUNS_BESIDE, _TASKS = 16, 2


class Sweep:
    """The runs of a sweep, as tables, and what they suggest.

    Attributes
    ----------
    table : Table
        One row for each run: the parameters of the grid, ``seed``, ``loss`` (relative, of the fit
        of all data), ``x_ortho_cost``, ``block`` (that is held out), ``train_loss`` and
        ``test_error`` (relative, of the fit without that block; with another ``beta_loss`` than
        squared error the held-out deviance, over that of the training data's means),
        ``predicted`` (share of the features' variance over time that is predicted in that block,
        features counting alike),
        ``n_tested`` and ``n_significant`` (motifs, in the held-out block), ``converged``,
        ``n_iter`` and ``dissx`` (mean dissimilarity to the other seeds).
    motifs : Table
        One row for each motif of each run: ``onset`` and ``length`` in lags, ``share`` of the
        data's power (with another ``beta_loss`` than squared error: of X̂).

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(200, 10, 2, 5, activation_probability=0.05, random_state=0).X
    >>> found = motifold.sweep(
    ...     X, n_components=[1, 2], n_lags=5, n_seeds=2, test=None, n_jobs=1, progress=False
    ... )
    >>> len(found.table), len(found.motifs), sorted(found.suggested)
    (4, 6, ['n_components'])
    """

    def __init__(self, table: Table, motifs: Table) -> None:
        self.table = table
        self.motifs = motifs

    def to_pandas(self) -> Any:
        """The table of runs as a ``pandas.DataFrame``."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        told = "".join(f"\n{note}" for note in self.notes)
        by = "".join(f" ({name} by {measure})" for name, measure in self.evidence.items())
        return (
            f"Sweep of {len(self.table)} runs, suggested: {self.suggested}{by}{told}\n"
            f"{self.table!r}"
        )

    @cached_property
    def suggested(self) -> dict[str, Any]:
        """A value for each of n_components, n_lags and x_ortho that varies.

        ``n_components``: 0 if fewer than a quarter of the runs have a motif that is significant in
        the block held out. Else the smallest beyond which motifs are not worth it: more of them do
        not predict more of the held-out blocks (``predicted``) by the standard error of the
        difference, or do, but each by less than a third of what a motif predicts on average and
        less than two thirds of what was left (or 3 % of all); of the seeds that share a block, the
        one that fitted its training data best counts. Where that may be chance (what is predicted
        by the best does not exceed 0 over the blocks, by a t-test at 5 %, and within the standard
        error more motifs may be worth it), the test error may ask for more: the smallest whose test
        error exceeds the lowest by no more than the standard error of the difference, or 3 % of the
        curve's range. With ``test="entries"`` it decides alone; without held-out data, or with
        several losses, the lowest DISSX does. ``n_lags``: the least that predicts as much of the
        held-out blocks (``predicted``) as the best does, but for the standard error of the
        difference or a tenth of it. Without test errors, the least that is no shorter than the
        motifs found with the most lags (effective length). ``x_ortho``: that nearest to the
        crossover of the two costs. None where a rule finds nothing. ``notes`` says where the end of
        the range was reached, and ``evidence`` which of the rules decided.
        """
        return {name: choice.value for name, choice in self._choices.items()}

    @cached_property
    def evidence(self) -> dict[str, str]:
        """The measure that decided on each suggestion: a column of ``table`` or ``motifs``."""
        return {name: choice.measure for name, choice in self._choices.items()}

    @cached_property
    def _choices(self) -> dict[str, Choice]:
        rules: dict[str, Callable[[], Choice]] = {
            "n_components": lambda: choose_n_components(self.table),
            "n_lags": lambda: choose_n_lags(self.table, self.motifs),
            "x_ortho": lambda: Choice(self.crossover.suggested, "x_ortho_cost"),
        }
        return {
            name: rule()
            for name, rule in rules.items()
            if name in self.table.columns and len(np.unique(self.table[name])) > 1
        }

    @cached_property
    def notes(self) -> list[str]:
        """What to know of the suggestions: one that is the end of the range tried, for example."""
        return evidence_notes(self.table, self._choices) + range_notes(self.table, self.suggested)

    @cached_property
    def crossover(self) -> Crossover:
        """The two normalised costs over ``x_ortho``, and where they cross."""
        if "x_ortho" not in self.table.columns:
            raise ValueError("x_ortho was not part of the sweep.")
        return find_crossover(self.table)


@takes_recordings
def sweep(
    X: Any,
    *,
    n_seeds: int = 10,
    path: str | os.PathLike[str] | None = None,
    test: Test | None = "blocks",
    n_blocks: int = 4,
    n_null: int = 1000,
    alpha: float = 0.05,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    preparation: Preparation | None = None,
    n_jobs: int | None = None,
    device: str | None = None,
    client: Any = None,
    progress: bool = True,
    **grid: Any,
) -> Sweep:
    """Fit X at every point of a grid of parameters, from several seeds, and measure the fits.

    Every run is fitted twice: to all the data, and to the data but one block of time (a block
    for each seed in turn) with ``n_lags`` bins on either side. The second fit is tested: for the
    reconstruction of entries it has not seen, and for motifs that recur in the held-out block
    more sharply than their shuffled copies. Runs go to parallel processes, one thread each.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
    n_seeds : int, default=10
        Runs for each point of the grid.
    path : path or None, default=None
        A file to which finished runs are appended (factors go to a folder beside it). A sweep that
        is called again with the same data and settings does not repeat the runs in it, so it can
        be interrupted, resumed, and enlarged. Damaged runs are told in a warning, and run again;
        a file that is not of this sweep, or that another sweep is working on, is refused and left
        as it is. None keeps all in memory.
    test : {"blocks", "entries"} or None, default="blocks"
        What the test error is measured on: "blocks", the held-out block, each random half of the
        features reconstructed with activations found from the other half; "entries", a random
        tenth of the entries of the training rows, masked in the fit. None: not measured.
    n_blocks : int, default=4
        Number of blocks of time, of which one is held out.
    n_null : int, default=1000
        Shuffled copies of each motif for the test of significance; 0 leaves the test out.
    alpha : float, default=0.05
        Level of that test, for all motifs of a fit together.
    lengths, segments, mask
        As in ``CNMF.fit``. Missing entries count nowhere, but for the test of significance and
        ``x_ortho_cost``, in which they are zero.
    preparation : Preparation or None, default=None
        What is done to X before every fit. What it learns, such as scales, each fit learns from the
        rows that it sees.
    n_jobs : int or None, default=None
        Number of processes; None means all cores. Of those that share a GPU there are as many as
        the size of X suggests: one if it is large, up to ten if it is small, by NVIDIA's
        multi-process service where the system has it; each takes seeds of a point side by side.
        Results do not depend on it (on a GPU but for rounding).
    device : str or None, default=None
        As in ``CNMF``, for every run. A run is known by its other parameters: what was fitted on
        one device is not repeated on another.
    client : distributed.Client or None, default=None
        Of a Dask cluster, whose workers do the runs, each a whole one; ``n_jobs`` is not used then.
    progress : bool, default=True
        Show a progress bar.
    **grid
        Parameters of ``CNMF``: a value, or a list of values to go through.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(400, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> found = motifold.sweep(
    ...     X, n_components=[1, 2, 3], n_lags=8, n_seeds=2, tol=1e-2, n_jobs=1, progress=False
    ... )
    >>> len(found.table), found.suggested
    (6, {'n_components': 2})
    """
    points = points_of(grid)
    signed = all(point.get("allow_negative", False) for point in points)
    arrays, masks = check_masked_recording(X, lengths, segments, mask, nonnegative=not signed)
    if n_seeds < 1:
        raise ValueError(f"n_seeds must be 1 or greater, not {n_seeds}.")
    if test not in ("entries", "blocks", None):
        raise ValueError(f'test must be "entries", "blocks" or None, not {test!r}.')
    data = SweepData.from_arrays(arrays, masks, preparation)
    settings = Settings(test, n_blocks, n_null, alpha)
    known = fingerprint_of_all([*arrays, *(masks or [])])
    if preparation is not None:
        known = f"{known} after: {preparation.describe()}"
    trials = [(point, seed) for point in points for seed in range(n_seeds)]
    alike = {i: Dissimilarities(n_seeds, data.segments) for i in range(len(points))}
    places = {run_key(*trial): divmod(i, n_seeds) for i, trial in enumerate(trials)}
    with (
        RunStore(path, {"data": known, **settings.as_dict()}) as store,
        work_bar(len(trials), "sweep", "run", shown=progress) as bar,
    ):
        todo = [trial for trial in trials if run_key(*trial) not in store]
        bar.update(len(trials) - len(todo))
        if client is None:
            found = _runs(data, todo, settings, n_jobs, device)
        else:
            found = _runs_of_cluster(client, data, todo, settings, device)
        with closing(found) as runs:  # an error ends the workers
            for key, run in runs:
                store.add(key, run)
                bar.update()
                point, seed = places[key]
                alike[point].add(seed, run)  # while others are at work
    return _tabulated(points, n_seeds, store, alike)


def _runs(
    data: SweepData,
    trials: list[tuple[Point, int]],
    settings: Settings,
    n_jobs: int | None,
    device: str | None,
) -> Generator[tuple[str, Run]]:
    """The runs with their keys, as they come."""
    on_gpu = device not in (None, "cpu")
    if n_jobs is None:
        n_jobs = _processes_of_gpu(data, len(trials)) if on_gpu else -1
    n_processes = min(effective_n_jobs(n_jobs), len(trials))
    wanted = 1 if n_processes <= 1 else _TASKS * n_processes
    beside = max(1, -(-len(trials) // wanted))
    tasks = _tasks(trials, min(beside, _RUNS_BESIDE) if on_gpu and data.X.size <= _SMALL else 1)
    if n_processes <= 1:
        for task in tasks:
            yield from _keyed(data, *task, settings, device).handed_over()
        return
    # Large ones first, so that no process is left alone with one at the end.
    tasks = sorted(tasks, key=lambda task: -_size(task[0]))
    shared = sharing.service() if on_gpu else None
    with parallel_config("loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_processes, return_as="generator_unordered")
        parent = os.getpid()
        done = pool(
            delayed(_worked)(parent, shared, data, *task, settings, device) for task in tasks
        )
        with closing(done):
            for ended in done:
                yield from ended.handed_over()


def _tasks(trials: list[tuple[Point, int]], most: int) -> list[tuple[Point, list[int]]]:
    """Points with seeds that are run side by side, ``most`` at once, about as many everywhere."""
    seeds: list[tuple[Point, list[int]]] = []
    for point, seed in trials:
        if not seeds or seeds[-1][0] is not point:
            seeds.append((point, []))
        seeds[-1][1].append(seed)
    return [
        (point, part.tolist())
        for point, of_point in seeds
        for part in np.array_split(of_point, -(-len(of_point) // most))
    ]


def _size(point: Point) -> int:
    """Of a run, by which they are put in order."""
    return point["n_components"] * point["n_lags"]


def _processes_of_gpu(data: SweepData, n_trials: int) -> int:
    """How many processes share a GPU: several where a fit is too small to keep it busy."""
    if data.X.size > _SMALL:
        return 1
    return max(1, min(_PROCESSES_OF_GPU, free_cores(), n_trials // _WORTH_A_PROCESS))


def _runs_of_cluster(
    client: Any,
    data: SweepData,
    trials: list[tuple[Point, int]],
    settings: Settings,
    device: str | None,
) -> Generator[tuple[str, Run]]:
    """The runs with their keys, as they come, from the workers of a cluster."""
    trials = sorted(trials, key=lambda trial: -_size(trial[0]))
    name = f"motifold-sweep-{uuid.uuid4().hex[:8]}"
    (sent,) = client.scatter([data], broadcast=True)
    futures = [
        client.submit(_keyed, sent, *task, settings, device, key=f"{name}-{i}", pure=False)
        for i, task in enumerate(_tasks(trials, 1))
    ]
    try:
        for batch in completed_of(futures):
            yield from batch.result().handed_over()
    finally:
        client.cancel(futures)


def _worked(
    parent: int,
    shared: str | None,
    data: SweepData,
    point: Point,
    seeds: list[int],
    settings: Settings,
    device: str | None,
) -> _Ended:
    """Runs in a process of their own."""
    end_with(parent)
    sharing.join(shared)
    return _keyed(data, point, seeds, settings, device)


@dataclass(frozen=True)
class _Ended:
    """The runs of a task that have ended, by their keys, and what kept the others from it."""

    runs: list[tuple[str, Run]]
    error: BaseException | None = None

    def handed_over(self) -> Generator[tuple[str, Run]]:
        """Those there are; then the error is raised."""
        yield from self.runs
        if self.error is not None:
            raise self.error


def _keyed(
    data: SweepData, point: Point, seeds: list[int], settings: Settings, device: str | None
) -> _Ended:
    runs: list[tuple[str, Run]] = []

    def ended(seed: int, run: Run) -> None:
        runs.append((run_key(point, seed), run))

    try:
        run_trials(data, {**point, "device": device}, seeds, settings, ended)
    except BaseException as error:
        if not runs:
            raise
        return _Ended(runs, error)
    return _Ended(runs)


def _tabulated(
    points: list[Point], n_seeds: int, store: RunStore, alike: dict[int, Dissimilarities]
) -> Sweep:
    records, motifs = [], []
    for i, point in enumerate(points):
        runs = [store[run_key(point, seed)] for seed in range(n_seeds)]
        for seed, run in enumerate(runs):
            alike[i].add(seed, run)
        dissimilarities = alike[i].means
        for seed, (run, dissx) in enumerate(zip(runs, dissimilarities, strict=True)):
            key = {**point, "seed": seed}
            # Runs of stores that are older do not have it.
            measures = dict.fromkeys((*run.measures, "predicted"), np.nan) | run.measures
            records.append({**key, **measures, "dissx": dissx})
            motifs += [{**key, **motif} for motif in run.motifs]
    return Sweep(Table(records), Table(motifs))
