"""Threads: a pool over fixed pieces of work, one BLAS thread each, results in a fixed order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

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
        self._pool: ThreadPoolExecutor | None = None
        self._limits: AbstractContextManager | None = None
        self._local = threading.local()

    def __enter__(self) -> Workers:
        self._limits = _controller().limit(limits=1, user_api="blas")
        self._limits.__enter__()
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="motifold")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._limits is not None:
            self._limits.__exit__(kind, error, trace)
            self._limits = None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield function(item) in the order of the items, a few of them at work at a time."""
        if self._pool is None:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(function, item))
                if len(waiting) > self.n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def wavefront(self, task: Callable[[int, int], float], n_rows: int, n_tiles: int) -> float:
        """The sum of task(row, tile) over rows of tiles, in an order as good as row by row.

        A task may start when its row is done up to it and the row before up to one tile further:
        enough where a task reads and changes nothing beyond the neighbouring tiles. Tasks at work
        at the same time are then at least two tiles apart.
        """
        if self._pool is None or n_tiles < 3:
            return sum(task(row, i) for row in range(n_rows) for i in range(n_tiles))
        results = [[0.0] * n_tiles for _ in range(n_rows)]
        front = _Front(n_rows, n_tiles)

        def work() -> None:
            while (place := front.take()) is not None:
                try:
                    results[place[0]][place[1]] = task(*place)
                except BaseException:
                    front.abandon()
                    raise
                front.finish(*place)

        futures = [self._pool.submit(work) for _ in range(min(self.n_threads, n_rows))]
        try:
            for future in futures:
                future.result()
        finally:
            front.abandon()
            wait(futures)
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


class _Front:
    """Which tasks of a wavefront are ready: the deepest row first, while its tiles are in cache."""

    def __init__(self, n_rows: int, n_tiles: int) -> None:
        self.n_tiles = n_tiles
        self.started = [0] * n_rows
        self.finished = [0] * n_rows
        self.abandoned = False
        self.changed = threading.Condition()

    def take(self) -> tuple[int, int] | None:
        """A task that is ready, waiting for one if need be; None when all have been taken."""
        with self.changed:
            while not self.abandoned and self.started[-1] < self.n_tiles:
                for row in reversed(range(len(self.started))):
                    tile = self.started[row]
                    ahead = min(tile + 2, self.n_tiles)
                    free = tile < self.n_tiles and tile == self.finished[row]
                    if free and (row == 0 or self.finished[row - 1] >= ahead):
                        self.started[row] += 1
                        return row, tile
                self.changed.wait()
            return None

    def finish(self, row: int, tile: int) -> None:
        """The task is done: others may have become ready."""
        with self.changed:
            self.finished[row] = tile + 1
            self.changed.notify_all()

    def abandon(self) -> None:
        """Nobody starts anything any more."""
        with self.changed:
            self.abandoned = True
            self.changed.notify_all()
