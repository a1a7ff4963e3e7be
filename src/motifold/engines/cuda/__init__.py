"""The engine of CUDA: one namespace of arrays, one table of kernels, and their NumPy twins."""

from __future__ import annotations

from motifold.engines.cpu import Problem, Workers
from motifold.engines.cuda.arrays import DeviceArrays
from motifold.engines.cuda.device import Device, DeviceError
from motifold.engines.cuda.engine import CUDAEngine
from motifold.engines.cuda.names import Census, device_of, is_name
from motifold.engines.cuda.ratios import CUDARatioEngine

__all__ = ["CUDAEngine", "Census", "Device", "DeviceError", "device_of", "engine_on", "is_name"]


def engine_on(device: Device, problem: Problem, workers: Workers) -> DeviceArrays:
    """The engine for the problem's loss."""
    kind = CUDARatioEngine if problem.model.loss.by_ratios else CUDAEngine
    return kind(problem, workers, device)
