"""Threads: tasks of a wavefront keep their order, and no result depends on their number."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from motifold import CNMF, HALS
from motifold.datasets import make_sequences
from motifold.engines.cpu import threads as parallel
from motifold.engines.cpu.threads import Workers


@pytest.mark.parametrize(("n_rows", "n_tiles"), [(1, 9), (4, 3), (5, 12)])
@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_a_wavefront_waits_for_its_neighbours(n_rows, n_tiles, n_threads):
    finished: set[tuple[int, int]] = set()
    lock = threading.Lock()

    def task(row: int, tile: int) -> float:
        with lock:
            before = set(finished)
        assert tile == 0 or (row, tile - 1) in before
        for needed in range(min(tile + 2, n_tiles)):
            assert row == 0 or (row - 1, needed) in before
        time.sleep(0.001 * ((row + tile) % 3))
        with lock:
            finished.add((row, tile))
        return 10.0 * row + tile

    with Workers(n_threads) as workers:
        total = workers.wavefront(task, n_rows, n_tiles)
    assert len(finished) == n_rows * n_tiles
    assert total == sum(10 * row + tile for row, tile in finished)


def test_a_wavefront_ends_when_a_task_fails():
    def task(row: int, tile: int) -> float:
        if (row, tile) == (1, 2):
            raise RuntimeError("no more")
        return 0.0

    with Workers(2) as workers, pytest.raises(RuntimeError, match="no more"):
        workers.wavefront(task, 3, 10)


@pytest.mark.parametrize(
    "solver", ["hals", HALS(order="blocks"), HALS(order="tiles"), "anls", "mu"], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_do_not_depend_on_the_number_of_threads(solver, dtype, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", 1e-12)  # all of them are called for the least
    X = make_sequences(17000, 12, 3, 7, random_state=0).X.astype(dtype)
    fits = [
        CNMF(3, 7, solver=solver, random_state=0, max_iter=5, tol=0, n_jobs=n_jobs).fit(
            X, lengths=[16000, 900, 100]
        )
        for n_jobs in (1, 2, 3, 7)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.components_, fits[0].components_)
        np.testing.assert_array_equal(fit.activations_, fits[0].activations_)
        np.testing.assert_array_equal(fit.history_.loss, fits[0].history_.loss)
