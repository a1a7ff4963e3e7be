"""``motifold doctor``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from motifold.cli._options import json_option
from motifold.cli._shared import print_json
from motifold.cli._terminal import say, visible

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "threadpoolctl", "tqdm", "click")
_OPTIONAL = {
    "matplotlib": "plots",
    "pooch": "data",
    "h5py": "io",
    "zarr": "io",
    "polars": "io",
    "soundfile": "io",
    "pynapple": "pynapple",
    "librosa": "sound",
    "mido": "sound",
    "panel": "explore",
    "holoviews": "explore",
    "dask": "dask",
    "distributed": "dask",
}


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Tell what motifold runs on.

    Versions, threads, BLAS, GPUs, caches, folders of data: the output belongs in a report of a bug.
    The exit code is 1 if something needed is broken.

    \b
    Examples:
      motifold doctor
      motifold doctor --json
    """
    told = _examined()
    if as_json:
        print_json(told)
    else:
        for title, entries in told.items():
            say(title, bold=True)
            rows = (
                entries.items() if isinstance(entries, dict) else ((line, "") for line in entries)
            )
            if not entries:
                say("  none")
            for name, value in rows:
                say(f"  {name:<22} {visible(value, one_line=True)}".rstrip())
    raise SystemExit(1 if told["problems"] else 0)


def _examined() -> dict[str, Any]:
    problems: list[str] = []
    return {
        "versions": _versions(problems),
        "optional": _optional(),
        "threads": _threads(),
        "gpu": _gpus(),
        "cache": _numba_cache(problems),
        "data": _data_folders(),
        "problems": problems,
    }


def _versions(problems: list[str]) -> dict[str, str]:
    from motifold.files import versions

    found = versions(_CORE)
    problems += [
        f"{name} is missing: pip install motifold" for name in found if found[name] is None
    ]
    return {name: version or "missing" for name, version in found.items()}


def _optional() -> dict[str, str]:
    from motifold.files import version_of

    return {
        name: version_of(name) or f'not installed: pip install "motifold[{extra}]"'
        for name, extra in _OPTIONAL.items()
    }


def _threads() -> dict[str, Any]:
    import numpy as np
    import scipy.linalg  # noqa: F401  (so that its BLAS is loaded and seen)
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    told: dict[str, Any] = {"cores": usable}
    for number, pool in enumerate(threadpool_info(), start=1):
        told[f"{pool['user_api']} {number}"] = (
            f"{pool['internal_api']} {pool.get('version')}, {pool['num_threads']} threads"
        )
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        if name in os.environ:
            told[name] = os.environ[name]
    return told


def _gpus() -> dict[str, str]:
    """Every GPU, or why there is none; none is no problem."""
    from motifold.engines.cuda import Census

    return Census().facts


def _numba_cache(problems: list[str]) -> dict[str, Any]:
    """Where compiled kernels are kept, and whether they can be."""
    import motifold.kernels

    beside = Path(motifold.kernels.__file__).parent / "__pycache__"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or beside)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(existing, os.W_OK)
    if not writable:
        problems.append(
            f"{folder} cannot be written, so numba keeps compiled kernels in the user's cache or "
            "compiles them anew: set NUMBA_CACHE_DIR."
        )
    files = list(folder.rglob("*.nbc")) if folder.exists() else []
    size = sum(file.stat().st_size for file in files)
    return {
        "folder": str(folder),
        "writable": writable,
        "compiled": f"{len(files)} kernels, {size / 2**20:.1f} MiB",
    }


def _data_folders() -> dict[str, str]:
    given = os.environ.get("MOTIFOLD_DATA")
    told = {"MOTIFOLD_DATA": given or "not set"}
    if given:
        told["there"] = ", ".join(sorted(os.listdir(given))) if os.path.isdir(given) else "missing!"
    from motifold.datasets.download import cache_folder

    try:
        return {**told, "downloads": str(cache_folder())}
    except ImportError:
        return told
