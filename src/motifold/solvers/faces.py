"""One leap to the best activations among those that are positive, by conjugate gradients.

Passes over the columns of H find soon which activations are positive, and may need thousands more
to find how large these are (Moré & Toraldo 1991 take turns in the same way).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from motifold.model import Array
from motifold.solvers.base import HStatistics

# Steps at most, and the part of the slope that may be left.
_STEPS, _LEFT = 100, 1e-12
# Parts of a leap that are tried where bounds lie on its way, before the part up to the first.
_PARTS = (1.0, 0.25, 0.0625)

Map = Callable[[Array], Array]


def leap(
    H: Array, statistics: HStatistics, l1: Array, l2: Array, expired: Callable[[], bool]
) -> float:
    """Move the positive entries of H towards their best values (changes H); J there, from H = 0 on.

    Entries that are zero stay zero. An entry that comes to zero stays there.
    """
    free = H > 0

    def curved(move: Array) -> Array:
        product = statistics.correlate(np.ascontiguousarray(move, H.dtype)).astype(np.float64)
        return np.where(free, product + l2 * move, 0.0)

    old = H.astype(np.float64)
    slope = np.where(free, statistics.gradient(H).astype(np.float64) + l1 + l2 * old, 0.0)
    value = 0.5 * float(np.vdot(old, slope - statistics.C + l1))
    size = np.diagonal(statistics.A[:, statistics.A.shape[1] // 2]).astype(np.float64) + l2
    with np.errstate(over="ignore", invalid="ignore"):  # of motifs that are next to nothing
        scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        move = _solution(curved, slope, scale, expired)
        for part in (*_PARTS, _first_bound(old, move)):
            new = np.maximum(old + part * move, 0).astype(H.dtype)
            change = new.astype(np.float64) - old
            rise = float(np.vdot(slope, change) + 0.5 * np.vdot(change, curved(change)))
            if rise < 0:
                H[...] = new
                return value + rise
    return value


def _solution(curved: Map, slope: Array, scale: Array, expired: Callable[[], bool]) -> Array:
    """The move whose curvature undoes the slope, as far as the steps get; downhill wherever."""
    move, rest = np.zeros_like(slope), -slope
    direction = scale * rest
    power = first = float(np.vdot(rest, direction))
    for _ in range(_STEPS):
        if not power > _LEFT**2 * first or expired():
            break
        product = curved(direction)
        curvature = float(np.vdot(direction, product))
        if not 0 < curvature < np.inf:
            break
        length = power / curvature
        move += length * direction
        rest -= length * product
        preconditioned = scale * rest
        before, power = power, float(np.vdot(rest, preconditioned))
        direction = preconditioned + power / before * direction
    return move


def _first_bound(old: Array, move: Array) -> float:
    """The part of the move at which the first entry becomes zero, at most 1."""
    falls = move < 0
    return float(np.min(old[falls] / -move[falls], initial=1.0))
