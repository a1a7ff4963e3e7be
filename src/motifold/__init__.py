"""motifold: patterns that recur in long multichannel recordings, by convolutive NMF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.persistence import load
    from motifold.solvers import ANLS, HALS, MU

__version__ = "0.1.0.dev0"

_HOMES = {
    "CNMF": "motifold.estimator",
    "load": "motifold.persistence",
    "ANLS": "motifold.solvers",
    "HALS": "motifold.solvers",
    "MU": "motifold.solvers",
}

__all__ = ["ANLS", "CNMF", "HALS", "MU", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: ``import motifold`` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'motifold' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
