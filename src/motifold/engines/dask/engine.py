"""The engine of a cluster: W, P, B and sums at the centre, all that is long with the workers.

It takes the order of things from the CPU's engine. What is as long as the data has a number here
and is an array, shard by shard, there. What needs no answer is queued and goes with the next call,
so that an iteration is one call per worker for P and B, one for each sweep and one for the sums.
"""

from __future__ import annotations

import uuid
import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from motifold.data import Data, Facts
from motifold.engines.base import Sums, noise
from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.statistics import gram_from_tail
from motifold.engines.cpu.stretches import stretches
from motifold.engines.cpu.threads import Workers
from motifold.engines.dask.crew import Crew
from motifold.engines.dask.hands import Order
from motifold.engines.dask.seams import Seams
from motifold.engines.dask.shard import ABOVE, BELOW, FILL, FITTED, MATCH, MOVED, NEAR, SLOPE
from motifold.engines.dask.store import Store
from motifold.model import Array, Penalties
from motifold.model.certificate import kkt_ratio
from motifold.model.motifs import moved_along
from motifold.solvers import ANLS, HALS, MU, Inner, Solver

_TRUST = 1e4  # as in the CPU's engine


class Handle:
    """Something of length T on the workers; forgotten there when it is here.

    Attributes
    ----------
    array : the activations, once they have been fetched for good
    """

    def __init__(self, crew: Crew, dtype: np.dtype) -> None:
        self.number = crew.number()
        self.dtype = dtype
        self.array: Array | None = None
        self.age = crew.age
        weakref.finalize(self, crew.forget, "handle", self.number).atexit = False


class RemoteProblem(Handle):
    """The problem in the activations, there.

    Attributes
    ----------
    exact : whether it is in float64, components by falling norm
    fill : what its missing entries are those of, if any have been entered
    """

    def __init__(self, crew: Crew, W: Array, dtype: np.dtype, exact: bool = False) -> None:
        super().__init__(crew, dtype)
        self.W, self.exact = W, exact


class ClusterEngine(CPUEngine):
    """A problem on the workers of a crew; handles of activations are ``Handle``.

    Parameters
    ----------
    problem : a model and its data, of which nothing is read here
    workers : threads of the centre, for the motifs
    store : the recording with the workers
    """

    def __init__(self, problem: Problem, workers: Workers, store: Store) -> None:
        super().__init__(problem, workers)
        self.store, self.crew = store, store.crew
        self._number = self.crew.number()
        self._numbers = Memo(4)  # W → its number with the workers
        self._handles = Memo(4)  # array → handle
        self._known_sums = Memo(2)  # problem, H, brief → the sums
        self._slopes = Memo(1)  # H → slope of the matches
        self._introduce()

    def _introduce(self) -> None:
        support = self.problem.support
        each = {
            shard.index: None if support is None else np.ascontiguousarray(support[shard.seen])
            for shard in self.store.plan.shards
        }
        given = {"number": self._number, "model": self.model, "facts": self.facts}
        self._later("model", each, **given)

    hides = property(lambda self: self.store.hides)

    def check_solver(self, solver: Solver, accelerated: bool) -> None:
        """Raise where a solver cannot work by shards."""
        L = self.model.L
        by_tiles = isinstance(solver, HALS) and (
            solver.order == "tiles" or (accelerated and solver.order == "entries") or L == 1
        )
        if by_tiles or isinstance(solver, MU) or (isinstance(solver, ANLS) and L == 1):
            return
        raise ValueError(
            f"solver={solver!r} does not run on a cluster: it goes through all of time in one "
            'order, and shards cannot. Use "hals" with acceleration="auto", HALS(order="tiles") '
            'or "mu", or fit on one machine with motifold.CNMF.'
        )

    # --- calls ------------------------------------------------------------------------------

    def _order(self, verb: str, given: dict[str, Any], each: dict[int, Any] | None = None) -> Order:
        return Order(self.store.number, self._number, verb, given, each)

    def _later(self, verb: str, each: dict[int, Any] | None = None, **given: Any) -> None:
        self.crew.later(self._order(verb, given, each))

    def _ask(self, verb: str, each: dict[int, Any] | None = None, **given: Any) -> list[Any]:
        return self.crew.ask(self._order(verb, given, each))[0]

    def _new(self, verb: str, dtype: Any = None, each: Any = None, **given: Any) -> Handle:
        """A new handle, of what a verb makes."""
        handle = Handle(self.crew, np.dtype(dtype or self.problem.dtype))
        self._later(verb, each, new=handle.number, **given)
        return handle

    def _sent(self, W: Array) -> int:
        """The number that motifs have with the workers."""

        def send() -> Handle:
            handle = Handle(self.crew, W.dtype)
            self._later("motifs", number=handle.number, W=W)
            return handle

        return int(self._numbers.get((W,), send).number)

    def _remote(self, H: Any) -> Handle:
        """The handle of activations that may still be an array here."""
        return self._handles.get((H,), lambda: self.put(H)) if isinstance(H, np.ndarray) else H

    def forget(self) -> None:
        """Everything that was made on the workers is gone: they begin with the data alone."""
        for memo in vars(self).values():
            if isinstance(memo, Memo):
                memo.clear()
        self._introduce()

    # --- handles ----------------------------------------------------------------------------

    def draw(self, seed: int, W: Array | None, H: Any) -> tuple[Array, Any]:
        """The same numbers as the CPU's engine draws, the activations' where they stay."""
        problem, dtype, n = self.problem, self.problem.dtype, self.model.n_motifs
        draw_W, draw_H = W is None, H is None
        size = problem.N * problem.L * n
        if W is None:
            W = np.random.default_rng(seed).random((problem.N, problem.L, n), dtype=np.float64)
            W[~self.store.features] = 0
        W = np.array(W, dtype=dtype, order="C")
        if self.model.background:
            W = self._with_background(W)
        drawn = self._new("drawn", seed=seed, skip=size) if draw_H else self._put(H, raw=False)
        self._exchange(drawn)
        if not (draw_W or draw_H):
            return W, drawn
        found = np.array(self._ask("start_sums", W=self._sent(W), H=drawn.number))
        alpha = self._scale_for(*found.sum(axis=0).tolist())
        on_W, on_H = {
            (True, True): (np.sqrt(alpha), np.sqrt(alpha)),
            (True, False): (alpha, 1.0),
            (False, True): (1.0, alpha),
        }[draw_W, draw_H]
        if draw_H:
            drawn = self._new("scaled", old=drawn.number, factor=float(on_H))
        return (W * dtype.type(on_W) if draw_W else W), drawn

    def put(self, H: Any) -> Any:
        """Rows to whoever has their shard; in the data's precision."""
        return H if isinstance(H, Handle) else self._put(H, raw=True)

    def _put(self, H: Array, raw: bool) -> Handle:
        """``raw``: as they are; else confined to where they may be, and with the background's."""
        dtype = self.problem.dtype
        each = {
            shard.index: np.ascontiguousarray(H[shard.seen], dtype=dtype)
            for shard in self.store.plan.shards
        }
        return self._new("put", each=each, raw=raw)

    def put_motifs(self, W: Array) -> Array:
        """The array itself, in the data's precision."""
        return np.ascontiguousarray(W, dtype=self.problem.dtype)

    def gather(self, H: Any) -> Array:
        """All rows of them, here."""
        if isinstance(H, np.ndarray):
            return H
        if H.array is not None:
            return H.array
        if H.age != self.crew.age:
            raise ConnectionResetError("They were on a worker that is gone.")
        return np.concatenate(self._ask("rows", H=H.number))

    def delivered(self, H: Any, scales: Array, order: np.ndarray) -> Any:
        """On a cluster a dask array that stays with the workers."""
        shards = self.store.plan.shards
        tokens = [uuid.uuid4().hex for _ in shards]
        given = {"H": self._remote(H).number, "scales": scales, "order": order}
        self._ask("shelved", dict(enumerate(tokens)), **given)
        sizes = [(shard.b - shard.a, len(order)) for shard in shards]
        return self.crew.kept(self.store.number, tokens, sizes, self.problem.dtype)

    def rows(self, H: Any, a: int, b: int) -> Array:
        """Rows a to b, here."""
        return np.concatenate(self._ask("rows", H=self._remote(H).number, a=a, b=b))

    def pieces(self, H: Handle) -> list[Array]:
        """The rows of every shard, here."""
        return self._ask("rows", H=H.number)

    def _exchange(self, H: Handle) -> None:
        """Tell every shard the rows that its neighbours have."""
        edges = self._ask("edges", H=H.number)
        joined = self.store.plan.joined
        each = {}
        for i in range(len(edges)):
            before = edges[i - 1][1] if i and joined[i - 1] else None
            each[i] = before, (edges[i + 1][0] if joined[i] else None)
        self._later("halos", each, H=H.number)

    def ahead(self, now: Any, before: Any, beta: float) -> Any:
        """Of motifs a new array, of activations a new handle."""
        if isinstance(now, np.ndarray) and now.ndim == 3:
            return super().ahead(now, before, beta)
        now, before = self._remote(now), self._remote(before)
        given = {"now": now.number, "before": before.number, "beta": beta}
        return self._new("ahead", now.dtype, **given)

    # --- at given factors -------------------------------------------------------------------

    def residual(self, W: Array, H: Any) -> float:
        """One pass over the data."""
        return sum(self._ask("residual", W=self._sent(W), H=self._remote(H).number))

    def power_shares(self, W: Array, H: Any) -> Array:
        """As the CPU's engine has it."""
        if self.facts.squared_norm == 0:
            return np.zeros(self.model.K)
        found = self._ask("shares", W=self._sent(W), H=self._remote(H).number)
        return np.maximum(np.sum(found, axis=0) / self.facts.squared_norm, 0.0)

    def means(self, H: Any) -> Array:
        """In float64."""
        return np.sum(self._ask("means", H=self._remote(H).number), axis=0) / self.problem.T

    # --- the problem in the motifs ----------------------------------------------------------

    def _new_columns(self, W: Array, H: Any) -> tuple[Array, Array]:
        L, K, dtype = self.problem.L, self.problem.K, self.problem.dtype
        remote = self._remote(H)
        order = self._order("columns", {"W": self._sent(W), "H": remote.number})
        P, base, tails, *slope = self.crew.ask(order)[1]
        self._slopes.put((H,), slope[0].astype(dtype) if slope else None)
        B = gram_from_tail(base.reshape(K, L, K), tails.copy()).astype(dtype, copy=False)
        between = self.model.penalties.between_motifs(L)
        return P.astype(dtype), B if between is None else B + between.astype(B.dtype)

    def _slope_of_matches(self, H: Any) -> Array | None:
        return self._slopes.get((H,), lambda: None)

    # --- the problem in the activations -----------------------------------------------------

    def zeros(self, problem: Any = None) -> Any:
        """A handle."""
        if problem is None:
            return self._new("zeros")
        return self._new("zeros", problem.dtype, problem=problem.number)

    def level(self, values: Array) -> Any:
        """A handle."""
        handle = self._new("level", values=np.asarray(values))
        self._exchange(handle)
        return handle

    def activation_problem(self, W: Array, H: Any = None) -> Any:
        """Queued: the pass over the data comes with the first question about it."""

        def made() -> RemoteProblem:
            problem = RemoteProblem(self.crew, W, self.problem.dtype)
            self._later("problem", new=problem.number, W=self._sent(W))
            return problem

        problem = self._problems.get((W,), made)
        return problem if H is None else self._filled_problem(problem, H)

    def exact_problem(self, W: Array) -> Any:
        """Queued, too."""
        problem = RemoteProblem(self.crew, W, np.dtype(np.float64), exact=True)
        self._later("exact", new=problem.number, W=self._sent(W))
        return problem

    def _filled_problem(self, problem: Any, H: Any) -> Any:
        if not self.hides:
            return problem

        def filled() -> RemoteProblem:
            new = RemoteProblem(self.crew, problem.W, problem.dtype, problem.exact)
            given = {"problem": problem.number, "H": self._remote(H).number}
            self._later("filled", new=new.number, **given)
            return new

        return self._filled.get((problem, H), filled)

    def _swept(
        self, H: Any, problem: Any, solver: Solver, inner: Inner, reuse: bool = False
    ) -> Any:
        """New activations: a call to everybody for each sweep, and one for the end."""
        H = self._remote(H)
        given = {"H": H.number, "problem": problem.number, "solver": solver}
        self._later("begin", **given)
        n = self.model.n_motifs
        penalties = self.model.penalties.for_components(n)
        seams = Seams(self.store.plan, self.model.L, penalties, problem.dtype)
        messages: dict[int, dict[str, Array]] | None = None

        def sweep() -> float:
            nonlocal messages
            found = self._ask("sweep", messages or {})
            messages, moved = seams.closed(found)
            return moved

        inner.repeat(sweep)
        new = Handle(self.crew, problem.dtype)
        self._later("end", messages, new=new.number)
        if self.hides:
            self._exchange(new)
        return new

    def _sums(self, H: Any, problem: Any, *, brief: bool = False) -> Sums:
        keys = problem, H, brief
        return self._known_sums.get(keys, lambda: self._new_sums(H, problem, brief))

    def _new_sums(self, H: Any, problem: Any, brief: bool) -> Sums:
        handle = self._remote(H)
        given = {"H": handle.number, "problem": problem.number, "brief": brief}
        found = np.sum(self._ask("sums", **given), axis=0)
        K = self.model.K
        numbers: dict[str, Any] = {
            name: float(found[place])
            for name, place in (
                ("fitted", FITTED),
                ("slope", SLOPE),
                ("above", ABOVE),
                ("below", BELOW),
                ("match", MATCH),
                ("near", NEAR),
                ("fill", FILL),
                ("moved", MOVED),
            )
        }
        sums = Sums(**numbers, mass=found[8 : 8 + K], power=found[8 + K :])
        if not self.hides:
            return sums
        return replace(sums, off_scale=self._off_scale_of(handle, problem, sums))

    def _off_scale_of(self, H: Handle, problem: Any, sums: Sums) -> float:
        """As the CPU's engine has it."""
        everywhere = sums.fitted + sums.slope - sums.match - sums.near
        slope, observed = sums.slope, everywhere - sums.fill
        if observed < _TRUST * noise(problem.dtype) * everywhere:
            if problem.exact and self.problem.dtype != np.float64:
                return np.inf
            overlap = sum(self._ask("overlap", H=H.number, problem=problem.number))
            observed = self.residual(problem.W, H) - self.facts.squared_norm + 2 * overlap
            slope = observed - overlap + sums.match + sums.near
        penalties = self.model.penalties
        slope += float(penalties.l1_H @ sums.mass + penalties.l2_H @ sums.power)
        return kkt_ratio(slope**2, max(0.0, observed) ** 2)

    def turned(self, ahead: Any, now: Any, before: Any) -> bool:
        """By the same rule."""
        numbers = {"ahead": ahead.number, "now": now.number, "before": before.number}
        return bool(sum(self._ask("turned", **numbers)) > 0)

    def settled(self, H: Any, problem: Any) -> Any:
        """A handle."""
        return self._new("settled", old=H.number, problem=problem.number)

    # --- moves ------------------------------------------------------------------------------

    def part(self) -> tuple[ClusterEngine, list[tuple[int, int]]] | None:
        """Stretches of the recording, sent to the workers as one of their own."""
        stores = []

        def look(data: Data, width: int, *, nonnegative: bool, scale: float) -> Facts:
            cutting = self.store.cutting
            stores.append(Store.sent(self.crew, data, cutting, signed=True, scale=scale))
            return stores[0].facts

        found = stretches(self.problem, look, read=False)
        if found is None:
            return None
        problem, rows = found
        return ClusterEngine(problem, self.workers, stores[0]), rows

    def with_penalties(self, penalties: Penalties) -> ClusterEngine:
        """The same shards with other penalties."""
        model = self.model.with_penalties(penalties)
        return ClusterEngine(self.problem.with_model(model), self.workers, self.store)

    def take(self, H: Any, rows: list[tuple[int, int]] | None) -> Any:
        """Of a part an array, which its engine sends to its shards."""
        if rows is None:
            return H
        return np.concatenate([self.rows(H, a, b) for a, b in rows])

    def worst_window(self, W: Array, H: Any, k: int | None = None) -> tuple[int, Array] | None:
        """One pass over the data."""
        told = self._ask("worst", W=self._sent(W), H=self._remote(H).number, k=k)
        found = [place for place in told if place is not None]
        if not found:
            return None
        _, row, window = max(found, key=lambda place: place[0])  # of several the first
        return row, window

    def plant(self, W: Array, H: Any, k: int, t: int, window: Array) -> tuple[Array, Any]:
        """As the CPU's engine has it."""
        W = W.copy()
        norm = np.linalg.norm(window)
        level = np.sqrt(norm)
        W[:, :, k] = window.T * (level / norm)
        old = self._remote(H).number
        return W, self._new("planted", old=old, k=k, t=t, level=float(level))

    def shift(self, W: Array, H: Any, shifts: dict[int, int]) -> tuple[Array, Any]:
        """Activations stay within their segments, not within their shards."""
        W = W.copy()
        for k, by in shifts.items():
            W[:, :, k] = moved_along(W[:, :, k], by, axis=1)
        moved = self._new("shifted", old=self._remote(H).number, shifts=shifts)
        self._exchange(moved)
        return W, moved
