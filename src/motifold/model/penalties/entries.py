"""Penalties on the entries of one factor: l1·ΣF + ½·l2·ΣF²."""

from __future__ import annotations

from motifold.model.penalties.base import Penalty


class L1W(Penalty):
    """Few entries of the motifs."""

    name, factor, degree, l1 = "l1_W", "W", 0, True
    formula, help = "λ ΣW", "On the motifs' sum: fewer entries."


class L2W(Penalty):
    """No large entries of the motifs."""

    name, factor, degree, l2 = "l2_W", "W", 0, True
    formula, help = "λ/2 ΣW²", "On the motifs' squares."


class L1H(Penalty):
    """Few activations."""

    name, factor, degree, l1 = "l1_H", "H", 1, True
    formula, help = "λ ΣH", "On the activations' sum: fewer events."


class L2H(Penalty):
    """No large activations."""

    name, factor, degree, l2 = "l2_H", "H", 2, True
    formula, help = "λ/2 ΣH²", "On the activations' squares."
