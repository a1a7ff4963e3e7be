"""What a step is to those who take several at once: who is alike, and how a batch is recorded."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from motifold.engines.base import Step
from motifold.engines.cuda.recording import Begun, Recording
from motifold.files import fingerprint_of_all
from motifold.solvers import HALS, Inner, Solver


def likeness_of(engine: Any) -> Hashable:
    """What has to be equal of problems, so that a step of one is a step of all."""
    problem, penalties = engine.problem, engine.model.penalties
    kept = problem.kept
    if "likeness" not in kept:
        arrays = [segment.rows(0, len(segment)) for segment in problem.segments]
        kept["likeness"] = fingerprint_of_all(arrays)
    data = kept["likeness"], problem.bounds.tobytes(), problem.scale, engine.device.name
    weights = None if problem.weights is None else problem.weights.tobytes()
    on_entries = penalties.l1_W, penalties.l2_W, penalties.l1_H, penalties.l2_H
    sizes = problem.N, problem.K, problem.L, problem.dtype, problem.boundary
    return *data, weights, *sizes, *(array.tobytes() for array in on_entries)


@dataclass(frozen=True)
class Asked:
    """A step that an engine would take together with others (``together.Party``)."""

    engine: Any
    W: Any
    H: Any
    solver: Solver
    inner: Inner

    @property
    def key(self) -> Hashable:
        """What has to be equal of steps that are taken as one."""
        inner = self.inner.max_sweeps, self.inner.shrink
        assert isinstance(self.solver, HALS)
        return self.engine.likeness, self.solver.order, inner

    @property
    def most(self) -> int:
        """As many as there is memory for."""
        most: int = self.engine.most_starts
        return most

    def here(self) -> AbstractContextManager[object]:
        """In it, its device is the current one."""
        device: AbstractContextManager[object] = self.engine.device.here()
        return device

    def recorded(self, starts: int) -> Recording:
        """By an engine of its own: what this one keeps is of one start."""
        engine = self.engine
        own = type(engine)(engine.problem, engine.workers, engine.device, engine.data)
        body = own.body(self.solver, self.inner)
        return Recording.of_several(engine.device, body, self.W, self.H, starts)

    def alone(self) -> Step:
        """As without a meeting."""
        return self.engine.step_alone(self.W, self.H, self.solver, self.inner, 0.0, None)

    def told(self, begun: Begun, number: int, starts: int) -> Step:
        """Its factors are copies: no start keeps those of all."""
        numbers = self.engine.told_of(begun.numbers(), number, starts)
        return self.engine.step_of(begun.W[number].copy(), begun.H[number].copy(), numbers)
