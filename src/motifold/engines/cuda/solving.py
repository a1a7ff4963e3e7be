"""The solvers on a device: HALS by kernels, MU by its own formulas on the device's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.engines.cpu.statistics import WStatistics
from motifold.engines.cuda.device import Device
from motifold.engines.cuda.statistics import DeviceStatistics
from motifold.model import Penalties
from motifold.solvers import ANLS, HALS, MU, Inner, Solver


class Weights:
    """The penalties on entries, as arrays of the device; MU reads them."""

    def __init__(self, device: Device, penalties: Penalties, dtype: Any = np.float64) -> None:
        self.l1_W, self.l2_W = (device.constant(w, dtype) for w in (penalties.l1_W, penalties.l2_W))
        self.l1_H, self.l2_H = (device.constant(w, dtype) for w in (penalties.l1_H, penalties.l2_H))


def check_solver(solver: Solver, device: Device) -> None:
    """Raise where a solver does not run on a device, and name those that do."""
    those = f'On {device.name} there are "hals" and "mu"'
    if type(solver) is ANLS:
        raise ValueError(
            f"solver={solver!r} runs on the CPU: its exact solves follow one another. {those}; or "
            'use device="cpu".'
        )
    if type(solver) not in (HALS, MU):
        raise ValueError(
            f"{type(solver).__name__} runs on the CPU: a solver of your own takes NumPy arrays. "
            f'{those}; or use device="cpu".'
        )
    if isinstance(solver, HALS) and solver.order == "blocks":
        raise ValueError(
            f'HALS(order="blocks") runs on the CPU. On {device.name} there are "entries" '
            'and "tiles"; or use device="cpu".'
        )


def update_W(
    device: Device,
    solver: Solver,
    W: Any,
    statistics: WStatistics,
    penalties: Penalties,
    inner: Inner,
    gradient: Any = None,
) -> None:
    """Update W (N, L, K′), contiguous, in place; entries that are rounding become zero.

    ``gradient``: that of the loss at W, if it is there (it is used up).
    """
    *several, N, L, K = W.shape
    kernels = device.kernels(K, L, W.dtype)
    flat = W.reshape(*several, N, L * K)
    if isinstance(solver, MU):
        solver.update_W(W, statistics, Weights(device, penalties), inner)  # type: ignore[arg-type]
    else:
        weights = Weights(device, penalties, W.dtype)
        if gradient is None:
            gradient = statistics.gradient(flat)
        kernels.sweep_W(flat, gradient, statistics.B, weights.l1_W, weights.l2_W, inner)
    kernels.drop_rounding(flat, statistics.B, float(np.finfo(W.dtype).eps))


def update_H(
    device: Device,
    solver: Solver,
    H: Any,
    statistics: DeviceStatistics,
    penalties: Penalties,
    inner: Inner,
) -> None:
    """Update H (T, K), contiguous, in place.

    ANLS is asked for by the last solve where L = 1; sweeps get there as well.
    """
    if isinstance(solver, MU):
        solver.update_H(H, statistics, Weights(device, penalties), inner)  # type: ignore[arg-type]
        return
    data = statistics.data
    published = isinstance(solver, HALS) and solver.order == "entries"
    tiles = data.segments if published else data.tiles
    weights = Weights(device, penalties, H.dtype)
    grams = statistics.C, statistics.A, statistics.E
    statistics.kernels.sweep_H(H, *grams, weights.l1_H, weights.l2_H, tiles, inner)
