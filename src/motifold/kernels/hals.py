"""Coordinate-descent sweeps (the paper's HALS) over the columns of W̃ and the entries of H."""

import numpy as np

from motifold.kernels._jit import kernel


@kernel
def sweep_W(W, g, B, l1, l2):
    """One sweep over W̃: for each k, for each lag, the best nonnegative entry (changes W, g).

    W, g (N, L·K), with g = W̃B − P; B (L·K, L·K); l1, l2 (K,). Rows are independent, so the loop
    over them is outermost. Returns the squared length of the move.
    """
    N, LK = W.shape
    K = l1.shape[0]
    moved = 0.0
    for n in range(N):
        row = g[n]
        for k in range(K):
            for p in range(k, LK, K):
                old = W[n, p]
                curvature = B[p, p] + l2[k]
                new = old * 0
                if curvature > 0:
                    new = max(new, old - (row[p] + l1[k] + l2[k] * old) / curvature)
                d = new - old
                if d != 0:
                    W[n, p] = new
                    moved += d * d
                    taps = B[p]
                    for q in range(LK):
                        row[q] += d * taps[q]
    return moved


@kernel
def sweep_W_together(W, g, B, l1, l2):
    """The same as ``sweep_W`` for short rows: sixteen of them side by side (changes W, g).

    A row of a few entries does not fill a vector register; entry p of sixteen rows does.
    """
    N, LK = W.shape
    K = l1.shape[0]
    moved = 0.0
    w, slope = np.zeros((LK, 16), W.dtype), np.zeros((LK, 16), W.dtype)
    d = np.empty(16, W.dtype)
    zero = W.dtype.type(0)
    for start in range(0, N, 16):
        rows = min(16, N - start)
        for r in range(rows):
            for p in range(LK):
                w[p, r] = W[start + r, p]
                slope[p, r] = g[start + r, p]
        for k in range(K):
            for p in range(k, LK, K):
                curvature = B[p, p] + l2[k]
                inverse = 1 / curvature if curvature > 0 else zero
                keep = W.dtype.type(curvature > 0)
                entry, gradient = w[p], slope[p]
                for r in range(16):
                    old = entry[r]
                    new = max(zero, old - (gradient[r] + l1[k] + l2[k] * old) * inverse) * keep
                    d[r] = new - old
                    entry[r] = new
                taps = B[p]
                for q in range(LK):
                    target, tap = slope[q], taps[q]
                    for r in range(16):
                        target[r] += d[r] * tap
                for r in range(rows):
                    moved += d[r] * d[r]
        for r in range(rows):
            for p in range(LK):
                W[start + r, p] = w[p, r]
                g[start + r, p] = slope[p, r]
    return moved


@kernel
def sweep_in_time(h, g, d, a, e, bounds, l1, l2):
    """One sweep over the row of one component in H: for each t, its best entry (changes h, d).

    h, g (T,): the row and its gradient before the sweep; d (T,): the moves, zero at first. a (L,)
    and e (L, L): the overlap of the motif with itself, placed later, and in the tail; bounds
    (S, 3) as in ``Problem.bounds``. Only moves made before t matter for entry t, so the gradient
    is gathered from them: the last one from a register, which keeps the wait for memory out of
    the chain from entry to entry. Returns the squared length of the move.
    """
    L = e.shape[0]
    moved = 0.0
    zero = a[0] * 0
    against_time = a[::-1].copy()  # against_time[i] is the tap for the move L−1−i bins ago
    for segment in range(bounds.shape[0]):
        start, stop_active, stop = bounds[segment]
        first = stop - L + 1  # the first start that the segment's end cuts off
        curvature = a[0] + l2
        inverse = 1 / curvature if curvature > 0 else zero
        move = zero
        latest = start - L  # where the last move was made
        for t in range(start, min(first, stop_active)):
            slope = g[t]
            begin = max(start, t - L + 1)
            if latest >= begin:
                moves = d[begin : t - 1] if t > begin else d[:0]
                taps = against_time[begin - t + L - 1 :]
                for i in range(len(moves)):
                    slope += moves[i] * taps[i]
                if t > begin:
                    slope += move * a[1]
            old = h[t]
            new = max(zero, old - (slope + l1 + l2 * old) * inverse)
            if curvature <= 0:
                new = zero
            move = new - old
            h[t] = new
            d[t] = move
            if move != 0:
                latest = t
                moved += move * move
        for t in range(max(start, first), stop_active):
            slope = g[t]
            for s in range(max(start, t - L + 1), t):
                slope += d[s] * (a[t - s] if s < first else e[s - stop + L, t - stop + L])
            old = h[t]
            curvature = e[t - stop + L, t - stop + L] + l2
            new = zero
            if curvature > 0:
                new = max(zero, old - (slope + l1 + l2 * old) / curvature)
            h[t] = new
            d[t] = new - old
            moved += d[t] * d[t]
    return moved


@kernel
def sweep_in_blocks(h, g, d, a, e, bounds, l1, l2):
    """The same with every L-th entry of the row in turn (changes h, g, d).

    These do not interact, so the result is that of updating them at once. Moves made before are
    on both sides in time: each is pushed into the gradient g when it is made.
    """
    L = e.shape[0]
    moved = 0.0
    zero = a[0] * 0
    both_sides = np.concatenate((a[::-1], a[1:]))
    for offset in range(L):
        for segment in range(bounds.shape[0]):
            start, stop_active, stop = bounds[segment]
            first = stop - L + 1
            for t in range(start + offset, stop_active, L):
                curvature = l2 + (a[0] if t < first else e[t - stop + L, t - stop + L])
                old = h[t]
                new = zero
                if curvature > 0:
                    new = max(zero, old - (g[t] + l1 + l2 * old) / curvature)
                move = new - old
                if move != 0:
                    h[t] = new
                    d[t] += move
                    moved += move * move
                    begin = max(start, t - L + 1)
                    end = min(stop, t + L) if t < first else max(begin, first)
                    target = g[begin:end]
                    taps = both_sides[begin - t + L - 1 :]
                    for i in range(end - begin):
                        target[i] += move * taps[i]
                    if t >= first:
                        for r in range(max(begin, first), stop):
                            g[r] += move * e[t - stop + L, r - stop + L]
    return moved


@kernel
def update_entry(H, g, A, E, start, stop, t, k, l1, l2):
    """Minimise over the entry H[t, k] (changes H, g); returns the squared move."""
    L = E.shape[0]
    left = stop - t
    curvature = l2 + (A[k, L - 1, k] if left >= L else E[L - left, k, L - left, k])
    old = H[t, k]
    new = old * 0
    if curvature > 0:
        new = max(new, old - (g[t, k] + l1 + l2 * old) / curvature)
    d = new - old
    if d != 0:
        H[t, k] = new
        add_motif(g, A, E, start, stop, t, k, d)
    return d * d


@kernel
def add_motif(g, A, E, start, stop, t, k, d):
    """Account for H[t, k] += d in the gradient g of its segment (changes g).

    Away from the end this is one contiguous axpy of up to K(2L−1) numbers.
    """
    K = g.shape[1]
    L = E.shape[0]
    first = stop - L + 1  # the first start that the segment's end cuts off
    begin = max(start, t - L + 1)
    end = min(stop, t + L) if t < first else max(begin, first)
    n = (end - begin) * K
    target = g.reshape(g.size)[begin * K : begin * K + n]
    taps = A[k].reshape((2 * L - 1) * K)[(begin - t + L - 1) * K :]
    for i in range(n):
        target[i] += d * taps[i]
    if t >= first:
        for s in range(max(begin, first), stop):
            for j in range(K):
                g[s, j] += d * E[t - stop + L, k, s - stop + L, j]
