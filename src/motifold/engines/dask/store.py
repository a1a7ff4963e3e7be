"""A recording that is with the workers: how it was cut, and how a shard is sent again."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from motifold.data import Data, Facts
from motifold.engines.dask.crew import Crew, Packing
from motifold.engines.dask.parcels import facts_of, parcel_of
from motifold.engines.dask.plan import Cutting, Plan, number_of_shards, plan_of
from motifold.model import Mask


@dataclass(eq=False)
class Store:
    """The shards of a recording; forgotten by the workers when it is here.

    Attributes
    ----------
    number : of the plan, with the crew
    pack : a shard, to be sent
    features : (N,), those with an observed entry
    hides : whether entries are missing
    """

    crew: Crew
    cutting: Cutting
    plan: Plan
    number: int
    pack: Packing
    facts: Facts
    features: Mask
    hides: bool

    @classmethod
    def sent(
        cls,
        crew: Crew,
        data: Data,
        cutting: Cutting,
        *,
        signed: bool,
        scale: float | None = None,
    ) -> Store:
        """Cut a recording, send it, and look at its values; ``scale`` as in ``scan``."""
        n = cutting.n_shards or number_of_shards(data.T, data.N, data.dtype.itemsize)
        plan = plan_of(cutting, list(data.layout.lengths), n)

        def pack(index: int):  # type: ignore[no-untyped-def]
            return parcel_of(data, plan.shards[index], signed)

        number, seen = crew.load(len(plan.shards), pack)
        features = seen[0].features.copy()
        for part in seen:
            features |= part.features
        facts, hides = facts_of(data, seen, scale), any(part.hides for part in seen)
        store = cls(crew, cutting, plan, number, pack, facts, features, hides)
        weakref.finalize(store, crew.forget, "plan", number).atexit = False
        return store

    def recover(self) -> None:
        """Send again what was lost with its worker."""
        self.crew.recover(self.number, self.pack)
