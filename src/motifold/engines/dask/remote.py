"""Handles of a cluster: what is as long as the data has a number here, and is an array there.

What needs no answer is queued and goes with the next call.
"""

from __future__ import annotations

import uuid
import weakref
from typing import Any

import numpy as np

from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.dask.crew import Crew
from motifold.engines.dask.hands import Order
from motifold.engines.dask.store import Store
from motifold.model import Array
from motifold.solvers import ANLS, HALS, MU, Solver


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


class RemoteHandles(CPUEngine):
    """The workers of a crew, what is said to them, and the activations that they have.

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
        share = np.sqrt(alpha) if draw_W and draw_H else alpha
        if draw_H:
            drawn = self._new("scaled", old=drawn.number, factor=float(share))
        return (W * dtype.type(share) if draw_W else W), drawn

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
