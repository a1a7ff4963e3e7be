"""Everything of length T lives behind an engine; the loop above holds numbers and handles."""

from __future__ import annotations

from motifold.engines.base import Engine, Step, Sums

__all__ = ["Engine", "Step", "Sums"]
