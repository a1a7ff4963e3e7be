"""Where X comes from: whatever gives a block of its rows."""

from __future__ import annotations

from motifold.data.sources.array import ArraySource, as_source
from motifold.data.sources.base import Part, Source
from motifold.data.sources.kinds import is_stored, stored_source
from motifold.data.sources.sparse import SparseSource
from motifold.data.sources.stored import StoredSource, held
from motifold.data.sources.zeroed import ZeroedSource

__all__ = [
    "ArraySource",
    "Part",
    "Source",
    "SparseSource",
    "StoredSource",
    "ZeroedSource",
    "as_source",
    "held",
    "is_stored",
    "stored_source",
]
