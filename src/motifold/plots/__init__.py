"""Pictures of a fit; the only room that imports matplotlib."""

from __future__ import annotations

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        'motifold.plots needs matplotlib, which is not installed: pip install "motifold[plots]"'
    ) from error

from motifold.plots.contributions import plot_contributions
from motifold.plots.factors import plot_factors
from motifold.plots.loss import plot_loss
from motifold.plots.motifs import plot_motifs
from motifold.plots.reconstruction import plot_reconstruction

__all__ = [
    "plot_contributions",
    "plot_factors",
    "plot_loss",
    "plot_motifs",
    "plot_reconstruction",
]
