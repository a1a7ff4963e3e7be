"""The recording as the passes over it see it: segments over sources, blocks, what is observed."""

from __future__ import annotations

from motifold.data.facts import Facts, scan
from motifold.data.recording import Block, Data, Segment
from motifold.data.segments import Segments

__all__ = ["Block", "Data", "Facts", "Segment", "Segments", "scan"]
