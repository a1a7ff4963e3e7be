"""Threads: a pool over fixed pieces of work, one BLAS thread each, results in a fixed order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
