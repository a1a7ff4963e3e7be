"""What a fit will take, told before it begins: seconds, memory, what is read."""

from __future__ import annotations

from motifold.forecast.estimate import Estimate
from motifold.forecast.excerpts import Whole
from motifold.forecast.foretelling import Where, foretold

__all__ = ["Estimate", "Where", "Whole", "foretold"]
