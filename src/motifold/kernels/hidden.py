"""Missing entries, listed by time bin: their values in X̂ and what these add to P and C.

In all three kernels the missing features of row t are columns[first[t] : first[t + 1]], and W, P
are (N, L·K) with the oldest lag first, as the windows of H are.
"""

import numpy as np

from motifold.kernels._jit import kernel


@kernel
def fit_values(flat, W, K, first, columns, old, values):
    """X̂ at the missing entries of a block, in the order of ``columns`` (changes ``values``).

    flat : rows of H from L−1 before the block on, flattened: row t of H̃ is L·K numbers of it
    Four features at a time share the loads of H. Returns Σ v² and Σ (v − old)².
    """
    LK = W.shape[1]
    zero = W.dtype.type(0)
    power, moved = 0.0, 0.0
    for t in range(first.shape[0] - 1):
        window = flat[t * K : t * K + LK]
        begin, end = first[t], first[t + 1]
        fours = end - (end - begin) % 4
        for i in range(begin, fours, 4):
            w0, w1, w2, w3 = W[columns[i]], W[columns[i + 1]], W[columns[i + 2]], W[columns[i + 3]]
            v0, v1, v2, v3 = zero, zero, zero, zero
            for p in range(LK):
                h = window[p]
                v0 += h * w0[p]
                v1 += h * w1[p]
                v2 += h * w2[p]
                v3 += h * w3[p]
            values[i], values[i + 1], values[i + 2], values[i + 3] = v0, v1, v2, v3
        for i in range(fours, end):
            w0 = W[columns[i]]
            v0 = zero
            for p in range(LK):
                v0 += window[p] * w0[p]
            values[i] = v0
        for i in range(begin, end):
            v, d = values[i], values[i] - old[i]
            power += v * v
            moved += d * d
    return power, moved


@kernel
def add_to_P(flat, values, K, first, columns, P):
    """P[n] += value · (row t of H̃) over the missing entries (t, n) of a block (changes P)."""
    LK = P.shape[1]
    for t in range(first.shape[0] - 1):
        window = flat[t * K : t * K + LK]
        begin, end = first[t], first[t + 1]
        fours = end - (end - begin) % 4
        for i in range(begin, fours, 4):
            p0, p1, p2, p3 = P[columns[i]], P[columns[i + 1]], P[columns[i + 2]], P[columns[i + 3]]
            v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            for p in range(LK):
                h = window[p]
                p0[p] += v0 * h
                p1[p] += v1 * h
                p2[p] += v2 * h
                p3[p] += v3 * h
        for i in range(fours, end):
            p0, v0 = P[columns[i]], values[i]
            for p in range(LK):
                p0[p] += v0 * window[p]


@kernel
def add_to_C(W, values, K, first, columns, C):
    """What the missing entries of a block add to C (changes it).

    C has the rows of H from L−1 before the block on, flattened.
    """
    LK = W.shape[1]
    total = np.empty(LK, W.dtype)
    for t in range(first.shape[0] - 1):
        begin, end = first[t], first[t + 1]
        if begin == end:
            continue
        total[:] = 0
        fours = end - (end - begin) % 4
        for i in range(begin, fours, 4):
            w0, w1, w2, w3 = W[columns[i]], W[columns[i + 1]], W[columns[i + 2]], W[columns[i + 3]]
            v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            for p in range(LK):
                total[p] += v0 * w0[p] + v1 * w1[p] + v2 * w2[p] + v3 * w3[p]
        for i in range(fours, end):
            w0, v0 = W[columns[i]], values[i]
            for p in range(LK):
                total[p] += v0 * w0[p]
        target = C[t * K : t * K + LK]
        for p in range(LK):
            target[p] += total[p]
