"""Processes that are killed while they work for a fit, and started again by their nannies."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from motifold.dask import CNMF
from motifold.solvers import HALS

distributed = pytest.importorskip("distributed")


@pytest.mark.slow
def test_a_killed_worker_costs_no_bit_and_leaves_nothing(recording):
    import dask

    settings = {"random_state": 0, "tol": 0, "max_iter": 8, "acceleration": None}
    settings |= {"solver": HALS("tiles")}
    calm = CNMF(5, 20, **settings)
    patient = {"distributed.deploy.lost-worker-timeout": "600s"}
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        calm.client = client
        calm.fit(recording)
        expected = calm.activations_.compute()
        killed = []

        def kill(state):
            pids = [worker.pid for worker in cluster.workers.values() if worker.pid]
            if state.iteration in (2, 5) and len(killed) < 2 and pids:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        shaken = CNMF(5, 20, **settings, client=client, callback=kill).fit(recording)
        assert len(killed) == 2
        np.testing.assert_array_equal(shaken.activations_.compute(), expected)
        np.testing.assert_array_equal(shaken.history_.objective, calm.history_.objective)
