"""From motifs to findings: choose the model, test its motifs, read when they occur."""

from motifold.findings.shuffles import Sequenciness, Significance, sequenciness, significance
from motifold.findings.table import Table

__all__ = [
    "Sequenciness",
    "Significance",
    "Table",
    "sequenciness",
    "significance",
]
