"""Fits of an experiment: planned, run from the same starts, kept one file each."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.engines.cpu.reconstruction import reconstruct
from motifold.estimator import CNMF
from motifold.files import write_npz, write_whole, written_whole
from motifold.fit.progress import log_line, watched, work_bar
from motifold.io import Recording
from motifold.reproduce.experiments import DataSet, Experiment

ALGORITHMS = ("MU", "HALS", "ANLS")
ACCELERATIONS = ("published", "accelerated")
_ENDLESS = 10**9  # iterations
_PLAN = "plan.json"


@dataclass(frozen=True)
class Run:
    """One fit: the course of its loss and the motifs it ended with.

    ``iteration``, ``seconds`` and ``loss`` are arrays of equal length, entry 0 is the start;
    ``components`` is (K, L, N), in single precision.
    """

    experiment: str
    data: str
    algorithm: str
    acceleration: str
    seed: int
    iteration: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    loss: npt.NDArray[np.float64]
    components: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Plan:
    """What is to be run: every algorithm, as published and accelerated, from each of the starts.

    ``time_limit`` is the seconds of fitting for the whole experiment: each data set gets a part,
    which its fits share evenly.
    """

    experiment: Experiment
    seeds: int
    time_limit: float

    def seconds_each(self, data: DataSet) -> float:
        """Seconds for each fit of a data set."""
        total = sum(other.weight for other in self.experiment.data_sets)
        n_fits = self.seeds * len(ALGORITHMS) * len(ACCELERATIONS)
        return self.time_limit * data.weight / total / n_fits

    @property
    def n_runs(self) -> int:
        """Number of fits, over all data sets."""
        each = self.seeds * len(ALGORITHMS) * len(ACCELERATIONS)
        return each * len(self.experiment.data_sets)

    def fit_keys(self) -> list[tuple[str, str, int]]:
        """Algorithm, acceleration and seed of each fit of a data set; start after start."""
        return [
            (algorithm, acceleration, seed)
            for seed in range(self.seeds)
            for acceleration in ACCELERATIONS
            for algorithm in ALGORITHMS
        ]


class RunStore:
    """The folder of an experiment's finished fits; a file is there whole or not at all."""

    def __init__(self, out: Path, experiment: str) -> None:
        self.folder = out / "runs" / experiment

    def path(self, data: str, algorithm: str, acceleration: str, seed: int) -> Path:
        """The file of one fit."""
        return self.folder / f"{data}-{algorithm}-{acceleration}-{seed}.npz"

    def start(self, plan: Plan) -> None:
        """Note the plan, so that a report knows which files belong together."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"seeds": plan.seeds, "time_limit": plan.time_limit}
        write_whole(self.folder / _PLAN, json.dumps(content))

    def plan(self, experiment: Experiment) -> Plan | None:
        """The plan that was noted last; None if there is none."""
        path = self.folder / _PLAN
        try:
            content = json.loads(path.read_bytes())
            return Plan(experiment, int(content["seeds"]), float(content["time_limit"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            _tell_damage(path, error)
            return None

    def save(self, run: Run, limit: float, fingerprint: str) -> None:
        """Write the file of a fit, with its time limit and the fingerprint of its problem."""
        arrays: dict[str, Any] = {
            "iteration": run.iteration,
            "seconds": run.seconds,
            "loss": run.loss,
            "components": run.components,
            "limit": np.array(limit),
            "fingerprint": np.array(fingerprint),
        }
        path = self.path(run.data, run.algorithm, run.acceleration, run.seed)
        with written_whole(path) as file:
            write_npz(file, arrays, compressed=True)

    def load(
        self, data: str, key: tuple[str, str, int], limit: float, fingerprint: str | None = None
    ) -> Run | None:
        """The fit in its file; None if it is not there, or had another limit or problem.

        One that is damaged is told in a warning, and counts as missing.
        """
        path = self.path(data, *key)
        try:
            content = io.BytesIO(path.read_bytes())
        except FileNotFoundError:
            return None
        try:
            with np.load(content, allow_pickle=False) as arrays:
                if float(arrays["limit"]) != limit:
                    return None
                if fingerprint is not None and str(arrays["fingerprint"]) != fingerprint:
                    return None
                course = [arrays[name] for name in ("iteration", "seconds", "loss", "components")]
        except MemoryError:
            raise
        except Exception as error:  # whatever zipfile, zlib and numpy make of a damaged file
            _tell_damage(path, error)
            return None
        algorithm, acceleration, seed = key
        return Run(self.folder.name, data, algorithm, acceleration, seed, *course)

    def load_all(self, plan: Plan) -> list[Run]:
        """The fits of a plan that are there."""
        found = [
            self.load(data.name, key, plan.seconds_each(data))
            for data in plan.experiment.data_sets
            for key in plan.fit_keys()
        ]
        return [run for run in found if run is not None]


def _tell_damage(path: Path, error: Exception) -> None:
    warnings.warn(f"{path} is damaged ({error}): it counts as missing.", UserWarning, stacklevel=3)


def run_plan(
    plan: Plan, store: RunStore, recordings: dict[str, Recording], *, progress: bool = True
) -> list[Run]:
    """Every fit of the plan; those whose files are there are not run again."""
    store.start(plan)
    runs = []
    with work_bar(plan.n_runs, plan.experiment.name, "fit", shown=progress) as bar:
        for data in plan.experiment.data_sets:
            X, seconds = recordings[data.name].X, plan.seconds_each(data)
            fingerprint = _fingerprint(X, data)
            is_warm = False
            for key in plan.fit_keys():
                algorithm, acceleration, seed = key
                title = f"{data.title}, {algorithm} {acceleration}, start {seed + 1}"
                bar.set_postfix_str(title)
                run = store.load(data.name, key, seconds, fingerprint)
                if run is None:
                    if not is_warm:
                        _warm_up(X, data)
                        is_warm = True
                    run = _fit(X, data, key, seconds, plan.experiment.name)
                    store.save(run, seconds, fingerprint)
                runs.append(run)
                bar.update()
                if progress and not watched():
                    done = f"{plan.experiment.name} {len(runs)}/{plan.n_runs}"
                    ended = f"loss {run.loss[-1]:.4f} after {run.iteration[-1]} iterations"
                    log_line(f"{done}: {title}: {ended}")
        bar.set_postfix_str("")
    return runs


def random_start(
    X: npt.NDArray[np.float64], K: int, L: int, seed: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Motifs (K, L, N) and activations (T, K), uniform, scaled so that X̂ fits X best."""
    rng = np.random.default_rng(seed)
    T, N = X.shape
    W, H = rng.random((K, L, N)), rng.random((T, K))
    X_hat = reconstruct(W.transpose(2, 1, 0), H, Segments([T]).bounds)
    scale = np.sqrt(np.vdot(X, X_hat) / np.vdot(X_hat, X_hat))
    return W * scale, H * scale


def _model(data: DataSet, algorithm: str, acceleration: str, **options: Any) -> CNMF:
    return CNMF(
        data.K,
        data.L,
        solver=algorithm.lower(),
        acceleration="auto" if acceleration == "accelerated" else None,
        tol=0,  # the curves run to the time limit
        **options,
    )


def _fit(
    X: npt.NDArray[np.float64],
    data: DataSet,
    key: tuple[str, str, int],
    seconds: float,
    experiment: str,
) -> Run:
    algorithm, acceleration, seed = key
    model = _model(data, algorithm, acceleration, max_iter=_ENDLESS, max_time=seconds)
    W, H = random_start(X, data.K, data.L, seed)
    model.fit(X, components_init=W, activations_init=H)
    history = model.history_
    return Run(
        experiment=experiment,
        data=data.name,
        algorithm=algorithm,
        acceleration=acceleration,
        seed=seed,
        iteration=history.iteration,
        seconds=history.seconds,
        loss=history.loss,
        components=model.components_.astype(np.float32),
    )


def _warm_up(X: npt.NDArray[np.float64], data: DataSet) -> None:
    """Compile all kernels, which is not to be timed: each algorithm briefly, on the data itself.

    Which kernels a fit uses depends on its sizes, so a tiny problem would not do.
    """
    for algorithm in ALGORITHMS:
        for acceleration in ACCELERATIONS:
            model = _model(data, algorithm, acceleration, max_iter=2, max_time=0.5)
            model.set_params(random_state=0).fit(X)


def _fingerprint(X: npt.NDArray[np.float64], data: DataSet) -> str:
    """Of the problem that is fitted: a file made for another one is not used."""
    # Six digits: the last ones change with the number of threads, which is no other problem.
    return json.dumps([*X.shape, data.K, data.L, f"{np.vdot(X, X):.6g}"])
