"""Settings for every test: hypothesis without deadlines (the first call compiles kernels)."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from nursery import Nursery

settings.register_profile(
    "motifold",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "fuzz",  # as `make fuzz` runs them: with new seeds
    settings.get_profile("motifold"),
    derandomize=False,
    database=None,
    print_blob=True,
)
settings.load_profile("motifold")

# Where CNMF computes in every test, if not where it does by itself: `make test-gpu` says "cuda".
DEVICE = os.environ.get("MOTIFOLD_TEST_DEVICE")
# A machine with a GPU may be without what else the tests of the estimator need.
collect_ignore = (
    ["estimator/test_input.py"] if DEVICE and importlib.util.find_spec("polars") is None else []
)
_ON_THE_CPU = re.compile(r"runs on the CPU|is a sparse matrix, which cuda")


def pytest_configure() -> None:
    # A shell without job control starts `pytest &` with Ctrl-C ignored, and what tests start would
    # inherit that and not hear the signals they send. A handler is not inherited; it does nothing.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    if DEVICE:
        from motifold import CNMF

        CNMF.__init__.__kwdefaults__["device"] = DEVICE


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """On a device, what is refused there by name is skipped."""
    outcome = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    while DEVICE and error is not None:  # or what it came from: `pytest.warns` hides it
        if _ON_THE_CPU.search(str(error)):
            outcome.force_exception(pytest.skip.Exception(f"not on {DEVICE}: {error}"))
            return
        error = error.__cause__ or error.__context__


DATA = Path(__file__).parent.parent.parent / "shared" / "data"


SOURCES = {
    "MackeviciusData.mat": "it is in the repository FeeLab/seqNMF",
    "spoken_digits_two_speakers_8k.wav": "motifold.datasets.fetch_spoken_digits() makes it",
}


@pytest.fixture(scope="session")
def data_file():
    """A function from the name of a file of real data to its path; without it the test skips."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"{name} is absent: {SOURCES[name]}; put it in {DATA}")
        return path

    return find


@pytest.fixture(scope="session")
def nursery():
    """Starts processes that have imported everything already."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def mackevicius(data_file) -> dict:
    """SONG and NEURAL of the songbird data, time first."""
    from scipy.io import loadmat

    content = loadmat(data_file("MackeviciusData.mat"))
    return {name: content[name].T.copy() for name in ("SONG", "NEURAL")}
