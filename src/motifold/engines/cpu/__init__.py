"""The engine of the CPU: compiled kernels and BLAS over threads, handles are arrays."""

from __future__ import annotations

from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers

__all__ = ["CPUEngine", "Problem", "Workers"]
