"""Settings for every test: hypothesis without deadlines (the first call compiles kernels)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "motifold",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("motifold")

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def mackevicius() -> dict:
    """SONG and NEURAL of the songbird data, time first."""
    from scipy.io import loadmat

    path = DATA / "MackeviciusData.mat"
    if not path.exists():
        pytest.skip(
            f"{path.name} is absent: it is in the repository FeeLab/seqNMF; put it in {DATA}"
        )
    content = loadmat(path)
    return {name: content[name].T.copy() for name in ("SONG", "NEURAL")}
