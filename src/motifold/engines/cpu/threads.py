"""Threads: a pool over fixed pieces of work, one BLAS thread each, results in a fixed order."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

from motifold.kernels.spin import spin_while

# Seconds that one more thread has to save to be worth calling: each takes about so long to come.
_WORTH_A_THREAD = 1e-4
# Seconds of one multiplication of a matrix product, about, of a thread.
SECONDS_OF_MULTIPLICATION = 2e-11
# Fewer tiles than these are done sooner by one thread.
_TILES_WORTH_THREADS = 8

# How often an idle thread looks out for work before it sleeps: about a millisecond.
_LOOKS = 1_000_000

# What people and their schedulers (joblib, dask) say about threads: for each process, in numbers.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Item = TypeVar("Item")
Result = TypeVar("Result")


def free_cores() -> int:
    """How many cores are free for us, as far as the machine and its keepers say.

    Physical cores, what the affinity of the process and its control group (containers) allow, and
    no more than joblib says or an environment variable such as ``OMP_NUM_THREADS``, which both
    joblib and dask set in their workers.
    """
    said = [os.environ.get(name, "").split(",")[0].strip() for name in _VARIABLES]
    limits = [int(number) for number in said if number.isdecimal() and int(number) > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where physical cores cannot be counted, all are
        return min(effective_n_jobs(-1), cpu_count(only_physical_cores=True), *limits)


def sensible_threads(most: int, seconds: float, sharing: int = 1) -> int:
    """How many of ``most`` threads a piece of work should have.

    The n-th thread saves seconds / (n(n−1)), if ``seconds`` is what one thread would take, and
    costs a tenth of a millisecond: small work is done sooner by few. The threads are divided among
    ``sharing`` fits that run in this process at the same time.
    """
    ratio = min(seconds / _WORTH_A_THREAD, 1e12)
    worth = int(0.5 + math.sqrt(0.25 + ratio))  # the largest n with n(n−1) ≤ ratio
    return max(1, min(most // max(1, sharing), worth))


class _OneBlasThread:
    """BLAS at one thread while any fit of the process runs, and as it was when the last has ended.

    Limits are the process's. Were each fit to note and restore them, one that begins within another
    and ends after it would leave BLAS at one thread for good.
    """

    def __init__(self) -> None:
        self.fits = 0
        self._lock = threading.Lock()
        self._limits: Any = None

    def enter(self) -> None:
        """One more fit."""
        with self._lock:
            if self.fits == 0:
                self._limits = _controller().limit(limits=1, user_api="blas")
            self.fits += 1

    def leave(self) -> None:
        """One fit less."""
        with self._lock:
            self.fits -= 1
            if self.fits == 0:
                self._limits.restore_original_limits()
                self._limits = None


_one_blas_thread = _OneBlasThread()


@cache
def _controller() -> ThreadpoolController:
    # The BLAS of compiled code: it is loaded when first used, which would be after the limits.
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController()


class Workers:
    """``n_jobs`` threads at most, inside whose ``with`` block BLAS keeps to one thread.

    None: as many as ``free_cores``. A piece of work gets as many of them as it is worth.

    Work is cut by the shape of the problem, never by the number of threads, and results come in
    the order of the items: sums over them are bitwise the same for any ``n_jobs``. Outside a
    ``with`` block everything runs in the calling thread.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        # Of NumPy's it may be too narrow for what is computed with it.
        self.n_jobs = None if n_jobs is None else int(n_jobs)
        self.n_threads = free_cores() if n_jobs is None else effective_n_jobs(int(n_jobs))
        self._gang: _Gang | None = None
        self._entered = False
        self._local = threading.local()

    @classmethod
    def for_passes(cls, n_jobs: int | None, multiplications: float) -> Workers:
        """For a fit whose data passes have so many multiplications.

        Unless told how many, no more threads than a pass is worth: for small data, none is called.
        """
        workers = cls(n_jobs)
        if n_jobs is None:
            seconds = SECONDS_OF_MULTIPLICATION * multiplications
            workers.n_threads = sensible_threads(workers.n_threads, seconds)
        return workers

    def __enter__(self) -> Workers:
        _one_blas_thread.enter()
        self._entered = True
        if self.n_threads > 1:
            self._gang = _Gang(self.n_threads - 1)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._gang is not None:
            self._gang.dismiss()
            self._gang = None
        if self._entered:
            self._entered = False
            _one_blas_thread.leave()

    def together(self, work: Callable[[int], object], seconds: float) -> None:
        """Call ``work`` in as many threads as ``seconds`` of it are worth, at the same time.

        It is told how many they are, shares out what there is to do by itself
        (``kernels.spin.claim``), is done when it returns in this thread, and does nothing in one
        that comes too late.
        """
        sharing = 1 if self.n_jobs is not None else _one_blas_thread.fits
        threads = sensible_threads(self.n_threads, seconds, sharing)
        if self._gang is None or threads == 1:
            work(1)
        else:
            self._gang.run(lambda: work(threads), abandon=lambda: None, helpers=threads - 1)

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
        self._called = np.zeros((size, 8), dtype=np.int64)  # jobs so far, for each a line of cache
        self._working = np.zeros(1, dtype=np.int64)  # threads that took part and are not done
        self._lock = threading.Lock()
        self._beds = [threading.Condition(self._lock) for _ in range(size)]
        self._job: Callable[[], object] | None = None
        self._errors: list[BaseException] = []
        self._dismissed = False
        spin_while(self._working, 1, 1)  # compiles
        for number in range(size):
            name = f"motifold-{number}"
            threading.Thread(target=self._live, args=(number,), name=name, daemon=True).start()

    def run(
        self,
        work: Callable[[], object],
        abandon: Callable[[], object],
        helpers: int | None = None,
    ) -> None:
        """Run ``work`` in all threads and in this one; if one fails, ``abandon`` ends the rest.

        ``helpers``: so many threads beside this one; the others are left alone.
        """

        def guarded() -> None:
            try:
                work()
            except BaseException:
                abandon()
                raise

        self._call(guarded, helpers)
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

    def _call(self, job: Callable[[], object] | None, helpers: int | None = None) -> None:
        with self._lock:
            self._job = job
            self._called[:helpers, 0] += 1
            for bed in self._beds[:helpers]:
                bed.notify()

    def _live(self, number: int) -> None:
        called, bed = self._called[number], self._beds[number]
        seen = 0
        while not self._dismissed:
            if not spin_while(called, seen, _LOOKS):
                with self._lock:
                    while called[0] == seen:
                        bed.wait()
            with self._lock:
                seen, job = int(called[0]), self._job
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
