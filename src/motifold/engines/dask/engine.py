"""The engine of a cluster: W, P, B and sums at the centre, all that is long with the workers.

It takes the order of things from the CPU's engine. What is as long as the data has a number here
and is an array, shard by shard, there. What needs no answer is queued and goes with the next call,
so that an iteration is one call per worker for P and B, one for each sweep and one for the sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from motifold.data import Data, Facts
from motifold.engines.base import Sums, noise
from motifold.engines.cpu.statistics import gram_from_tail
from motifold.engines.cpu.stretches import stretches
from motifold.engines.dask.remote import Handle, RemoteHandles, RemoteProblem
from motifold.engines.dask.seams import Seams
from motifold.engines.dask.shard import ABOVE, BELOW, FILL, FITTED, MATCH, MOVED, NEAR, SLOPE
from motifold.engines.dask.store import Store
from motifold.model import Array, Penalties
from motifold.model.certificate import kkt_ratio
from motifold.model.motifs import moved_along
from motifold.solvers import Inner, Solver

_TRUST = 1e4  # as in the CPU's engine


class ClusterEngine(RemoteHandles):
    """A problem on the workers of a crew; handles of activations are ``Handle``."""

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
