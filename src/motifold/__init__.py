"""motifold: patterns that recur in long multichannel recordings, by convolutive NMF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.explorer import explore
    from motifold.findings import (
        BlockTimeSeriesSplit,
        discover,
        dissimilarity,
        event_triggered_average,
        explained_power,
        find_consensus,
        find_events,
        hold_out,
        mark_junctions,
        motif_extent,
        refit_events,
        sequence_test,
        sequenciness,
        significance,
        sort_features,
        sweep,
    )
    from motifold.solvers import ANLS, HALS, MU
    from motifold.storage.checkpoint import fit_with_checkpoint
    from motifold.storage.models import load

__version__ = "0.2.0"

_HOMES = {
    "CNMF": "motifold.estimator",
    "explore": "motifold.explorer",
    "fit_with_checkpoint": "motifold.storage.checkpoint",
    "load": "motifold.storage.models",
    "ANLS": "motifold.solvers",
    "HALS": "motifold.solvers",
    "MU": "motifold.solvers",
    "BlockTimeSeriesSplit": "motifold.findings",
    "discover": "motifold.findings",
    "dissimilarity": "motifold.findings",
    "event_triggered_average": "motifold.findings",
    "explained_power": "motifold.findings",
    "find_consensus": "motifold.findings",
    "find_events": "motifold.findings",
    "hold_out": "motifold.findings",
    "mark_junctions": "motifold.findings",
    "motif_extent": "motifold.findings",
    "refit_events": "motifold.findings",
    "sequence_test": "motifold.findings",
    "sequenciness": "motifold.findings",
    "significance": "motifold.findings",
    "sort_features": "motifold.findings",
    "sweep": "motifold.findings",
}

# Rooms that `import motifold` reaches by their names: motifold.io.read(...).
_ROOMS = {
    *("dask", "datasets", "exports", "findings", "io", "matching"),
    *("plots", "prepare", "report", "solvers", "sound"),
}

__all__ = [
    "ANLS",
    "CNMF",
    "HALS",
    "MU",
    "BlockTimeSeriesSplit",
    "__version__",
    "discover",
    "dissimilarity",
    "event_triggered_average",
    "explained_power",
    "explore",
    "find_consensus",
    "find_events",
    "fit_with_checkpoint",
    "hold_out",
    "load",
    "mark_junctions",
    "motif_extent",
    "refit_events",
    "sequence_test",
    "sequenciness",
    "significance",
    "sort_features",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: ``import motifold`` stays quick."""
    if name in _ROOMS:
        return import_module(f"motifold.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'motifold' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
