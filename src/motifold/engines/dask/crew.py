"""The centre's side of the workers: who has which shard, and one call to each per round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

import numpy as np

from motifold.engines.dask import shelf
from motifold.engines.dask.hands import Answer, Failed, Hands, Order, only
from motifold.engines.dask.parcels import Parcel, Seen
from motifold.engines.dask.plan import merged
from motifold.model import Array

Member = Hashable
Packing = Callable[[int], Parcel]


class Lost(Exception):
    """A worker is gone, and what it held; or others have come, and shards are to be moved."""


class Crew(ABC):
    """Those who hold shards; orders are queued until an answer is wanted.

    Attributes
    ----------
    rounds : how many calls there have been to all together
    age : how often all that was made of shards has been forgotten
    """

    def __init__(self) -> None:
        self.rounds, self.age = 0, 0
        self._queue: list[Order] = []
        self._gone: deque[tuple[str, int]] = deque()  # filled by finalizers, in any thread
        self._numbers = count(1)
        self._shards: dict[int, dict[Member, list[int]]] = {}
        self._sizes: dict[int, int] = {}

    # --- whoever there is -------------------------------------------------------------------

    @property
    @abstractmethod
    def members(self) -> list[Member]:
        """In a fixed order."""

    @abstractmethod
    def _call(self, calls: dict[Member, tuple[str, tuple[Any, ...]]]) -> dict[Member, Any]:
        """Methods of ``Hands``, at the same time; ``Lost`` if one of them is not there."""

    def _answers(self, calls: dict[Member, tuple[str, tuple[Any, ...]]]) -> dict[Member, Any]:
        self.rounds += 1
        found = self._call(calls)
        for result in found.values():
            if isinstance(result, Failed):
                raise result.error
        return found

    def echo(self, size: int = 0) -> None:
        """A round in which nothing is done, but so many numbers come from everybody."""
        self._answers(dict.fromkeys(self.members, ("echo", (size,))))

    # --- shards -----------------------------------------------------------------------------

    def load(self, n: int, pack: Packing) -> tuple[int, list[Seen]]:
        """Give out n shards; the number of their plan, and what was seen of each."""
        plan = next(self._numbers)
        self._shards[plan], self._sizes[plan] = shared_out(n, self.members, {}), n
        return plan, self._deliver(plan, self._shards[plan], pack)

    def _deliver(self, plan: int, wanted: dict[Member, list[int]], pack: Packing) -> list[Seen]:
        """Send shards, to each worker one at a time: rows that are packed here take memory."""
        seen: dict[int, Seen] = {}
        for turn in range(max(map(len, wanted.values()), default=0)):
            parcels = {m: pack(shards[turn]) for m, shards in wanted.items() if turn < len(shards)}
            calls: dict[Member, tuple[str, tuple[Any, ...]]] = {
                member: ("load", (plan, [parcel], self._sizes[plan]))
                for member, parcel in self._ready(parcels).items()
            }
            for found in self._answers(calls).values():
                seen |= found
        return [seen[index] for index in sorted(seen)]

    def _ready(self, parcels: dict[Member, Parcel]) -> dict[Member, Parcel]:
        """The parcels as they are sent."""
        return parcels

    def recover(self, plan: int, pack: Packing) -> None:
        """Shards of those who are gone go to others; all that was made of any is forgotten."""
        self._queue.clear()
        self._gone.clear()
        self.age += 1
        before = self._shards[plan]
        self._shards = {plan: shared_out(self._sizes[plan], self.members, before)}
        now = self._shards[plan]
        kept = {m: [i for i in now[m] if i in before.get(m, [])] for m in now}
        self._answers({m: ("keep_only", (plan, shards)) for m, shards in kept.items()})
        missing = {m: [i for i in now[m] if i not in kept[m]] for m in now}
        self._deliver(plan, missing, pack)

    # --- orders -----------------------------------------------------------------------------

    def number(self) -> int:
        """A number that nothing has yet."""
        return next(self._numbers)

    def forget(self, kind: str, number: int) -> None:
        """Nobody will ask for this plan or handle again; safe in any thread."""
        self._gone.append((kind, number))

    def later(self, order: Order) -> None:
        """To be done before the next answer."""
        self._queue.append(order)

    def ask(self, order: Order) -> tuple[list[Any], tuple[Array, ...]]:
        """Do what is queued and then this: what every shard told, and the sums over them."""
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        orders = self._queue
        self._queue = []
        if gone:
            plans = [number for kind, number in gone if kind == "plan"]
            handles = [number for kind, number in gone if kind == "handle"]
            for plan in plans:
                self._shards.pop(plan, None)
            given = {"plans": plans, "handles": handles}
            # Last, since an order in the queue may still be about them.
            orders = [*orders, Order(0, 0, "forget", given)]
        orders = [*orders, order]
        calls: dict[Member, tuple[str, tuple[Any, ...]]] = {}
        for member in self.members:
            mine = [only(o, self._shards.get(o.plan, {}).get(member, ())) for o in orders]
            calls[member] = "run", (mine,)
        answers = self._answers(calls).values()
        told: dict[int, Any] = {}
        sums: dict[Any, tuple[Array, ...]] = {}
        for answer in answers:
            assert isinstance(answer, Answer)
            told |= answer.told
            sums |= answer.sums
        summed = merged(sums, self._sizes[order.plan]) if sums else {}
        return [told[i] for i in sorted(told)], next(iter(summed.values()), ())

    def kept(self, plan: int, tokens: list[str], sizes: list[tuple[int, int]], dtype: Any) -> Any:
        """What shards have put on the shelf, as one array."""
        return np.concatenate([shelf.take(token) for token in tokens])

    def close(self) -> None:
        """Let all of them go."""
        self._queue.clear()
        self._shards.clear()


class LocalCrew(Crew):
    """Hands in this process: the same shards in the same order, and nobody to call."""

    def __init__(self, n: int = 1, threads: int | None = 1) -> None:
        super().__init__()
        self._hands = {i: Hands(threads) for i in range(n)}

    @property
    def members(self) -> list[Member]:
        """Numbers."""
        return list(self._hands)

    def _call(self, calls: dict[Member, tuple[str, tuple[Any, ...]]]) -> dict[Member, Any]:
        return {
            member: getattr(self._hands[member], method)(*args)  # type: ignore[index]
            for member, (method, args) in calls.items()
        }

    def close(self) -> None:
        """Let all of them go."""
        super().close()
        for hands in self._hands.values():
            hands.close()


def shared_out(
    n: int, members: list[Member], before: dict[Member, list[int]]
) -> dict[Member, list[int]]:
    """Shards for everybody, about equally many: their own as far as may be, then runs of others."""
    if not members:
        raise Lost("no workers")
    shares = {m: n // len(members) + (i < n % len(members)) for i, m in enumerate(members)}
    # Whoever has most is left with the larger shares: fewer move.
    ranked = sorted(members, key=lambda m: -len(before.get(m, [])))
    sizes = sorted(shares.values(), reverse=True)
    shares = dict(zip(ranked, sizes, strict=True))
    mine = {m: before.get(m, [])[: shares[m]] for m in members}
    held = {i for shards in mine.values() for i in shards}
    free = deque(i for i in range(n) if i not in held)
    for m in members:
        wanted = shares[m] - len(mine[m])
        mine[m] = sorted([*mine[m], *(free.popleft() for _ in range(wanted))])
    return mine
