"""Compiled sweeps: arrays in, arrays changed in place, no other imports.

Every kernel is serial, releases the GIL and receives statistics, never the data.
Letters as in the paper; layout X (T, N), H (T, K), W (N, L·K) with column p = ℓ·K + k.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from motifold.kernels import _jit


def tally() -> tuple[int, int]:
    """How many variants of all kernels this process has compiled, and loaded from the disk."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _jit.tally()
