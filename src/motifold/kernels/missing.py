"""Missing entries, listed by time bin: their values in X̂ and what these add to P and C."""

import numpy as np

from motifold.kernels._jit import kernel


@kernel
def _values(window, W, n0, n1, n2, n3):
    """X̂ at one time bin for four features: four dot products that share the loads of one side."""
    zero = W.dtype.type(0)
    v0, v1, v2, v3 = zero, zero, zero, zero
    w0, w1, w2, w3 = W[n0], W[n1], W[n2], W[n3]
    for p in range(window.shape[0]):
        h = window[p]
        v0 += h * w0[p]
        v1 += h * w1[p]
        v2 += h * w2[p]
        v3 += h * w3[p]
    return v0, v1, v2, v3


@kernel
def fill_P(flat, W, K, first, columns, P):
    """P[n] += X̂[t, n] · (row t of H̃) over the missing entries (t, n) of a block (changes P).

    flat : rows of H from L−1 before the block on, flattened: row t of H̃ is L·K numbers of it
    W, P : (N, L·K), the oldest lag first
    first, columns : the missing features of row t are columns[first[t] : first[t + 1]]
    """
    LK = W.shape[1]
    for t in range(first.shape[0] - 1):
        window = flat[t * K : t * K + LK]
        begin, end = first[t], first[t + 1]
        fours = end - (end - begin) % 4
        for i in range(begin, fours, 4):
            n0, n1, n2, n3 = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
            v0, v1, v2, v3 = _values(window, W, n0, n1, n2, n3)
            p0, p1, p2, p3 = P[n0], P[n1], P[n2], P[n3]
            for p in range(LK):
                h = window[p]
                p0[p] += v0 * h
                p1[p] += v1 * h
                p2[p] += v2 * h
                p3[p] += v3 * h
        for i in range(fours, end):
            n0 = columns[i]
            v0 = _values(window, W, n0, n0, n0, n0)[0]
            p0 = P[n0]
            for p in range(LK):
                p0[p] += v0 * window[p]


@kernel
def fill_C(flat, W, K, first, columns, C):
    """The same for C: what the missing entries of a block add to its rows (changes C).

    C has the rows of ``flat``, and like it is flattened. Returns Σ X̂² over the missing entries.
    """
    LK = W.shape[1]
    power = 0.0
    total = np.empty(LK, W.dtype)
    for t in range(first.shape[0] - 1):
        begin, end = first[t], first[t + 1]
        if begin == end:
            continue
        window = flat[t * K : t * K + LK]
        total[:] = 0
        fours = end - (end - begin) % 4
        for i in range(begin, fours, 4):
            n0, n1, n2, n3 = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
            v0, v1, v2, v3 = _values(window, W, n0, n1, n2, n3)
            w0, w1, w2, w3 = W[n0], W[n1], W[n2], W[n3]
            for p in range(LK):
                total[p] += v0 * w0[p] + v1 * w1[p] + v2 * w2[p] + v3 * w3[p]
            power += v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3
        for i in range(fours, end):
            n0 = columns[i]
            v0 = _values(window, W, n0, n0, n0, n0)[0]
            w0 = W[n0]
            for p in range(LK):
                total[p] += v0 * w0[p]
            power += v0 * v0
        target = C[t * K : t * K + LK]
        for p in range(LK):
            target[p] += total[p]
    return power
