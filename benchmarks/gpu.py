"""A GPU: milliseconds of an iteration, a race against torchnmf, 10⁸ bins, streaming, a sweep.

``python benchmarks/gpu.py`` runs all of it on a machine with a GPU, CuPy, torch and torchnmf, in
about eight minutes, and keeps the numbers in ``gpu.json``; ``--parts iterations race`` runs some of
it, and leaves the others as they were; ``--page`` writes the section of the page of benchmarks from
the numbers that were kept, and measures nothing. ``--smoke`` runs tiny problems on the NumPy twin
of the engine, without a GPU.
"""

from __future__ import annotations

import datetime
import json
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import harness
import numpy as np
from problems import Benchmark, load, shaped

import motifold
from motifold import CNMF

RESULTS = Path(__file__).with_name("gpu.json")
N, K, L = 250, 5, 20
PARTS = ("iterations", "race", "huge", "streamed", "sweep")
# Milliseconds of an iteration that are aimed at, full and auto, by T.
AIMS = {50_000: (0.6, 0.5), 1_000_000: (4.8, 3.2), 10_000_000: (48, 32)}


class Machine:
    """Where it is measured: the device's name, and how X is made there."""

    def __init__(self, smoke: bool) -> None:
        self.smoke = smoke
        self.device = "cuda:twin" if smoke else "cuda"

    def sequences(self, T: int) -> Any:
        """X (T, N) of single precision: on the device, where there is one."""
        if self.smoke:
            return shaped(T, 6, 2, 4).X
        import cupy

        rng = cupy.random.default_rng(0)
        motifs = rng.random((K, L, N), dtype=np.float32) ** 4
        X = cupy.zeros((T, N), dtype=np.float32)
        for low in range(0, T, 2**20):  # in blocks, whose ends cut motifs off
            block = X[low : low + 2**20]
            H = rng.random((len(block), K), dtype=np.float32)
            H = cupy.where(H < 0.02, 50 * H, 0)
            for lag in range(L):
                block[lag:] += H[: len(block) - lag] @ motifs[:, lag]
            block += 0.05 * rng.random(block.shape, dtype=np.float32)
        return X

    def memory(self) -> float:
        """GB that are taken on the device, by X and all else."""
        if self.smoke:
            return 0.0
        import cupy

        free, there = cupy.cuda.runtime.memGetInfo()
        return (there - free) / 1e9

    @property
    def sizes(self) -> tuple[int, int]:
        """Motifs and lags."""
        return (2, 4) if self.smoke else (K, L)


def fitted(X: Any, machine: Machine, **settings: Any) -> CNMF:
    """A fit on the device, without warnings."""
    n_components, n_lags = machine.sizes
    options = {"device": machine.device, "random_state": 0, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CNMF(n_components, n_lags, **options).fit(X)


def iterations(machine: Machine) -> list[dict[str, Any]]:
    """Milliseconds of an iteration: four sweeps of each factor, Grams, loss and KKT residual.

    ``plain``: the fastest tenth ends there, iterations whose loss comes from the sums. ``all``: the
    median. Near the minimum, where rounding might hide a rise of J, the loss is taken from the
    residual itself, another pass, and a step that rose is repeated.
    """
    rows = []
    for T in [300] if machine.smoke else list(AIMS):
        X = machine.sequences(T)
        row: dict[str, Any] = {"T": T}
        for precision in ("full", "auto"):
            n = 6 if machine.smoke else 25 if T > 10**6 else 90
            fitted(X, machine, precision=precision, tol=0, max_iter=3)  # compiles
            model = fitted(X, machine, precision=precision, tol=0, max_iter=n)
            steps = 1e3 * np.diff(model.history_.seconds)[2:-1]
            row[f"{precision}, plain"] = float(np.quantile(steps, 0.1))
            row[f"{precision}, all"] = statistics.median(steps)
        rows.append(row)
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)
        del X
    return rows


def race(machine: Machine) -> list[dict[str, Any]]:
    """Seconds to torchnmf's loss after 20 s on the same GPU, from its start."""
    if machine.smoke:
        problems, seconds = [shaped(300, 6, 2, 4)], 0.2
    else:
        names, seconds = ("song", "speech"), 20.0
        problems = [shaped(T, N, K, L) for T in (50_000, 1_000_000)]
        problems += [load(name) for name in names]
    rows = []
    for problem in problems:
        start = problem.start(0)
        theirs = torchnmf_loss(problem, start, seconds)
        if theirs is None:
            print("race: torchnmf is not installed")
            return []
        curve: harness.Curve = []

        def note(state: Any, curve: harness.Curve = curve, aim: float = theirs) -> bool:
            curve.append((state.seconds, state.loss))
            return state.loss <= 1.001 * aim

        options = {"device": machine.device, "callback": note, "tol": 0, "max_iter": 10**6}
        given = {"components_init": start[0], "activations_init": start[1]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warm = {**options, "callback": None, "max_iter": 30}  # compiles
            CNMF(problem.K, problem.L, **warm).fit(problem.X, **given)
            CNMF(problem.K, problem.L, max_time=seconds, **options).fit(problem.X, **given)
        ours = harness.time_to(curve, 1.001 * theirs)
        rows.append({"problem": problem.name, "loss of torchnmf": theirs, "seconds": ours})
        rows[-1]["times sooner"] = seconds / ours
        print(rows[-1], flush=True)
    return rows


def torchnmf_loss(problem: Benchmark, start: Any, seconds: float) -> float | None:
    """The relative loss of torchnmf's NMFD after so many seconds on the GPU."""
    try:
        import torch
        from torchnmf.nmf import NMFD
    except ImportError:
        return None
    place = "cuda" if torch.cuda.is_available() else "cpu"
    T, width = len(problem.X), problem.L
    V = torch.from_numpy(np.ascontiguousarray(problem.X.T))[None].to(place)
    W = torch.from_numpy(np.ascontiguousarray(start[0].transpose(2, 0, 1))).to(place)
    H = torch.from_numpy(np.ascontiguousarray(start[1][: T - width + 1].T))[None].to(place)
    model = NMFD(W=W.clone(), H=H.clone()).to(place)

    def loss() -> float:
        with torch.no_grad():
            return float((V - model()).norm() / V.norm())

    model.fit(V, tol=0, max_iter=5)  # compiles and tunes
    model = NMFD(W=W.clone(), H=H.clone()).to(place)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        model.fit(V, tol=0, max_iter=5)
        if place == "cuda":
            torch.cuda.synchronize()
    return loss()


def huge(machine: Machine) -> list[dict[str, Any]]:
    """10⁸ bins × 250 (100 GB, made on the device): one fit to a KKT residual of 1e-3."""
    T = 2_000 if machine.smoke else 100_000_000
    X = machine.sequences(T)
    taken: list[float] = []
    began = time.perf_counter()
    options = {"tol": 1e-3, "max_iter": 20 if machine.smoke else 1000}
    model = fitted(X, machine, callback=lambda _: taken.append(machine.memory()), **options)
    row = {"T": T, "seconds": time.perf_counter() - began, "residual": model.kkt_residual_}
    row["GB on the device"] = max(taken)
    print(row, flush=True)
    return [row]


def streamed(machine: Machine) -> list[dict[str, Any]]:
    """The same iterations with memory for a quarter of X, which comes from the host."""
    T = 2_000 if machine.smoke else 10_000_000
    X = machine.sequences(T)
    X = X if machine.smoke else X.get()
    row: dict[str, Any] = {"T": T}
    for name, memory in (("resident", None), ("streamed", X.nbytes / 4)):
        model = fitted(X, machine, tol=0, max_iter=8, device_memory=memory)
        row[name] = 1e3 * statistics.median(np.diff(model.history_.seconds)[2:-1])
    print(row, flush=True)
    return [row]


def sweep(machine: Machine) -> list[dict[str, Any]]:
    """10 numbers of motifs × 10 seeds on NEURAL, on the GPU and on all cores."""
    if machine.smoke:
        X, grid = shaped(200, 6, 2, 4).X, {"n_components": [1, 2], "n_lags": 3, "n_seeds": 1}
    else:
        X, grid = load("neural").X, {"n_components": range(1, 11), "n_lags": 50, "n_seeds": 10}
    row: dict[str, Any] = {}
    # In the first of two, processes start, and compile what no cache has.
    for device in (machine.device, "cpu"):
        for name in (f"{device}, in new processes", device):
            began = time.perf_counter()
            motifold.sweep(X, device=device, test=None, n_null=0, progress=False, **grid)
            row[name] = time.perf_counter() - began
    row["ratio"] = row["cpu"] / row[machine.device]
    print(row, flush=True)
    return [row]


TITLES = {
    "iterations": "milliseconds of an iteration (N = 250, K = 5, L = 20)",
    "race": "seconds to the loss that torchnmf has after 20 s on the same GPU, from the same start",
    "huge": "10⁸ bins × 250, 100 GB on the device: one fit to a KKT residual of 1e-3",
    "streamed": "10⁷ bins × 250, memory for a quarter of X: milliseconds of an iteration",
    "sweep": "ten numbers of motifs × ten seeds on NEURAL: seconds, and on that machine's 16 cores "
    "(kernels were compiled already)",
}


def section(found: dict[str, Any]) -> list[str]:
    """The section of the page."""
    lines = ["## On a GPU"]
    for name in PARTS:
        if name not in found:
            lines += ["", f"**{name}: not measured yet** ({TITLES[name]})."]
            continue
        rows = found[name]["rows"]
        header = list(rows[0])
        cells = [[_cell(row[key]) for key in header] for row in rows]
        commit = found[name]["machine"]["commit"]
        where = f"{found[name]['device']}, {found[name]['date']}, commit {commit}"
        title = TITLES[name][0].upper() + TITLES[name][1:]
        lines += ["", f"### {name}", "", f"{title}. {where}.", ""]
        lines += harness.table(header, cells)
    aims = ", ".join(f"{T:,}: {full} and {auto}" for T, (full, auto) in AIMS.items())
    return [
        *lines,
        "",
        f"Aimed at for an iteration, in full and auto precision: {aims} ms. An iteration is four "
        "sweeps of each factor, Grams, loss and KKT residual. *Plain*: the loss comes from the "
        "sums (the fastest tenth ends there). *All*: the median; near the minimum, where rounding "
        "might hide a rise of J, the loss is taken from the residual, another pass over X, and a "
        "step that rose is repeated. *auto*: a product is by TF32 while the residual is above "
        "0.005. Aimed at for the race: 30 times sooner; for the sweep: a ratio of 5.",
    ]


def _cell(value: Any) -> str:
    if isinstance(value, int) and value > 9999:
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def device_name() -> str:
    """What the GPU calls itself."""
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()


def main() -> None:
    """Measure, print, and write."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="where they are kept")
    options = parser.parse_args()
    kept = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.page and not options.smoke:
        harness.write_section("gpu", section(kept))
        return
    machine = Machine(options.smoke)
    for name in options.parts:
        rows = globals()[name](machine)
        if rows and not options.smoke:
            facts = {"date": datetime.date.today().isoformat(), "device": device_name()}
            kept[name] = {"rows": rows, "machine": harness.machine(), **facts}
            harness.save(options.results, kept)


if __name__ == "__main__":
    main()
