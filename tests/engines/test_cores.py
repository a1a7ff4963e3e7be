"""How many threads there are, how many a piece of work gets, and BLAS is left as it was found."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from motifold import CNMF
from motifold.engines.cpu import threads as parallel
from motifold.engines.cpu.threads import Workers, free_cores, sensible_threads
from motifold.kernels._jit import kernel
from motifold.kernels.spin import add, claim, wait_until

MILLISECOND = 1e-3


@kernel
def _take(flags, done, threads):
    """Two phases over the items of ``done``: each is done once in either.

    A thread that comes late may find others ahead of it, never behind.
    """
    m = done.shape[0]
    begin = add(flags, m + 1, 1) * m // threads
    for phase in range(2):
        mine = 0
        for place in range(begin, begin + m):
            if claim(flags, place % m, phase, phase + 1):
                done[place % m] += 1
                mine += 1
        add(flags, m, mine)
        wait_until(flags, m, (phase + 1) * m)
        for i in range(m):
            if done[i] < phase + 1:
                done[i] = -100


@pytest.fixture
def machine(monkeypatch):
    """A function that fakes what is known of the machine."""

    def fake(cores: int, physical: int | None = None, **environment: str) -> None:
        monkeypatch.setattr(parallel, "effective_n_jobs", lambda n: cores if n == -1 else n)
        monkeypatch.setattr(parallel, "cpu_count", lambda only_physical_cores: physical or cores)
        for name in parallel._VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return fake


@pytest.mark.parametrize("cores", [1, 2, 16, 96])
def test_all_physical_cores_are_free_unless_somebody_says_so(machine, cores):
    machine(cores)
    assert free_cores() == cores
    machine(2 * cores, physical=cores)
    assert free_cores() == cores
    machine(cores, OMP_NUM_THREADS="1")
    assert free_cores() == 1
    machine(cores, OMP_NUM_THREADS="3,2", MKL_NUM_THREADS="64")
    assert free_cores() == min(3, cores)
    for nonsense in ("", "0", "many", "-1"):
        machine(cores, OPENBLAS_NUM_THREADS=nonsense)
        assert free_cores() == cores


def test_workers_take_what_is_free_or_what_they_are_told(machine):
    machine(16, OMP_NUM_THREADS="4")
    assert Workers().n_threads == 4
    assert Workers(7).n_threads == 7


def test_small_work_gets_few_threads():
    assert sensible_threads(16, 0.05 * MILLISECOND) == 1
    assert 2 <= sensible_threads(16, 1 * MILLISECOND) <= 4
    assert 8 <= sensible_threads(16, 10 * MILLISECOND) <= 12
    assert sensible_threads(16, 100 * MILLISECOND) == 16
    assert sensible_threads(64, np.inf) == 64
    assert sensible_threads(1, np.inf) == 1


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 3e-4, 1e-3, 1e-2, 1e-1, 10.0])
@pytest.mark.parametrize("most", [1, 2, 7, 16, 128])
def test_nobody_is_called_who_costs_more_than_he_saves(seconds, most):
    def takes(threads: int) -> float:
        return seconds / threads + 1e-4 * threads

    n = sensible_threads(most, seconds)
    assert takes(n) == pytest.approx(min(takes(i) for i in range(1, most + 1)))


def test_fits_at_the_same_time_share_the_cores():
    assert sensible_threads(16, np.inf, sharing=4) == 4
    assert sensible_threads(2, np.inf, sharing=5) == 1


def test_dask_and_joblib_workers_are_respected():
    """joblib gives each of its worker processes a part of the cores, by environment variables."""
    found = Parallel(n_jobs=2)(delayed(free_cores)() for _ in range(2))
    assert max(found) <= max(1, free_cores() // 2)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_work_that_is_shared_out_in_compiled_code(n_threads, monkeypatch):
    """All is done once, and nobody waits for a thread that has not come."""
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", 1e-12)
    items = 100
    with Workers(n_threads) as workers:
        for _ in range(20):
            flags, done = np.zeros(items + 2, np.int64), np.zeros(items, np.int64)
            workers.together(lambda threads, a=flags, b=done: _take(a, b, threads), 1.0)
            np.testing.assert_array_equal(done, 2)


def test_a_call_alone_does_all_the_work():
    flags, done = np.zeros(12, np.int64), np.zeros(10, np.int64)
    _take(flags, done, 7)
    np.testing.assert_array_equal(done, 2)


def test_an_error_in_one_thread_is_raised(monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", 1e-12)

    def fail(threads: int) -> None:
        raise RuntimeError("no more")

    with Workers(3) as workers, pytest.raises(RuntimeError, match="no more"):
        workers.together(fail, 1.0)


def blas_threads() -> list[int]:
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


MAPS = Path("/proc/self/maps")


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux tells which libraries are loaded")
def test_every_blas_of_the_process_has_one_thread_during_a_fit():
    """Also that of SciPy's wheels, which threadpoolctl knows from 3.5 on.

    One that it does not know would keep its threads, and with them, in some products, other last
    bits: a fit would depend on the cores of the machine, or on OPENBLAS_NUM_THREADS.
    """
    with Workers(1):
        loaded = {line.split()[-1] for line in MAPS.read_text().splitlines()}
        known = {info["filepath"]: info["num_threads"] for info in threadpool_info()}
    found = {path for path in loaded if "openblas" in Path(path).name}
    if not found:
        pytest.skip("NumPy and SciPy have another BLAS here")
    assert {Path(path).name: known.get(path) for path in found} == {
        Path(path).name: 1 for path in found
    }


def test_blas_has_its_threads_again_when_the_last_of_several_fits_has_ended():
    """The second begins within the first and ends after it."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = Workers(1), Workers(1)
        first.__enter__()
        second.__enter__()
        assert set(blas_threads()) == {1}
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_blas_has_its_threads_again_after_fits_in_threads():
    X = np.random.default_rng(0).random((200, 4))
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        fits = [
            threading.Thread(
                target=CNMF(2, 3, random_state=i, tol=0, max_iter=5 * (i + 1), n_jobs=1).fit,
                args=(X,),
            )
            for i in range(4)
        ]
        for fit in fits:
            fit.start()
        for fit in fits:
            fit.join()
        assert blas_threads() == before
