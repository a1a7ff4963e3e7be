"""Kernels are compiled once: the cache serves the next process, wherever it can be written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

FIT = """
import numpy as np
from motifold import CNMF
model = CNMF(2, 3, random_state=0, max_iter=3, tol=0).fit(np.ones((20, 2)))
"""
STATISTICS = """
from motifold.kernels import tiles
counts = tiles.sweep_tiles.stats
print(sum(counts.cache_hits.values()), sum(counts.cache_misses.values()))
"""
# As in a read-only install of a user without a home: numba may write nowhere of its own choice.
NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = [
    locator for locator in caching.CacheImpl._locator_classes
    if locator.__name__.endswith("UserProvidedCacheLocator")
]
"""


def run(code: str, **environment: str) -> str:
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    return shown.stdout.strip()


def test_a_second_process_does_not_compile(tmp_path):
    cache = str(tmp_path)
    first = run(FIT + STATISTICS, NUMBA_CACHE_DIR=cache, HOME=cache)
    second = run(FIT + STATISTICS, NUMBA_CACHE_DIR=cache, HOME=cache)
    assert first == "0 1"
    assert second == "1 0"


def test_an_install_without_any_cache_folder_uses_a_private_one(tmp_path):
    first = run(NOWHERE + FIT + STATISTICS, TMPDIR=str(tmp_path))
    second = run(NOWHERE + FIT + STATISTICS, TMPDIR=str(tmp_path))
    assert first == "0 1"
    assert second == "1 0"
    (folder,) = tmp_path.glob("motifold-*")
    assert folder.stat().st_mode & 0o077 == 0


def test_a_cache_folder_of_somebody_else_is_not_trusted(tmp_path):
    """Code is loaded from it: one that others can write to is left alone, and all still works."""
    folder = tmp_path / f"motifold-{os.getuid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    assert run(NOWHERE + FIT + "print('fitted')", TMPDIR=str(tmp_path)) == "fitted"
    assert not list(folder.iterdir())
