"""Random problems on every engine, against the oracle and against the CPU's engine in one thread.

Blocks, tiles and shards are cut so short that small problems, which the oracle can solve, have
several of each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import reference
from cases import COUPLINGS, HIDDEN, PENALTIES, Case
from hypothesis import strategies as st
from scipy.sparse import csr_array

import motifold.dask
import motifold.data.recording
import motifold.engines.cpu.statistics
import motifold.engines.cuda.engine
import motifold.engines.cuda.tiles
import motifold.engines.dask.plan
import motifold.solvers.tiles
from fuzz.problems import Problem, case_of, descends, fitted, problems
from motifold import CNMF
from motifold.data import Data
from motifold.data.sources import StoredSource
from motifold.data.sources.kinds import Sliced
from motifold.engines.cpu import CPUEngine, Workers, engine_of, threads
from motifold.engines.cpu import Problem as EngineProblem
from motifold.engines.cpu.ratios.reference import reference as reference_of
from motifold.engines.cuda import Device, engine_on
from motifold.engines.dask.crew import LocalCrew
from motifold.engines.dask.engine import ClusterEngine
from motifold.engines.dask.plan import Cutting
from motifold.engines.dask.store import Store
from motifold.model.losses import Loss
from motifold.model.penalties import penalties_of
from motifold.solvers import HALS, MU, Inner

BETAS = [0.0, 0.5, 1.0, 1.5, 3.0]
FFT = "cpu, by FFT"
# Which sums the same numbers in the same order as one thread does, and so has the same bits.
SAME_BITS = {"cpu, three threads", "cpu, on disk"}
# What rounding may do, relative to the terms that a number is made of.
ROUNDING = {"float64": 1e-9, "float32": 1e-4}


@st.composite
def engine_problems(draw: st.DrawFn, ratios: bool = False) -> Problem:
    """Odd sizes, and how short blocks, tiles and shards are cut."""
    couplings = [{}, {}, COUPLINGS[0] if ratios else draw(st.sampled_from(COUPLINGS))]
    beta = draw(st.sampled_from(BETAS)) if ratios else 2.0
    return _cut(draw) | {
        "lengths": draw(st.lists(st.integers(1, 60), min_size=1, max_size=3)),
        "N": draw(st.integers(1, 6)),
        "K": draw(st.integers(1, 4)),
        "L": draw(st.integers(1, 8)),
        "boundary": draw(st.sampled_from(["zero", "valid"])),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "zeros": draw(st.sampled_from([0.0, 0.3, 0.8, 0.97, 1.0])),
        "dtype": draw(st.sampled_from(["float64", "float64", "float32"])),
        "power": draw(st.sampled_from([0, 0, -20, 20])),
        "penalties": draw(st.sampled_from(PENALTIES)) | draw(st.sampled_from(couplings)),
        "hidden": draw(st.sampled_from(["nothing", "nothing", *HIDDEN])),
        "fixed": draw(st.booleans()),
        "solver": draw(st.sampled_from(["hals", "mu"])),
        "sweeps": draw(st.integers(1, 3)),
        "steps": draw(st.integers(1, 3)),
        "follow": draw(st.sampled_from([0.0, 1.0])),
        "beta": beta,
    }


def _cut(draw: st.DrawFn) -> Problem:
    return {
        "tile": draw(st.integers(4, 7)),  # lengths of a motif
        "block": draw(st.integers(1, 20)),  # rows, at least
        "shards": draw(st.integers(1, 5)),
        "hands": draw(st.integers(1, 3)),
        "kept": draw(st.booleans()),  # transforms, and steps on a device
    }


@st.composite
def engine_fits(draw: st.DrawFn) -> Problem:
    """Whole fits by the public face, of what every engine can do."""
    solver = draw(st.sampled_from(["hals", "tiles", "mu"]))
    other = {"solver": solver} | ({"acceleration": "auto"} if solver == "hals" else {})
    return draw(problems(longest=40)) | _cut(draw) | other


@contextmanager
def cut_short(problem: Problem, name: str) -> Iterator[None]:
    """All that is cut by size, cut short; every thread is called for the least."""
    n, rows = problem["tile"], problem["block"]
    way = "kept transforms" if problem["kept"] else "transforms"
    with ExitStack() as stack:
        for module, changes in {
            motifold.solvers.tiles: {"tile_length": lambda T, L, K: n * L},
            motifold.engines.cuda.tiles: {"tile_length": lambda T, L: n * L},
            motifold.engines.cuda.engine: {"_RECORDED_AFTER": 0 if problem["kept"] else 20},
            motifold.data.recording: {"_LEAST_ROWS": rows, "_SHORT": rows},
            motifold.engines.dask.plan: {"_LEAST_ROWS": 8, "_SHARDS": problem["shards"]},
            threads: {"_WORTH_A_THREAD": 1e-12},
        }.items():
            stack.enter_context(patch.multiple(module, **changes))
        if name == FFT:
            ways = patch.object(
                motifold.engines.cpu.statistics,
                "best_way",
                lambda N, T, K, L, itemsize: "products" if L == 1 else way,
            )
            stack.enter_context(ways)
        yield


# --- engines ------------------------------------------------------------------------------------


def on_disk(X: np.ndarray) -> StoredSource:
    """A source that holds some rows at a time, whose units are a few rows long."""
    return StoredSource(Sliced(X, "X"), limit=48 * X[:1].nbytes)


class OnThisCrew(motifold.dask.CNMF):
    """The estimator of a cluster with hands in this process, without Dask."""

    def _place(self, X: Any, device: str | None = None) -> Any:
        return motifold.dask.ClusterPlace(lambda: LocalCrew(2), self)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return CNMF._get_param_names()


def _cpu(problem: Problem, case: Case, n_jobs: int = 1, form: Any = np.asarray) -> Any:
    return lambda workers: engine_of(problem_of(problem, case, form), workers), n_jobs


def _cuda(problem: Problem, case: Case, share: int | None = None) -> Any:
    memory = None if share is None else max(1, case.X.nbytes // share)
    device = Device(memory=memory)
    return lambda workers: engine_on(device, problem_of(problem, case), workers), 1


def _dask(problem: Problem, case: Case) -> Any:
    wide = "x_ortho" in problem["penalties"]
    cutting = Cutting(problem["L"], problem["K"], case.boundary, wide, problem["shards"])
    stores = []

    def look(data: Data, width: int, *, nonnegative: bool) -> Any:
        stores.append(
            Store.sent(LocalCrew(problem["hands"]), data, cutting, signed=not nonnegative)
        )
        return stores[0].facts

    def make(workers: Workers) -> CPUEngine:
        return ClusterEngine(problem_of(problem, case, look=look), workers, stores[0])

    return make, 1


Making = Callable[[Problem, Case], Any]
ENGINES: dict[str, Making] = {
    "cpu": _cpu,
    "cpu, three threads": lambda problem, case: _cpu(problem, case, n_jobs=3),
    "cpu, on disk": lambda problem, case: _cpu(problem, case, form=on_disk),
    "cpu, sparse": lambda problem, case: _cpu(problem, case, form=csr_array),
    FFT: _cpu,
    "cuda (twin)": _cuda,
    "cuda (twin), streamed": lambda problem, case: _cuda(problem, case, share=4),
    "dask": _dask,
}
# Other losses have one way over dense data, and do not run on a cluster.
BY_RATIOS = [name for name in ENGINES if name not in (FFT, "dask")]
# Whole fits by the public face: parameters, and the data in another form.
FITS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "cpu": lambda case: {},
    "cpu, three threads": lambda case: {"n_jobs": 3},
    "cpu, on disk": lambda case: {"X": on_disk(case.X)},
    "cpu, sparse": lambda case: {"X": csr_array(case.X)},
    FFT: lambda case: {},
    "cuda (twin)": lambda case: {"device": "cuda:twin"},
    "cuda (twin), streamed": lambda case: {
        "device": "cuda:twin",
        "device_memory": max(1, case.X.nbytes // 4),
    },
    "dask": lambda case: {"kind": OnThisCrew},
}


def problem_of(
    problem: Problem, case: Case, form: Any = np.asarray, **options: Any
) -> EngineProblem:
    """The problem as engines have it, its data in some form."""
    stops = np.cumsum(case.lengths)[:-1]
    X, masks = case.X, None
    if case.observed is not None:
        X, masks = np.where(case.observed, X, 0), np.split(case.observed, stops)
    K, L = problem["K"], problem["L"]
    data = Data.of([form(part) for part in np.split(X, stops)], masks)
    penalties = penalties_of(K, **case.penalties)
    loss = Loss(problem["beta"])
    return EngineProblem.of(data, K, L, case.boundary, penalties, case.fixed, loss, **options)


@contextmanager
def working(name: str, problem: Problem, case: Case) -> Iterator[Any]:
    make, n_jobs = ENGINES[name](problem, case)
    with cut_short(problem, name), Workers(n_jobs) as workers:
        yield make(workers)


# --- what must hold -----------------------------------------------------------------------------


def _drawn(problem: Problem) -> tuple[Case, np.ndarray, np.ndarray]:
    """The case, and factors in its scale, zero where an engine keeps them so."""
    case = case_of(problem)
    dtype = case.X.dtype
    plain = problem_of(problem, case)
    scale = np.sqrt(plain.scale * 2.0 ** problem["power"])
    return case, (scale * case.W).astype(dtype), plain.confine((scale * case.H).astype(dtype))


def steps_are_right(name: str, problem: Problem) -> None:
    """J told is J by the oracle and never rises; a step is the oracle's, and the CPU's."""
    case, W, H = _drawn(problem)
    case = replace(case, X=np.ldexp(case.X, 0))
    solver = HALS("tiles") if problem["solver"] == "hals" else MU()
    with working("cpu", problem, case) as cpu, working(name, problem, case) as engine:
        for _ in range(problem["steps"]):
            before, terms = _check_told(problem, case, engine, W, H)
            inner = Inner(problem["sweeps"])
            given = engine.put_motifs(W), engine.put(H)
            step = engine.step(*given, solver, inner, follow=problem["follow"])
            new_W, new_H = host(engine, step)
            _check_factors(problem, case, W, new_W, new_H)
            after, summed = _check_told(problem, case, engine, new_W, new_H, terms)
            fallen = terms / (summed - terms) if summed > terms else 1.0
            assert after <= before + ROUNDING[problem["dtype"]] * terms, (
                f"J rises by {after - before:.1e}, its terms are {terms:.1e}"
            )
            if name != "cpu":
                twin = cpu.step(W, H, solver, inner, follow=problem["follow"])
                new = (new_W, new_H), (np.asarray(twin.W), np.asarray(twin.H))
                _check_alike(name, problem, *new, (W, H), fallen)
            _check_oracle(problem, case, engine, (W, H), (new_W, new_H))
            W, H = new_W, new_H


def host(engine: Any, step: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(engine.motifs(step.W)), np.asarray(engine.gather(step.H))


def _power(engine: Any) -> float:
    """‖X‖² of the working problem."""
    return float(engine.facts.squared_norm)


def _scaled(engine: Any, case: Case) -> Case:
    """The case in the working scale, penalties too, in double precision."""
    model, K = engine.model, case.W.shape[2]
    scale = model.scale
    given = penalties_of(K, **case.penalties).terms
    weights = {old.name: new.weight for old, new in zip(given, model.penalties.terms, strict=True)}
    return replace(case, X=case.X.astype(np.float64) * scale, penalties=weights)


def _check_told(
    problem: Problem, case: Case, engine: Any, W: np.ndarray, H: np.ndarray, before: float = 0.0
) -> tuple[float, float]:
    """J, the residual and the certificate at these factors; J by the oracle, and its terms.

    The terms, beside which its rounding is small, are of all that the model says: where next to
    nothing is observed, they are far larger than J. ``before``: those of the factors that a step
    began with, from which a gradient is kept.
    """
    case, tol = _scaled(engine, case), ROUNDING[problem["dtype"]]
    V, G = engine.put_motifs(W), engine.put(H)
    found = engine.assess(V, G)
    expected = case.objective(W, H)
    terms = before + _power(engine) + found.sums.magnitude + found.penalty + expected
    told = 0.5 * found.sums.squared_residual(engine.facts) + found.penalty
    assert abs(told - expected) <= tol * terms, f"J told is off by {(told - expected) / terms:.1e}"
    left = reference.residual(case.X, W.astype(float), H.astype(float), case.lengths)
    if case.observed is not None:
        left = left[case.observed]
    residual = float(np.sum(left**2))
    off = abs(engine.residual(V, G) - residual) / terms if terms else 0.0
    assert off <= tol, f"the residual is off by {off:.1e}"
    if _is_plain(problem) and problem["dtype"] == "float64":
        arguments = case.X, W, H, case.lengths, case.boundary
        for told, true in zip(
            (engine.kkt_of_motifs(V, G), found.sums.kkt),
            reference.kkt_residual(*arguments, **case.penalties),
            strict=True,
        ):
            near = told == true or abs(told - true) <= 1e-5 * true + 1e-8  # both may be infinite
            assert near, f"KKT is {told:.6g}, and not {true:.6g}"
    return expected, terms


def _is_plain(problem: Problem) -> bool:
    """Whether the oracle has its step: without what couples, is missing or is fixed."""
    coupled = {"x_ortho", "ortho_H", "ortho_W"} & set(problem["penalties"])
    return not (coupled or problem["fixed"] or problem["hidden"] != "nothing")


def _check_factors(
    problem: Problem, case: Case, old: np.ndarray, W: np.ndarray, H: np.ndarray
) -> None:
    for F, what in ((W, "W"), (H, "H")):
        assert np.isfinite(F).all(), f"{what} is not finite"
        assert F.min() >= 0, f"{what} is negative"
        assert F.dtype == problem["dtype"], f"{what} is {F.dtype}"
    free = reference.allowed(len(H), problem["L"], case.lengths, case.boundary)
    assert not H[~free].any(), "activations where there may be none"
    if case.fixed is not None:
        assert np.array_equal(W[:, :, case.fixed], old[:, :, case.fixed]), "a fixed motif changed"


def _check_alike(
    name: str, problem: Problem, found: Any, expected: Any, old: Any = None, fallen: float = 1.0
) -> None:
    """The same bits as in one thread, or the same numbers but for rounding (see ``_apart``)."""
    # A single feature, or one motif of one lag: BLAS may take a row for a column.
    wide = problem["N"] > 1 and problem["K"] * problem["L"] > 1
    if name in SAME_BITS and problem["beta"] == 2 and wide:
        for F, G, what in zip(found, expected, ("W", "H"), strict=True):
            assert np.array_equal(F, G), f"{what} has other bits than in one thread"
    elif problem["dtype"] == "float64":
        told = _apart(found, expected, old, fallen)
        assert told is None, f"{told}, and not that of the CPU"


def _apart(found: Any, expected: Any, old: Any = None, fallen: float = 1.0) -> str | None:
    """Which factor is another one by more than rounding; None: neither.

    ``old``: those before the step. What is next to nothing beside them is rounding, and so are the
    activations of a motif that is; these are no larger than any were. ``fallen``: how many times
    smaller the terms of J are now, whose rounding is left in the slopes.
    """
    most = 0.0 if old is None else max(float(np.abs(F).max()) for F in old)
    told, (W, _), (V, _) = np.ones(found[1].shape[1], bool), found, expected
    if old is not None:
        norms = [np.linalg.norm(F, axis=(0, 1)) for F in (W, V)]
        told = np.maximum(*norms) > 1e-12 * np.linalg.norm(old[0], axis=(0, 1)).max()
        if not max(F[1][:, ~told].max(initial=0.0) for F in (found, expected)) <= 2 * most:
            return "H of a motif that is rounding is huge"
    for F, G, what in ((W, V, "W"), (found[1][:, told], expected[1][:, told], "H")):
        largest = float(np.abs(G).max(initial=0.0))
        off = float(np.abs(F - G).max(initial=0.0)) / (largest or 1.0)
        nothing = max(float(np.abs(F).max(initial=0.0)), largest) <= 1e-12 * most
        if not (off <= max(1e-6, 1e-10 * fallen) or nothing):
            return f"{what} is off by {off:.1e}"
    return None


def _check_oracle(problem: Problem, case: Case, engine: Any, old: Any, new: Any) -> None:
    """One sweep is that of the reference, where it knows the problem."""
    if not _is_plain(problem) or problem["dtype"] != "float64" or problem["sweeps"] > 1:
        return
    case = _scaled(engine, case)
    arguments = case.X, *old, case.lengths, case.boundary
    if problem["solver"] == "mu":
        expected = reference.mu_step(*arguments, **case.penalties)
    else:
        order = {"order": "tiles", "tile": problem["tile"] * problem["L"]}
        expected = reference.hals_step(*arguments, **order, **case.penalties)
    told = _apart(new, expected, old)
    assert told is None, f"{told}, and not that of the oracle"


def losses_go_down(name: str, problem: Problem) -> None:
    """Of another loss: J told is the oracle's, neither factor's update raises it."""
    case, W, H = _drawn(problem)
    kind = np.dtype(problem["dtype"]).type
    if problem["beta"] <= 0:
        case = replace(case, X=case.X + kind(0.1 * 2.0 ** problem["power"]))
    with working("cpu", problem, case) as cpu, working(name, problem, case) as engine:
        H = cpu.problem.confine(H + kind(0.1))
        W = np.where(True if case.fixed is None else case.fixed, W, W + kind(0.1))
        W = W + kind(0.1) if case.fixed is None else W
        for _ in range(problem["steps"]):
            before = _check_deviance(problem, case, engine, cpu, W, H)
            new = engine.advance(engine.put_motifs(W), engine.put(H), MU())
            new_W, new_H = host(engine, new)
            _check_factors(problem, case, W, new_W, new_H)
            halfway = _check_deviance(problem, case, engine, cpu, new_W, H)
            after = _check_deviance(problem, case, engine, cpu, new_W, new_H)
            slack = _rounding(problem) * (abs(before) + case.X.size)
            assert halfway <= before + slack, "J rises with W"
            assert after <= halfway + slack, "J rises with H"
            if name != "cpu":
                twin = cpu.advance(W, H, MU())
                _check_alike(name, problem, (new_W, new_H), (twin.W, twin.H))
            W, H = new_W, new_H


def _rounding(problem: Problem) -> float:
    """Below β = 1 the divergence is steep where X̂ is no more than the floor: u^β magnifies."""
    steep = {"float64": 1e-6, "float32": 5e-3}[problem["dtype"]]
    return steep if problem["beta"] < 1 else ROUNDING[problem["dtype"]]


def _check_deviance(
    problem: Problem, case: Case, engine: Any, cpu: Any, W: np.ndarray, H: np.ndarray
) -> float:
    beta, tol = problem["beta"], _rounding(problem)
    case, floor = _scaled(engine, case), reference_of(cpu.problem).floor
    found = engine.assess_ratios(engine.put_motifs(W), engine.put(H))
    expected = reference.beta_objective(
        case.X, W.astype(float), H.astype(float), beta, *case.arguments, case.observed, floor,
        **case.penalties,
    )  # fmt: skip
    told = 0.5 * found.deviance + found.penalty
    terms = abs(expected) + case.X.size * (1 + floor ** max(beta, 1))
    assert abs(told - expected) <= tol * terms, f"J told is off by {(told - expected) / terms:.1e}"
    return expected


def fits_are_right(name: str, problem: Problem) -> None:
    """Whole fits by the public face: what ``problems.descends`` asks for."""
    with cut_short(problem, name):
        descends(problem, lambda p, case: fitted(p, case, **FITS[name](case)))


def _property(check: Callable[[str, Problem], None], name: str) -> Callable[[Problem], None]:
    return lambda problem: check(name, problem)


Properties = dict[str, tuple[Callable[[Problem], None], st.SearchStrategy[Problem]]]
PROPERTIES: Properties = {
    **{f"{n}: steps": (_property(steps_are_right, n), engine_problems()) for n in ENGINES},
    **{
        f"{n}: other losses": (_property(losses_go_down, n), engine_problems(ratios=True))
        for n in BY_RATIOS
    },
    **{f"{n}: fits": (_property(fits_are_right, n), engine_fits()) for n in ENGINES},
}
ORDINARY: Problem = {
    "lengths": [30, 9], "N": 3, "K": 2, "L": 3, "boundary": "zero", "seed": 0, "zeros": 0.3,
    "dtype": "float64", "power": 0, "start_power": 0, "penalties": {}, "hidden": "nothing",
    "given": "nothing", "fixed": False, "solver": "hals", "acceleration": "auto",
    "center": False, "normalize": True, "n_init": 1, "max_iter": 20, "tol": 1e-3,
    "tile": 4, "block": 5, "shards": 3, "hands": 2, "kept": True, "sweeps": 1, "steps": 2,
    "follow": 0.0, "beta": 2.0,
}  # fmt: skip


def ordinary(kind: str) -> Problem:
    """A problem that has every property."""
    return ORDINARY | ({"beta": 1.0} if kind.endswith("other losses") else {})


def warm_up() -> None:
    """Load the compiled kernels: children that are forked have them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, (check, _) in PROPERTIES.items():
            for changes in ({}, {"dtype": "float32", "hidden": "half"}):
                check(ordinary(kind) | changes)
