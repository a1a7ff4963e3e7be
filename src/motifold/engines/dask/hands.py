"""What a worker does: it holds shards, and does to all of them what the centre asks for.

One call per round, whatever the number of shards: a list of orders, of which the last is answered.
Motifs, activations and problems have numbers, which the centre gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from motifold.data import Data, Facts
from motifold.engines.cpu.engine import CPUProblem
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.dask import shelf
from motifold.engines.dask.parcels import Parcel, Seen, open_parcel
from motifold.engines.dask.plan import Node, Shard, merged
from motifold.engines.dask.shard import ShardEngine, Sweeps
from motifold.model import Array, Mask, Model, Penalties
from motifold.model.motifs import in_data_scale, motif_grams
from motifold.solvers import Solver


@dataclass(frozen=True)
class Order:
    """What is to be done to all shards of a plan.

    Attributes
    ----------
    plan, model : the recording, and which penalties
    verb : a method of ``_Verbs``
    given : its arguments, the same for all
    each : further ones of every shard, by index
    """

    plan: int
    model: int
    verb: str
    given: dict[str, Any] = field(default_factory=dict)
    each: dict[int, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """Of every shard what it told, and the sums of what was to be summed."""

    told: dict[int, Any]
    sums: dict[Node, tuple[Array, ...]]


@dataclass
class Held:
    """A shard and all that belongs to it."""

    shard: Shard
    data: Data
    engines: dict[int, ShardEngine] = field(default_factory=dict)
    H: dict[int, Array] = field(default_factory=dict)
    problems: dict[int, CPUProblem] = field(default_factory=dict)
    sweeps: Sweeps | None = None


class Hands:
    """The shards of one worker.

    Parameters
    ----------
    threads : for the work on each of them
    """

    def __init__(self, threads: int | None = None) -> None:
        self.workers = Workers(threads)
        self.workers.__enter__()
        self._open = True
        self._motifs: dict[int, Array] = {}
        self._plans: dict[int, dict[int, Held]] = {}
        self._sizes: dict[int, int] = {}
        self._grams = Memo(3)

    def echo(self, size: int = 0) -> Array:
        """So many zeros: what a call costs."""
        return np.zeros(size)

    def load(self, plan: int, parcels: list[Parcel], n: int) -> Any:
        """Take shards of a plan, of n in all, and look at their values."""
        return _told(lambda: self._load(plan, parcels, n))

    def _load(self, plan: int, parcels: list[Parcel], n: int) -> dict[int, Seen]:
        self._sizes[plan] = n
        held = self._plans.setdefault(plan, {})
        found = {}
        for parcel in parcels:
            data, seen = open_parcel(parcel)
            held[parcel.shard.index] = Held(parcel.shard, data)
            found[parcel.shard.index] = seen
        return found

    def keep_only(self, plan: int, shards: Iterable[int]) -> None:
        """Forget all but these shards of a plan, and whatever was made of them."""
        wanted = set(shards)
        self._motifs.clear()
        self._grams = Memo(3)
        for other in list(self._plans):
            if other != plan:
                del self._plans[other]
        held = self._plans.get(plan, {})
        for index in list(held):
            if index not in wanted:
                del held[index]
                continue
            there = held[index]
            held[index] = Held(there.shard, there.data)

    def run(self, orders: list[Order]) -> Any:
        """Do them one after another; the answer to the last."""
        return _told(lambda: self._run(orders))

    def _run(self, orders: list[Order]) -> Answer:
        answer = Answer({}, {})
        for order in orders:
            answer = self._do(order)
        return answer

    def _do(self, order: Order) -> Answer:
        verb, told, sums = getattr(self, "do_" + order.verb), {}, {}
        if order.verb in _OF_ALL:
            verb(order, **order.given)
            return Answer({}, {})
        for index, held in sorted(self._plans.get(order.plan, {}).items()):
            engine = held.engines.get(order.model)
            further = () if order.each is None else (order.each.get(index),)
            told[index], arrays = _split(verb(held, engine, *further, **order.given))
            if arrays:
                sums[0, index] = arrays
        return Answer(told, merged(sums, self._sizes.get(order.plan, 0)))

    def close(self) -> None:
        """Let everything go."""
        self._plans.clear()
        self._motifs.clear()
        if self._open:
            self._open = False
            self.workers.__exit__(None, None, None)

    def __del__(self) -> None:
        self.close()

    # --- of no shard in particular ----------------------------------------------------------

    def do_forget(self, order: Order, plans: list[int], handles: list[int]) -> None:
        for plan in plans:
            self._plans.pop(plan, None)
        for number in handles:
            self._motifs.pop(number, None)
            for shards in self._plans.values():
                for held in shards.values():
                    held.H.pop(number, None)
                    held.problems.pop(number, None)

    def do_motifs(self, order: Order, number: int, W: Array) -> None:
        self._motifs[number] = np.array(W, order="C")

    # --- models -----------------------------------------------------------------------------

    def do_model(
        self,
        held: Held,
        engine: ShardEngine | None,
        support: Mask | None,
        number: int,
        model: Model,
        facts: Facts,
    ) -> None:
        problem = Problem(model, held.data, facts, None, support, {"spectra": None})
        shared = next(iter(held.engines.values()), None)
        if shared is not None:
            problem = shared.problem.with_model(model)
        held.engines[number] = ShardEngine(problem, held.shard, self._grams_of, self.workers)

    def _grams_of(self, W: Array) -> tuple[Array, Array]:
        return self._grams.get((W,), lambda: motif_grams(W))

    def do_penalties(
        self, held: Held, engine: ShardEngine, number: int, penalties: Penalties
    ) -> None:
        held.engines[number] = engine.with_model(penalties)

    # --- activations ------------------------------------------------------------------------

    def do_drawn(self, held: Held, engine: ShardEngine, new: int, seed: int, skip: int) -> None:
        held.H[new] = engine.drawn_rows(seed, skip)

    def do_put(
        self, held: Held, engine: ShardEngine, rows: Array, new: int, raw: bool = False
    ) -> None:
        held.H[new] = np.array(rows, order="C") if raw else engine.finished(rows)

    def do_zeros(
        self, held: Held, engine: ShardEngine, new: int, problem: int | None = None
    ) -> None:
        held.H[new] = engine.zeros(None if problem is None else held.problems[problem])

    def do_level(self, held: Held, engine: ShardEngine, new: int, values: Array) -> None:
        held.H[new] = engine.level(values)

    def do_scaled(self, held: Held, engine: ShardEngine, new: int, old: int, factor: float) -> None:
        H = held.H[old].copy()
        H[:, : engine.model.n_motifs] *= H.dtype.type(factor)
        held.H[new] = H

    def do_ahead(
        self, held: Held, engine: ShardEngine, new: int, now: int, before: int, beta: float
    ) -> None:
        held.H[new] = engine.ahead(held.H[now], held.H[before], beta)

    def do_planted(
        self, held: Held, engine: ShardEngine, new: int, old: int, k: int, t: int, level: float
    ) -> None:
        held.H[new] = engine.planted(held.H[old], k, t, level)

    def do_shifted(
        self, held: Held, engine: ShardEngine, new: int, old: int, shifts: dict[int, int]
    ) -> None:
        held.H[new] = engine.shifted(held.H[old], shifts)

    def do_settled(self, held: Held, engine: ShardEngine, new: int, old: int, problem: int) -> None:
        held.H[new] = engine.settled(held.H[old], held.problems[problem])

    def do_edges(self, held: Held, engine: ShardEngine, H: int) -> tuple[Array, Array]:
        rows, reach = held.H[H][held.shard.own], held.shard.reach
        return rows[:reach].copy(), rows[len(rows) - reach :].copy()

    def do_halos(self, held: Held, engine: ShardEngine, halos: tuple[Any, Any], H: int) -> None:
        before, after = halos
        rows, own = held.H[H], held.shard.own
        if before is not None:
            rows[: own.start] = before[len(before) - own.start :]
        if after is not None:
            rows[own.stop :] = after[: len(rows) - own.stop]

    def do_rows(
        self, held: Held, engine: ShardEngine, H: int, a: int = 0, b: int | None = None
    ) -> Array:
        shard = held.shard
        first, last = max(a, shard.a), min(shard.b if b is None else b, shard.b)
        shift = shard.left - shard.a
        return held.H[H][first + shift : max(first, last) + shift].copy()

    def do_shelved(
        self,
        held: Held,
        engine: ShardEngine,
        token: str,
        H: int,
        scales: Array,
        order: np.ndarray,
    ) -> None:
        rows = held.H[H][held.shard.own]
        model, dtype = engine.model, engine.problem.dtype
        shelf.put(token, in_data_scale(rows, scales, model.scale, order, dtype))

    def do_means(self, held: Held, engine: ShardEngine, H: int) -> Array:
        return held.H[H][held.shard.own].sum(axis=0, dtype=np.float64)

    def do_turned(
        self, held: Held, engine: ShardEngine, ahead: int, now: int, before: int
    ) -> float:
        own = held.shard.own
        step, last = held.H[ahead][own] - held.H[now][own], held.H[now][own] - held.H[before][own]
        return float(np.einsum("tk,tk->", step, last, dtype=np.float64))

    # --- at given factors -------------------------------------------------------------------

    def do_start_sums(self, held: Held, engine: ShardEngine, W: int, H: int) -> tuple[float, float]:
        return engine.start_sums(self._motifs[W], held.H[H])

    def do_residual(self, held: Held, engine: ShardEngine, W: int, H: int) -> float:
        return engine.own_residual(self._motifs[W], held.H[H])

    def do_shares(self, held: Held, engine: ShardEngine, W: int, H: int) -> Array:
        return engine.shares(self._motifs[W], held.H[H])

    def do_worst(
        self, held: Held, engine: ShardEngine, W: int, H: int, k: int | None
    ) -> tuple[float, int, Array] | None:
        return engine.worst(self._motifs[W], held.H[H], k)

    def do_columns(self, held: Held, engine: ShardEngine, W: int, H: int) -> _Summed:
        return _Summed(engine.columns(self._motifs[W], held.H[H]))

    # --- the problem in the activations -----------------------------------------------------

    def do_problem(self, held: Held, engine: ShardEngine, new: int, W: int) -> None:
        held.problems[new] = engine.activation_problem(self._motifs[W])

    def do_exact(self, held: Held, engine: ShardEngine, new: int, W: int) -> None:
        held.problems[new] = engine.exact_problem(self._motifs[W])

    def do_filled(self, held: Held, engine: ShardEngine, new: int, problem: int, H: int) -> None:
        held.problems[new] = engine.filled(held.problems[problem], held.H[H])

    def do_sums(self, held: Held, engine: ShardEngine, H: int, problem: int, brief: bool) -> Array:
        return engine.sums(held.H[H], held.problems[problem], brief)

    def do_overlap(self, held: Held, engine: ShardEngine, H: int, problem: int) -> float:
        return engine.overlap(held.problems[problem], held.H[H])

    def do_begin(
        self, held: Held, engine: ShardEngine, H: int, problem: int, solver: Solver
    ) -> None:
        held.sweeps = Sweeps(engine, held.H[H], held.problems[problem], solver)

    def do_sweep(
        self, held: Held, engine: ShardEngine, message: dict[str, Array] | None
    ) -> tuple[float, Array | None, dict[str, Array]]:
        assert held.sweeps is not None
        held.sweeps.told(message or {})
        moved, before = held.sweeps.sweep()
        return moved, before, held.sweeps.edges()

    def do_end(
        self, held: Held, engine: ShardEngine, message: dict[str, Array] | None, new: int
    ) -> None:
        assert held.sweeps is not None
        held.sweeps.told(message or {})
        held.H[new] = held.sweeps.done()
        held.sweeps = None


_OF_ALL = {"forget", "motifs"}


@dataclass(frozen=True)
class _Summed:
    """Arrays that are summed over shards on their way."""

    arrays: tuple[Array, ...]


def _split(result: Any) -> tuple[Any, tuple[Array, ...]]:
    return (None, result.arrays) if isinstance(result, _Summed) else (result, ())


@dataclass(frozen=True)
class Failed:
    """An error of the work itself, as against that of a worker that is gone."""

    error: BaseException


def _told(work: Callable[[], Any]) -> Any:
    """What the work gives, or the error that it ended with."""
    try:
        with np.errstate(all="ignore"):  # the centre judges what the numbers say
            return work()
    except Exception as error:
        return Failed(error)


def only(order: Order, shards: Iterable[int]) -> Order:
    """The order with the arguments of these shards alone."""
    if order.each is None:
        return order
    return replace(order, each={i: order.each[i] for i in shards if i in order.each})
