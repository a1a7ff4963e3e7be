"""Workers of a Dask cluster as a crew: an actor on each, called directly, made anew if it is lost.

The only module that imports ``distributed``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from motifold.engines.cpu.threads import free_cores
from motifold.engines.dask import shelf
from motifold.engines.dask.crew import Crew, Lost, Member
from motifold.engines.dask.hands import Hands
from motifold.engines.dask.parcels import DaskRows, Parcel, Shelved

# Seconds: for the first worker to be there, for others to come back after one was lost, and
# between two looks whether a worker that does not answer is still there.
_PATIENCE, _RETURN, _LOOK = 120.0, 5.0, 10.0


def client_of(client: Any) -> Any:
    """The client that was given, or the one that is active."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'motifold.dask needs Dask: pip install "motifold[dask]".', name="distributed"
        ) from error
    if client is not None:
        return client
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "There is no Dask client: start one first, client = distributed.Client(...) with the "
            "address of a scheduler (or nothing, for a cluster on this machine), or give it as "
            "client=."
        ) from None


def completed_of(futures: list[Any]) -> Iterator[Any]:
    """Futures of a cluster, as they are done."""
    from distributed import as_completed

    yield from as_completed(futures)


@contextmanager
def connected(where: str | int) -> Iterator[Any]:
    """A client of the scheduler at an address, or of so many workers that are started here."""
    client_of(False)  # an error, where Dask is not installed
    import dask
    from distributed import Client, LocalCluster

    if isinstance(where, str):
        with Client(where, direct_to_workers=True) as client:
            yield client
        return
    # A worker that has died is started again; on a busy machine that takes longer than 15 s.
    patient = {"distributed.deploy.lost-worker-timeout": "300s"}
    threads = max(1, free_cores() // where)
    with (
        dask.config.set(patient),
        LocalCluster(n_workers=where, threads_per_worker=threads, dashboard_address=":0") as local,
        Client(local, direct_to_workers=True) as client,
    ):
        yield client


_FAREWELL = 5  # seconds that a worker has to let go


class DaskCrew(Crew):
    """The workers of a client's cluster.

    Parameters
    ----------
    client : of ``distributed``
    threads : of each worker; None: as many as it has
    """

    def __init__(self, client: Any, threads: int | None = None) -> None:
        super().__init__()
        self.client = client
        self._threads = threads
        self._name = uuid.uuid4().hex[:8]
        self._actors: dict[Member, tuple[Any, Any]] = {}  # address → future and actor
        self._made = 0
        self._engage(_PATIENCE, 1)

    @property
    def members(self) -> list[Member]:
        """Addresses."""
        return list(self._actors)

    def newcomers(self) -> list[Member]:
        """Workers that hold nothing yet."""
        return [address for address in self._there() if address not in self._actors]

    def _there(self) -> dict[str, int]:
        """Addresses of workers that are there, and their threads."""
        return dict(sorted(self.client.nthreads().items()))

    def _engage(self, seconds: float, wanted: int) -> None:
        """Put an actor on every worker that has none; wait a while for as many as are wanted."""
        import distributed

        for number, most in ((wanted, seconds), (1, _PATIENCE)):
            with suppress(TimeoutError, distributed.TimeoutError):
                self.client.wait_for_workers(number, timeout=most)
        there = self._there()
        for address in set(self._actors) - set(there):
            self._forget(address)
        futures = {}
        for address, threads in there.items():
            if address not in self._actors:
                self._made += 1
                key = f"motifold-shards-{self._name}-{self._made}"
                options = {"workers": [address], "allow_other_workers": False, "actor": True}
                count = self._threads or threads
                futures[address] = self.client.submit(Hands, count, key=key, **options)
        for address, future in futures.items():
            actor = self._begun(address, future)
            if actor is not None:
                self._actors[address] = future, actor
        if not self._actors:
            raise RuntimeError(
                f"The cluster has no workers: none came within {_PATIENCE:.0f} s. See the "
                "scheduler's log, and start workers with: dask worker "
                f"{self.client.scheduler.address}"
            )

    def _begun(self, address: Member, future: Any) -> Any:
        """The actor that a worker was to make; None where it is gone again, or makes none.

        A worker that was killed just now may still count as there; nobody will make its actor.
        """
        import distributed

        for _ in range(int(_PATIENCE / _LOOK)):
            try:
                return future.result(timeout=_LOOK)
            except (TimeoutError, distributed.TimeoutError):
                if address not in self._there():
                    break
            except Exception:  # gone again meanwhile
                break
        with suppress(Exception):  # where the scheduler is gone, so is it
            self.client.cancel([future], force=True)
        return None

    def recover(self, plan: int, pack: Any) -> None:
        """After a while for lost workers to come back, whoever is there goes on."""
        self._engage(_RETURN, self._most)
        super().recover(plan, pack)

    # --- calls ------------------------------------------------------------------------------

    @property
    def _most(self) -> int:
        """Workers that there were before one was lost."""
        return max((len(shards) for shards in self._shards.values()), default=1)

    def _call(self, calls: dict[Member, tuple[str, tuple[Any, ...]]]) -> dict[Member, Any]:
        waiting: dict[Member, Any] = {}
        lost: list[Member] = []
        with self.client.as_current():  # an actor asks for it when it is first called
            for member, (method, args) in calls.items():
                try:
                    waiting[member] = getattr(self._actors[member][1], method)(*args)
                except (RuntimeError, KeyError):  # it is known already that it is gone
                    lost.append(member)
        found = {}
        for member, future in waiting.items():
            try:
                found[member] = self._result(member, future)
            except Lost:
                lost.append(member)
        if lost:
            for member in lost:
                self._forget(member)
            raise Lost(f"workers {', '.join(map(str, lost))}")
        return found

    def _forget(self, member: Member) -> None:
        """The scheduler need not know of an actor any more whose worker is gone."""
        future, _ = self._actors.pop(member, (None, None))
        if future is not None:
            with suppress(Exception):  # where the scheduler is gone, so is it
                self.client.cancel([future], force=True)

    def _result(self, member: Member, future: Any) -> Any:
        """The answer of an actor, however long it takes, as long as its worker is there."""
        while True:
            try:
                return future.result(timeout=_LOOK)
            except TimeoutError:
                if member in self._there() and self._actors[member][0].status == "finished":
                    continue
                raise Lost(str(member)) from None
            except Exception as error:  # errors of the work itself come as answers
                raise Lost(f"{member}: {error}") from error

    # --- data that is with the cluster already, and results that stay -------------------------

    def _ready(self, parcels: dict[Member, Parcel]) -> dict[Member, Parcel]:
        """Rows of dask arrays go from worker to worker, to a task on the one that wants them."""
        import dask

        waiting, ready = [], {}
        for member, parcel in parcels.items():
            sources = []
            for source in parcel.sources:
                if isinstance(source, DaskRows):
                    token = uuid.uuid4().hex
                    name = f"motifold-load-{token}"
                    load = dask.delayed(shelf.put, pure=False)
                    task = load(token, source.array, dask_key_name=name)
                    options = {"workers": [member], "allow_other_workers": False}
                    waiting.append((member, self.client.compute(task, **options)))
                    source = Shelved(token, source.shape, source.dtype)
                sources.append(source)
            ready[member] = replace(parcel, sources=tuple(sources))
        for member, future in waiting:
            self._task(member, future)
        return ready

    def _task(self, member: Member, future: Any) -> Any:
        """The result of a task of one worker; it would wait for ever where that is gone."""
        import distributed

        while True:
            try:
                return future.result(timeout=_LOOK)
            except (TimeoutError, distributed.TimeoutError):
                if member not in self._there():
                    self._forget(member)
                    raise Lost(str(member)) from None

    def kept(self, plan: int, tokens: list[str], sizes: list[tuple[int, int]], dtype: Any) -> Any:
        """What shards have put on the shelf, as one dask array that stays where it is."""
        import dask.array as da

        places = {i: member for member, shards in self._shards[plan].items() for i in shards}
        futures = [
            self.client.submit(
                shelf.take,
                token,
                key=f"motifold-activations-{token}",
                workers=[places[i]],
                allow_other_workers=False,
            )
            for i, token in enumerate(tokens)
        ]
        for i, future in enumerate(futures):
            self._task(places[i], future)
        parts = [
            da.from_delayed(future, shape=size, dtype=np.dtype(dtype))
            for future, size in zip(futures, sizes, strict=True)
        ]
        return da.concatenate(parts, axis=0)

    def close(self) -> None:
        """Let the actors go, and all that they hold."""
        super().close()
        futures = [future for future, _ in self._actors.values()]
        actors = [actor for _, actor in self._actors.values()]
        self._actors.clear()
        # Told to end, and not left to the garbage: until then they hold BLAS at one thread.
        for actor in actors:
            with suppress(Exception):  # of a worker that is gone
                actor.close().result(timeout=_FAREWELL)
        with suppress(Exception):  # where the scheduler is gone, so are they
            self.client.cancel(futures, force=True)
