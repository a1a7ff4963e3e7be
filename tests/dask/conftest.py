"""One small cluster for the whole room, in this process; and a recording that has shards."""

from __future__ import annotations

import pytest

from motifold.datasets import make_sequences

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(n_workers=2, **options) as client:
        yield client


@pytest.fixture(scope="session")
def recording():
    """Long enough for tiles, and so for three shards."""
    return make_sequences(13_000, 8, 5, 20, random_state=0).X
