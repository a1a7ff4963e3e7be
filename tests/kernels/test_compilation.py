"""Kernels are compiled once: the cache serves the next process, wherever it can be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import motifold

# One small kernel, and one that calls other code by its name: a fit would compile them all.
KERNEL = """
import numpy as np
from motifold.kernels.spin import spin_while
changed = spin_while(np.array([3]), 1, 10), spin_while(np.array([1]), 1, 10)
counts = spin_while.stats
print(*changed, sum(counts.cache_hits.values()), sum(counts.cache_misses.values()))
"""
COMPILED, LOADED = "True False 0 1", "True False 1 0"
# As in a read-only install of a user without a home: numba may write nowhere of its own choice.
NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = [
    locator for locator in caching.CacheImpl._locator_classes
    if locator.__name__.endswith("UserProvidedCacheLocator")
]
"""


def run(code: str, **environment: str) -> str:
    package = str(Path(motifold.__file__).parents[1])
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": package, **environment},
    )
    return shown.stdout.strip()


def test_a_second_process_does_not_compile(tmp_path):
    cache = str(tmp_path)
    assert run(KERNEL, NUMBA_CACHE_DIR=cache, HOME=cache) == COMPILED
    assert run(KERNEL, NUMBA_CACHE_DIR=cache, HOME=cache) == LOADED


def test_an_install_without_any_cache_folder_uses_a_private_one(tmp_path):
    assert run(NOWHERE + KERNEL, TMPDIR=str(tmp_path)) == COMPILED
    assert run(NOWHERE + KERNEL, TMPDIR=str(tmp_path)) == LOADED
    (folder,) = tmp_path.glob("motifold-*")
    assert folder.stat().st_mode & 0o077 == 0


def test_a_cache_folder_of_somebody_else_is_not_trusted(tmp_path):
    """Code is loaded from it: one that others can write to is left alone, and all still works."""
    folder = tmp_path / f"motifold-{os.getuid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    assert run(NOWHERE + KERNEL, TMPDIR=str(tmp_path)).startswith("True False")
    assert not list(folder.iterdir())
