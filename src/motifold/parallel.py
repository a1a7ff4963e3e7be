"""Threads: a pool over fixed pieces of work, one BLAS thread each, results in a fixed order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from motifold.kernels.spin import spin_while

# Fewer tiles than these are done sooner by one thread.
_TILES_WORTH_THREADS = 8

# How often an idle thread looks out for work before it sleeps: about a millisecond.
_LOOKS = 3_000_000

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class Workers:
    """``n_jobs`` threads, inside whose ``with`` block BLAS keeps to one thread.

    Work is cut by the shape of the problem, never by the number of threads, and results come in
    the order of the items: sums over them are bitwise the same for any ``n_jobs``. Outside a
    ``with`` block everything runs in the calling thread.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs)
        self._gang: _Gang | None = None
        self._limits: AbstractContextManager | None = None
        self._local = threading.local()

    def __enter__(self) -> Workers:
        self._limits = _controller().limit(limits=1, user_api="blas")
        self._limits.__enter__()
        if self.n_threads > 1:
            self._gang = _Gang(self.n_threads - 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._gang is not None:
            self._gang.dismiss()
            self._gang = None
        if self._limits is not None:
            self._limits.__exit__(kind, error, trace)
            self._limits = None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield function(item) in the order of the items; with threads, all are done first."""
        items = list(items)
        if self._gang is None or len(items) < 2:
            yield from map(function, items)
            return
        results: list[Result | None] = [None] * len(items)
        places = iter(range(len(items)))  # threads take the next one from it, whoever is free

        def work() -> None:
            for place in places:
                results[place] = function(items[place])

        self._gang.run(work, abandon=lambda: deque(places, maxlen=0))
        yield from results  # type: ignore[misc]

    def wavefront(self, task: Callable[[int, int], float], n_rows: int, n_tiles: int) -> float:
        """The sum of task(row, tile) over rows of tiles, in an order as good as row by row.

        A task may start when its row is done up to it and the row before up to one tile further:
        enough where a task reads and changes nothing beyond the neighbouring tiles. Tasks at work
        at the same time are then at least two tiles apart.
        """
        if self._gang is None or n_tiles < _TILES_WORTH_THREADS:
            return sum(task(row, i) for row in range(n_rows) for i in range(n_tiles))
        results = [[0.0] * n_tiles for _ in range(n_rows)]
        front = _Front(n_rows, n_tiles)

        def work() -> None:
            while (place := front.take()) is not None:
                row, tile = place
                results[row][tile] = task(row, tile)
                front.finished[row] = tile + 1

        self._gang.run(work, front.abandon)
        return sum(map(sum, results))

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> npt.NDArray[np.floating]:
        """Memory of the calling thread's own, not initialised, the same again for the same name.

        Fresh memory costs a page fault every 4 kB: in a data pass as much as the products do.
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        held = getattr(self._local, name, None)
        if held is None or held.size < size:
            held = np.empty(size, dtype=np.uint8)
            setattr(self._local, name, held)
        return held[:size].view(dtype).reshape(shape)


class _Gang:
    """Threads that do the same job as the calling one, at the same time.

    Between two jobs they look out for the next for a while before they go to sleep: waking a thread
    takes longer than many a job, since an idle core goes to sleep too. Who comes too late for a
    job is not waited for.
    """

    def __init__(self, size: int) -> None:
        self._called = np.zeros(1, dtype=np.int64)  # number of jobs so far
        self._working = np.zeros(1, dtype=np.int64)  # threads that took part and are not done
        self._lock = threading.Condition()
        self._job: Callable[[], None] | None = None
        self._errors: list[BaseException] = []
        self._dismissed = False
        spin_while(self._called, 1, 1)  # compiles
        for number in range(size):
            name = f"motifold-{number}"
            threading.Thread(target=self._live, name=name, daemon=True).start()

    def run(self, work: Callable[[], None], abandon: Callable[[], object]) -> None:
        """Run ``work`` in all threads and in this one; if one fails, ``abandon`` ends the rest."""

        def guarded() -> None:
            try:
                work()
            except BaseException:
                abandon()
                raise

        self._call(guarded)
        try:
            guarded()
        finally:
            with self._lock:
                self._job = None
            while working := int(self._working[0]):
                spin_while(self._working, working, _LOOKS)
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def dismiss(self) -> None:
        """End the threads."""
        self._dismissed = True
        self._call(None)

    def _call(self, job: Callable[[], None] | None) -> None:
        with self._lock:
            self._job = job
            self._called[0] += 1
            self._lock.notify_all()

    def _live(self) -> None:
        seen = 0
        while not self._dismissed:
            if not spin_while(self._called, seen, _LOOKS):
                with self._lock:
                    while self._called[0] == seen:
                        self._lock.wait()
            with self._lock:
                seen, job = int(self._called[0]), self._job
                self._working[0] += job is not None
            if job is None:
                continue
            try:
                job()
            except BaseException as error:
                self._errors.append(error)
            del job
            with self._lock:
                self._working[0] -= 1


class _Front:
    """Which tasks of a wavefront are ready: the deepest row first, while its tiles are in cache."""

    def __init__(self, n_rows: int, n_tiles: int) -> None:
        self.n_tiles = n_tiles
        self.started = [0] * n_rows
        self.finished = [0] * n_rows
        self._lock = threading.Lock()

    def take(self) -> tuple[int, int] | None:
        """A task that is ready, waiting for one if need be; None when all have been taken."""
        while self.started[-1] < self.n_tiles:
            with self._lock:
                place = self._ready()
            if place is not None:
                return place
            time.sleep(0)  # a task is shorter than it takes to wake a thread that sleeps
        return None

    def _ready(self) -> tuple[int, int] | None:
        for row in reversed(range(len(self.started))):
            tile = self.started[row]
            ahead = min(tile + 2, self.n_tiles)
            free = tile < self.n_tiles and tile == self.finished[row]
            if free and (row == 0 or self.finished[row - 1] >= ahead):
                self.started[row] += 1
                return row, tile
        return None

    def abandon(self) -> None:
        """Nobody starts anything any more."""
        with self._lock:
            self.started = [self.n_tiles] * len(self.started)
