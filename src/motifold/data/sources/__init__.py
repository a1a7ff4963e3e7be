"""Where X comes from: whatever gives a block of its rows."""

from __future__ import annotations

from motifold.data.sources.array import ArraySource, as_source
from motifold.data.sources.base import Part, Source
from motifold.data.sources.sparse import SparseSource

__all__ = ["ArraySource", "Part", "Source", "SparseSource", "as_source"]
