"""From motifs to findings: choose the model, test its motifs, read when they occur."""

from motifold.data.held_out import HoldOut
from motifold.findings.agreement import StartAgreement, dissimilarity, start_agreement
from motifold.findings.averages import EventAverage, event_triggered_average
from motifold.findings.consensus import Consensus, find_consensus
from motifold.findings.discovery import Discovery, discover
from motifold.findings.events import find_events
from motifold.findings.held_out import hold_out
from motifold.findings.members import feature_table
from motifold.findings.power import explained_power
from motifold.findings.profiles import FeatureOrder, MotifExtent, motif_extent, sort_features
from motifold.findings.refit import EventFit, refit_events
from motifold.findings.sequences import SequenceTest, sequence_test
from motifold.findings.sequential import Sequenciness, sequenciness
from motifold.findings.shuffles import Significance, significance
from motifold.findings.splits import BlockTimeSeriesSplit, mark_junctions
from motifold.findings.sweeping import Sweep, sweep
from motifold.findings.table import Table

__all__ = [
    "BlockTimeSeriesSplit",
    "Consensus",
    "Discovery",
    "EventAverage",
    "EventFit",
    "FeatureOrder",
    "HoldOut",
    "MotifExtent",
    "SequenceTest",
    "Sequenciness",
    "Significance",
    "StartAgreement",
    "Sweep",
    "Table",
    "discover",
    "dissimilarity",
    "event_triggered_average",
    "explained_power",
    "feature_table",
    "find_consensus",
    "find_events",
    "hold_out",
    "mark_junctions",
    "motif_extent",
    "refit_events",
    "sequence_test",
    "sequenciness",
    "significance",
    "sort_features",
    "start_agreement",
    "sweep",
]
