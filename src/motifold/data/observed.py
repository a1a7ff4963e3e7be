"""What share of a motif, placed at each bin, the observed entries show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from motifold.data.segments import Segments
from motifold.model.arrays import Array, Mask

# An activation counts where at least this share of its motif's power was observed.
LEAST_OBSERVED = 0.5

Shares = npt.NDArray[np.float32]
_BYTES = 2**23  # of what is not observed, as numbers, at a time


def observed_shares(
    components: Array, masks: Sequence[Mask | None], lengths: Sequence[int]
) -> Shares | None:
    """Of the motif's power, placed at each bin, the share that is observed, (T, K).

    What the end of the segment cuts off does not count; where nothing is left, the share is 1.
    components (K, L, N), masks of the segments, (T_i, N), True where observed. None if all is.
    """
    if all(mask is None or mask.all() for mask in masks):
        return None
    power = np.square(np.asarray(components, dtype=np.float64))
    shares = np.ones((sum(lengths), len(power)), dtype=np.float32)
    reach = np.cumsum(power.sum(axis=2), axis=1).T  # (L, K): power of the first lags
    for mask, (start, stop) in zip(masks, Segments(list(lengths)), strict=True):
        if mask is None:
            continue
        hidden = _hidden_power(mask, power)
        inside = reach[np.minimum(stop - start - np.arange(stop - start), len(reach)) - 1]
        lost = np.divide(hidden, inside, out=np.zeros_like(hidden), where=inside > 0)
        # Sums of a few products in float64: what rounding leaves is no share that was hidden.
        lost[lost < 1e-9] = 0
        shares[start:stop] = np.clip(1 - lost, 0, 1)
    return shares


def _hidden_power(mask: Mask, power: Array) -> Array:
    """Power of each motif (K, L, N), placed at each bin, that is not observed: (T, K)."""
    K, L, N = power.shape
    T = len(mask)
    by_lag = np.ascontiguousarray(power.transpose(2, 1, 0).reshape(N, L * K))
    hidden = np.zeros((T, K))
    rows = max(L, _BYTES // (8 * max(N, L * K)))
    for a in range(0, T, rows):
        block = ~mask[a : a + rows]
        if not block.any():
            continue
        lost = (block.astype(np.float64) @ by_lag).reshape(-1, L, K)
        for lag in range(L):  # what is lost of bin t at lag ℓ is of the motif at t − ℓ
            if lag >= a + len(block):
                break
            first = max(a, lag)
            hidden[first - lag : a + len(block) - lag] += lost[first - a :, lag]
    return hidden
