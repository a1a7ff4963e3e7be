"""How kernels are compiled: once per machine where a cache can be written, and without the GIL."""

import os
import tempfile
from pathlib import Path
from typing import Any

from numba import config, njit

# Sums may be taken in another order, which lets them use vector instructions.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc"},
}


# Every kernel whose module has been imported.
KERNELS: list[Any] = []


def kernel(function):
    """Compile on first use and keep the machine code on disk."""
    KERNELS.append(_compiled(function))
    return KERNELS[-1]


def tally() -> tuple[int, int]:
    """How many variants of kernels this process has compiled, and loaded from the disk."""
    stats = [one.stats for one in KERNELS]
    loaded = sum(sum(found.cache_hits.values()) for found in stats)
    return sum(len(one.signatures) for one in KERNELS) - loaded, loaded


def _compiled(function):
    """The function, compiled when it is used.

    numba keeps it beside the source, or in the user's cache folder. Where it can write to neither
    (a read-only install, no HOME) it refuses to cache; then a folder of the user's own among the
    temporary files serves.
    """
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        pass
    try:
        config.CACHE_DIR = str(_temporary_cache())  # type: ignore[attr-defined]
        return njit(cache=True, **_OPTIONS)(function)
    except (OSError, RuntimeError):
        return njit(**_OPTIONS)(function)


def _temporary_cache() -> Path:
    """A folder that only this user can write to: what is loaded from it is run."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"motifold-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != user or status.st_mode & 0o077:
        raise OSError(f"{folder} is not this user's own")
    return folder
