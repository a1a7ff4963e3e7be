"""What a fit will take, told before it begins: seconds, memory, what is read."""

from __future__ import annotations

from motifold.forecast.estimate import Estimate

__all__ = ["Estimate"]
