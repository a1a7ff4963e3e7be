"""The engine of the CPU: compiled kernels and BLAS over threads, handles are arrays."""

from __future__ import annotations

from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.ratios import RatioEngine
from motifold.engines.cpu.threads import Workers

__all__ = ["CPUEngine", "Problem", "RatioEngine", "Workers", "engine_of"]


def engine_of(problem: Problem, workers: Workers) -> CPUEngine:
    """The engine for the problem's loss."""
    return (RatioEngine if problem.model.loss.by_ratios else CPUEngine)(problem, workers)
