"""What is made of factors and their two-part gradients in one go: sums, KKT residual, leap.

Factors are (rows, K); ``below`` may have fewer rows, which are then those of every stretch of so
many: for β = 1 they are the same for all features.
"""

import numpy as np

from motifold.kernels._jit import kernel


@kernel
def column_sums(F):
    """(K,), in float64."""
    sums = np.zeros(F.shape[1])
    for t in range(F.shape[0]):
        row = F[t]
        for k in range(row.size):
            sums[k] += row[k]
    return sums


@kernel
def sum_of_fit(H, sums, left):
    """Σ X̂ in float64: sums (L, K) are those of every motif's first lags, left (T,) how many fit."""
    L = sums.shape[0]
    total = 0.0
    for t in range(H.shape[0]):
        row, of_motifs = H[t], sums[min(left[t], L) - 1]
        for k in range(row.size):
            total += row[k] * of_motifs[k]
    return total


@kernel
def kkt_parts(F, above, below, l1, l2, free):
    """Σ min(F, s·∇/below)² and ΣF², with s the entry, or its component's mean if that is more.

    free : (rows,), which rows count, or none if all do; the mean is over these
    """
    K, period = F.shape[1], below.shape[0]
    typical = np.zeros(K)
    n = 0
    for t in range(F.shape[0]):
        if free.size == 0 or free[t]:
            row = F[t]
            for k in range(K):
                typical[k] += row[k]
            n += 1
    typical /= max(n, 1)
    moved, power = 0.0, 0.0
    place = 0
    for t in range(F.shape[0]):
        if free.size == 0 or free[t]:
            row, up, down = F[t], above[t], below[place]
            for k in range(K):
                f = np.float64(row[k])
                against = down[k] + l1[k] + l2[k] * f
                slope = (against - up[k]) / max(against, 1e-300)
                part = min(f, max(f, typical[k]) * slope)
                moved += part * part
                power += f * f
        place = place + 1 if place + 1 < period else 0
    return moved, power


@kernel
def leap_beyond(F, new, leap, above, below, l1, small, out):
    """Beyond ``new`` by ``leap`` times the step from F, not below a tenth of it (changes out).

    An entry that should grow is at least its component's ``small`` times how steeply, up to 1.
    leap, l1, small, in the precision of F
    """
    kind = F.dtype.type
    K, period = F.shape[1], below.shape[0]
    zero, one, tenth, least = kind(0), kind(1), kind(0.1), kind(1e-30)
    place = 0
    for t in range(F.shape[0]):
        row, moved, up, down, target = F[t], new[t], above[t], below[place], out[t]
        for k in range(K):
            value = max(moved[k] + leap * (moved[k] - row[k]), tenth * moved[k])
            growth = kind(up[k]) / max(kind(down[k]) + l1[k], least) - one
            target[k] = max(value, min(max(growth, zero), one) * small[k])
        place = place + 1 if place + 1 < period else 0
