"""Kernels on the CPU's lanes, and shapes to try them on."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from lanes import kernels_on_lanes


@pytest.fixture(scope="session")
def on_lanes(tmp_path_factory):
    """A function to the kernels' own sources, run on the CPU; they are built once."""
    if shutil.which("g++") is None:
        if os.environ.get("MOTIFOLD_NEEDS_COMPILERS"):
            pytest.fail("g++ is absent, and MOTIFOLD_NEEDS_COMPILERS is set")
        pytest.skip("g++ is absent")
    folder = tmp_path_factory.mktemp("lanes")
    return lambda K, L, dtype: kernels_on_lanes(K, L, np.dtype(dtype), folder)
