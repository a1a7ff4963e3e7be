"""What is to be solved: sizes, boundary, penalties, motifs. Nothing is as long as the data."""

from __future__ import annotations

from motifold.model.model import Array, Boundary, Mask, Model
from motifold.model.penalties import PENALTIES, Penalties, Penalty

__all__ = ["PENALTIES", "Array", "Boundary", "Mask", "Model", "Penalties", "Penalty"]
