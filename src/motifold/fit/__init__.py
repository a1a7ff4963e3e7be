"""The one loop and all that belongs to it: iterations, moves, starts, clock, reasons to stop."""

from __future__ import annotations

from motifold.fit.clock import Clock
from motifold.fit.loop import Loop
from motifold.fit.search import search
from motifold.fit.state import History, LoopState, SearchState
from motifold.fit.step import Acceleration, Descent, Rules
from motifold.fit.stop import StopReason

__all__ = [
    "Acceleration",
    "Clock",
    "Descent",
    "History",
    "Loop",
    "LoopState",
    "Rules",
    "SearchState",
    "StopReason",
    "search",
]
