"""What the benchmarks share: clocks, starts, tables, pages, and the one way into the package.

Scripts here measure inner objects too (one iteration, one data pass). All that they need of the
package beyond its public names is in the section "Inside" below, and nowhere else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from motifold.data import Data
from motifold.data.sources import stored_source
from motifold.engines.cpu import CPUEngine, Problem, Workers, engine_of
from motifold.engines.cpu.reconstruction import squared_residual
from motifold.engines.cpu.sparse import ratio_correlation, ratio_products
from motifold.engines.cpu.spectral import Spectra, best_way
from motifold.engines.cpu.statistics import h_statistics, w_statistics
from motifold.engines.dask import plan
from motifold.engines.dask.cluster import DaskCrew
from motifold.files import versions
from motifold.fit import Acceleration, Clock, Loop, LoopState, Rules, SearchState, search
from motifold.model.losses import loss_of
from motifold.solvers import HALS, MU, find_solver

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"

Curve = list[tuple[float, float]]
Call = Callable[[], object]


# The command line -------------------------------------------------------------------------------


def parser(doc: str | None, *, page: bool = False) -> argparse.ArgumentParser:
    """A parser with what every script has: ``--smoke``, and ``--page`` where it has a section."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--smoke", action="store_true", help="tiny problems: does it still run?")
    if page:
        made.add_argument("--page", action="store_true", help="write its section of the page")
    return made


# Clocks and curves ------------------------------------------------------------------------------


def median_milliseconds(rivals: dict[str, Call], rounds: int) -> dict[str, float]:
    """Median time of each rival over interleaved rounds, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for i in range(rounds + 1):
        for name, call in rivals.items():
            time.sleep(0.05)  # BLAS's own threads spin for a while after their work,
            call()  # and after a pause processors take a while to get going
            began = time.perf_counter()
            call()
            if i:
                times[name].append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in times.items()}


def time_to(curve: Iterable[tuple[float, float]], loss: float) -> float:
    """Seconds until the curve is at or below ``loss``; infinite if it never is."""
    return next((seconds for seconds, value in curve if value <= loss), float("inf"))


def loss_at(curve: Iterable[tuple[float, float]], seconds: float) -> float:
    """The lowest loss reached by then."""
    return min((loss for when, loss in curve if when <= seconds), default=np.nan)


def bare_products(X: np.ndarray, K: int, L: int, threads: int) -> Call:
    """The two matrix products of an iteration, Xᵀ(T×LK) and X(N×LK), with so many BLAS threads."""
    rng = np.random.default_rng(0)
    stacked = rng.random((len(X), L * K), dtype=X.dtype)
    flat = rng.random((X.shape[1], L * K), dtype=X.dtype)
    libraries = ThreadpoolController()  # to look for them takes a millisecond or two

    def products() -> None:
        with libraries.limit(limits=threads, user_api="blas"):
            X.T @ stacked
            X @ flat

    return products


# What was measured, where -----------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the numbers belong to; without rivals that are not installed."""
    # A copy of the tree on another machine may be of no commit, or of another one.
    commit = os.environ.get("MOTIFOLD_COMMIT") or (
        subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()
    )
    packages = ("numpy", "scipy", "numba", "scikit-learn", "torch", "torchnmf")
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "commit": commit,
        **versions(packages),
    }


def commit_of(found: Mapping[str, Any]) -> str:
    """The commit that kept numbers are of, or those of their parts."""
    if "machine" in found:
        return str(found["machine"]["commit"])
    parts = {name: part["machine"]["commit"] for name, part in found.items() if "machine" in part}
    return ", ".join(f"{commit} ({name})" for name, commit in parts.items()) or "that was not kept"


def save(path: Path, numbers: object) -> None:
    """Write numbers as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers, indent=1, default=float) + "\n")
    print(f"written: {path}")


# Tables and pages -------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> list[str]:
    """Lines of a Markdown table; all columns but the first ``words`` are numbers, to the right."""
    rule = ["---"] * words + ["---:"] * (len(header) - words)
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], f"|{'|'.join(rule)}|", *lines[1:]]


def section_of(page: str, name: str) -> str:
    """The section of a page that a script owns, with its marks; nothing where there is none."""
    begin, end = _marks(name)
    if begin not in page or end not in page:
        return ""
    return page[page.index(begin) : page.index(end) + len(end)]


def section_names(page: str) -> list[str]:
    """The sections that scripts own, in the order of the page."""
    return re.findall(r"^<!-- ([\w-]+): begin -->$", page, flags=re.MULTILINE)


def with_section(page: str, name: str, text: str) -> str:
    """The page with this text as the section, in its place or at the end."""
    begin, end = _marks(name)
    new = f"{begin}\n\n{text.strip()}\n\n{end}"
    old = section_of(page, name)
    return page.replace(old, new) if old else f"{page.rstrip()}\n\n{new}\n"


def write_section(name: str, lines: Iterable[str], path: Path = PAGE) -> None:
    """Write a section of the page of benchmarks, and leave the others alone."""
    path.write_text(with_section(path.read_text(), name, "\n".join(lines)))
    print(f"written: {path}, section {name}")


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


# Inside: the only place that builds the package's inner objects ---------------------------------


def inner_threads(n: int | None = None) -> Workers:
    """Threads for the functions below; to be used in a ``with`` block."""
    return Workers(n)


def inner_problem(X: Any, K: int, L: int, mask: np.ndarray | None = None) -> Problem:
    """The problem of one recording (T, N), of which ``mask`` says what is observed.

    Without one it may be a sparse matrix.
    """
    if mask is None:
        return Problem.of(Data.of([X]), K, L)
    return Problem.of(Data.of([np.where(mask, X, 0)], [mask]), K, L)


def read_through(X: Any, limit: int) -> dict[str, float]:
    """Seconds to read a matrix on disk once as a fit does, by the clock and of the processors."""
    source = stored_source(X, limit=limit)
    T, step = X.shape[0], max(1, source.chunk // 4)
    began, busy = time.perf_counter(), time.process_time()
    for a in range(0, T, step):
        source.rows(a, min(a + step, T))
    return {"seconds": time.perf_counter() - began, "processor": time.process_time() - busy}


def iteration(
    problem: Problem,
    W: np.ndarray,
    H: np.ndarray,
    workers: Workers,
    *,
    accelerated: bool,
    after: int = 1,
) -> Callable[[], LoopState]:
    """One iteration of HALS, always the same: the one after so many from W (K, L, N), H (T, K).

    If its extrapolation is taken back it does the work of two: then the next one is taken.
    """
    rules = Rules(tol=0, acceleration=Acceleration() if accelerated else None)
    engine, clock = CPUEngine(problem, workers), Clock()
    descent = Loop(engine, HALS(), rules).descent
    state = descent.start(engine.put_motifs(W.transpose(2, 1, 0)), engine.put(H))
    for _ in range(after):
        state = descent.iterate(state, clock)
    while (new := descent.iterate(state, clock)).pace.momentum < state.pace.momentum:
        state = new

    def once() -> LoopState:
        now = state.now
        if not accelerated:  # else what the engine has kept of these very factors would be used
            now = replace(now, W=now.W.copy(), H=now.H.copy())
        return descent.iterate(replace(state, now=now), clock)

    return once


def ratio_iteration(
    X: np.ndarray, K: int, L: int, start: tuple[np.ndarray, np.ndarray], workers: Workers
) -> Call:
    """One published iteration of the Kullback-Leibler divergence, from W (K, L, N), H (T, K)."""
    problem = Problem.of(Data.of([X]), K, L, loss=loss_of("kullback-leibler"))
    engine, clock = engine_of(problem, workers), Clock()
    descent = Loop(engine, MU(), Rules(tol=0)).descent
    state = descent.start(engine.put_motifs(start[0].transpose(2, 1, 0)), engine.put(start[1]))
    states = [descent.iterate(state, clock)]

    def once() -> None:
        states[0] = descent.iterate(states[0], clock)

    return once


def fingerprint(state: LoopState) -> str:
    """A mark of the bits of both factors."""
    content = hashlib.sha256(np.ascontiguousarray(state.now.W).tobytes())
    content.update(np.ascontiguousarray(state.now.H).tobytes())
    return content.hexdigest()[:8]


def both_passes(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, workers: Workers
) -> tuple[dict[str, Call], str]:
    """The two data passes in every way, and the way that the cost model chooses."""
    K, L, N = W.shape
    T = len(X)
    calls: dict[str, Call] = {}
    inside = np.ascontiguousarray(W.transpose(2, 1, 0))

    def passes(problem: Problem) -> None:
        w_statistics(problem, H, workers)
        h_statistics(problem, inside, workers)

    for way in ("products", "transforms", "kept"):
        problem = inner_problem(X, K, L)
        problem.kept["spectra"] = None if way == "products" else Spectra(problem, way == "kept")
        calls[way] = partial(passes, problem)
    return calls, best_way(N, T, K, L, X.dtype.itemsize)


def single_passes(
    problem: Problem, W: np.ndarray, H: np.ndarray, workers: Workers
) -> dict[str, Call]:
    """Each pass over the data of a problem by itself; W (K, L, N), H (T, K).

    Of a sparse matrix those of Kullback–Leibler's ratio, too.
    """
    inside = np.ascontiguousarray(W.transpose(2, 1, 0))
    calls: dict[str, Call] = {
        "pass 1": partial(w_statistics, problem, H, workers),
        "pass 2": partial(h_statistics, problem, inside, workers),
        "residual": partial(squared_residual, problem, inside, H, workers),
    }
    if problem.sparse:
        ratio = problem, inside, H, np.zeros(problem.N, H.dtype), 1e-6, workers
        calls["ratio, pass 1"] = partial(ratio_products, *ratio)
        calls["ratio, pass 2"] = partial(ratio_correlation, *ratio)
    return calls


def accelerated_curve(
    X: np.ndarray,
    K: int,
    L: int,
    seed: int,
    seconds: float,
    *,
    motifs: np.ndarray | None = None,
    first_iterations: int | None = None,
) -> Curve:
    """Seconds and losses of a fit from a random start or from given motifs (K, L, N).

    ``first_iterations`` are those on a part of the recording, if not the default.
    """
    clock = Clock(seconds)
    acceleration = Acceleration()
    if first_iterations is not None:
        acceleration = replace(acceleration, first_iterations=first_iterations)
    rules = Rules(tol=0, max_iter=10**9, acceleration=acceleration)
    W = None if motifs is None else np.ascontiguousarray(motifs.transpose(2, 1, 0))
    with Workers() as workers:
        loop = Loop(CPUEngine(inner_problem(X, K, L), workers), HALS(), rules)
        history = search(loop, SearchState([seed]), W, clock=clock).history
    return list(zip(history.seconds.tolist(), history.loss.tolist(), strict=True))


def ended_fit(
    X: np.ndarray, K: int, L: int, seed: int, *, tol: float, solver: str, reshape: bool
) -> tuple[float, float, np.ndarray]:
    """Seconds, loss and motifs (K, L, N) of a fit from one start, with or without reshaping."""
    acceleration = Acceleration(reshape=reshape)
    rules = Rules(tol=tol, max_iter=10_000, acceleration=acceleration)
    began = time.perf_counter()
    with Workers() as workers:
        loop = Loop(CPUEngine(inner_problem(X, K, L), workers), find_solver(solver), rules)
        state = search(loop, SearchState([seed]))
    return time.perf_counter() - began, state.loss, state.components


# The explorer -----------------------------------------------------------------------------------


class Explored:
    """The explorer's server on a recording in memory or mapped there, without a browser."""

    def __init__(self, model: Any, X: np.ndarray, rate: float) -> None:
        from motifold.explorer.session import Session
        from motifold.explorer.subject import Subject
        from motifold.io import Recording

        self.rate = rate
        self.session = Session(Subject.of(model, Recording(X, "x", rate)))

    def events(self) -> int:
        """Number of all events."""
        return sum(self.session.counts().values())

    def threshold(self, value: float) -> int:
        """The same after a move of motif 0's slider."""
        self.session.note(0, threshold=value)
        return self.events()

    def zoom(self, n: int) -> dict[str, Call]:
        """What a view of the first n bins asks for."""
        from motifold.explorer.marks import marks_in
        from motifold.explorer.picture import View, lane_pixels, lanes_of, recording_pixels

        session, subject = self.session, self.session.subject
        view, order = View.of(subject, (0, n / self.rate), None), subject.sorted_order
        return {
            "recording": lambda: recording_pixels(session, view, "data and motifs", order),
            "lanes": lambda: lane_pixels(subject, 0, n, lanes_of(session)),
            "marks": lambda: marks_in(session, 0, n),
        }


# A cluster --------------------------------------------------------------------------------------


@contextmanager
def shards(n: int) -> Iterator[None]:
    """Fits on a cluster cut their data into n shards, where they are long enough."""
    before = plan._SHARDS
    plan._SHARDS = n
    try:
        yield
    finally:
        plan._SHARDS = before


def rounds_of_crew(client: Any, n: int) -> dict[str, float]:
    """Median seconds of an empty round, and of one that brings 200 kB from every worker."""
    crew = DaskCrew(client, 1)
    found = {}
    for name, size in (("empty", 0), ("full", 25_000)):
        times = []
        for _ in range(n):
            began = time.perf_counter()
            crew.echo(size)
            times.append(time.perf_counter() - began)
        found[name] = statistics.median(times)
    crew.close()
    return found
