"""Pictures of fits and findings; the only room that imports matplotlib."""

from __future__ import annotations

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        'motifold.plots needs matplotlib, which is not installed: pip install "motifold[plots]"'
    ) from error

from motifold.plots.consensus import plot_consensus
from motifold.plots.contributions import plot_contributions
from motifold.plots.events import plot_event_average, plot_events
from motifold.plots.factors import plot_factors
from motifold.plots.loss import plot_loss
from motifold.plots.match import plot_match
from motifold.plots.motifs import plot_motifs
from motifold.plots.printed import paper
from motifold.plots.raster import plot_raster
from motifold.plots.reconstruction import plot_reconstruction
from motifold.plots.significance import plot_significance
from motifold.plots.sweep import plot_crossover, plot_motif_lengths, plot_n_components

__all__ = [
    "paper",
    "plot_consensus",
    "plot_contributions",
    "plot_crossover",
    "plot_event_average",
    "plot_events",
    "plot_factors",
    "plot_loss",
    "plot_match",
    "plot_motif_lengths",
    "plot_motifs",
    "plot_n_components",
    "plot_raster",
    "plot_reconstruction",
    "plot_significance",
]
