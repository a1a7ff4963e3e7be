"""The CPU engine for losses that need X̂ at every entry of X: β-divergences other than squares."""

from __future__ import annotations

from motifold.engines.cpu.ratios.engine import RatioEngine

__all__ = ["RatioEngine"]
