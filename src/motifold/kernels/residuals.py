"""Sums over a factor and the step beyond it, in one pass and without temporary arrays."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.spin import add, claim, wait_until


@kernel
def _part(value, gradient, curvature):
    """min(value, gradient/curvature); where it is flat, only a positive gradient counts."""
    if curvature > 0:
        return min(value, gradient / curvature)
    return value if gradient > 0 else value * 0


@kernel
def kkt_sums_W(W, g, diagonal, l1, l2):
    """Σ min(W, ∇/diag)² and ΣW² for W (N, L·K), g = W̃B − P, diagonal (L·K,), l1, l2 (K,)."""
    N, LK = W.shape
    K = l1.shape[0]
    above, below = 0.0, 0.0
    for n in range(N):
        for p in range(LK):
            w = np.float64(W[n, p])
            weight = l2[p % K]
            part = _part(w, g[n, p] + l1[p % K] + weight * w, diagonal[p] + weight)
            above += part * part
            below += w * w
    return above, below


@kernel
def sums_H(H, g, C, A, E, bounds, l1, l2, n_free, step, parts, flags, threads):
    """What is to be known of H (T, K), in runs of ``step`` rows (changes parts, flags).

    g = A∗H − C; the curvature is that of cut-off motifs in the tail. parts (runs, 4 + 2K), of each
    run: ⟨C, H⟩, ⟨g, H⟩, Σ min(H, ∇/diag)², ΣH², and ΣH_k and ΣH_k². The third and the fourth are of
    the first ``n_free`` components. flags (runs + 2,), zero. Any number of threads make the call at
    the same time.
    """
    m = parts.shape[0]
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        run = place % m
        if claim(flags, run, 0, 1):
            mine += 1
            _sums_of_run(H, g, C, A, E, bounds, l1, l2, n_free, run * step, step, parts[run])
    add(flags, m, mine)
    wait_until(flags, m, m)


@kernel
def _sums_of_run(H, g, C, A, E, bounds, l1, l2, n_free, first, step, sums):
    T, K = H.shape
    L = E.shape[0]
    sums[:] = 0
    last = min(T, first + step)
    segment = np.searchsorted(bounds[:, 0], first, side="right") - 1
    while segment < bounds.shape[0] and bounds[segment, 0] < last:
        start, stop_active, stop = bounds[segment]
        segment += 1
        for t in range(max(first, start), min(last, stop)):
            left = stop - t
            for k in range(K):
                h, slope = np.float64(H[t, k]), np.float64(g[t, k])
                free = k < n_free and t < stop_active
                if free:
                    curvature = A[k, L - 1, k] if left >= L else E[L - left, k, L - left, k]
                    part = _part(h, slope + l1[k] + l2[k] * h, curvature + l2[k])
                    sums[2] += part * part
                if h != 0:
                    square = h * h
                    sums[0] += C[t, k] * h
                    sums[1] += slope * h
                    sums[4 + k] += h
                    sums[4 + K + k] += square
                    if free:
                        sums[3] += square


@kernel
def extrapolate(now, before, beta, step, out, flags, threads):
    """max(0, now + β·(now − before)), all (T, K), in runs of ``step`` entries (changes out, flags).

    flags (runs + 2,), zero. Any number of threads make the call at the same time.
    """
    a, b, c = now.reshape(now.size), before.reshape(now.size), out.reshape(now.size)
    m = flags.size - 2
    begin = add(flags, m + 1, 1) * m // threads
    zero = now.dtype.type(0)
    mine = 0
    for place in range(begin, begin + m):
        run = place % m
        if claim(flags, run, 0, 1):
            mine += 1
            for i in range(run * step, min(a.size, (run + 1) * step)):
                c[i] = max(zero, a[i] + beta * (a[i] - b[i]))
    add(flags, m, mine)
    wait_until(flags, m, m)
