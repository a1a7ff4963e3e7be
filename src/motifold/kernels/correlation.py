"""A∗H and the gradient of H, in one call for all rows."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.memory import bare
from motifold.kernels.spin import add, claim, wait_until


@kernel
def correlate(H, C, A, E, matrix, bounds, firsts, steps, buffers, out, flags, threads):
    """A∗H − C (T, K), or A∗H if C has no rows (changes out, flags).

    Any number of threads make the call at the same time.

    matrix : ((R+2L−2)·K, R·K), the block of the Toeplitz matrix that gives R rows of the result
    firsts : (segments + 1,), windows of R rows before each segment; those at its end that the
        segment's end cuts off are left out
    steps : windows and segments that a thread takes at a time
    buffers : of the calling thread: windows (steps[0], (R+2L−2)·K) and product (steps[0], R·K)
    flags : (items + 2,), zero
    """
    H, C, A, E, matrix, out = bare(H), bare(C), bare(A), bare(E), bare(matrix), bare(out)
    windows, product = buffers
    K = H.shape[1]
    L = E.shape[0]
    R = matrix.shape[1] // K
    n_windows, n_segments = firsts[-1], bounds[:, 0].size
    of_windows = -(-n_windows // steps[0])
    m = of_windows + -(-n_segments // steps[1])
    h, g, c = H.reshape(H.size), out.reshape(out.size), C.reshape(C.size)
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        item = place % m
        if not claim(flags, item, 0, 1):
            continue
        mine += 1
        if item >= of_windows:
            low = (item - of_windows) * steps[1]
            for s in range(low, min(low + steps[1], n_segments)):
                _cut_off_rows(h, c, A, E, bounds[s, 0], bounds[s, 2], g)
            continue
        low = item * steps[0]
        high = min(low + steps[0], n_windows)
        segment = np.searchsorted(firsts, low, side="right") - 1
        s = segment
        for w in range(low, high):
            while w >= firsts[s + 1]:
                s += 1
            start, stop = bounds[s, 0], bounds[s, 2]
            first = start + (w - firsts[s]) * R - L + 1  # of the rows of H that are needed
            window = windows[w - low]
            a, b = max(first, start), min(first + R + 2 * L - 2, stop)
            window[: (a - first) * K] = 0
            window[(a - first) * K : (b - first) * K] = h[a * K : b * K]
            window[(b - first) * K :] = 0
        np.dot(windows[: high - low], matrix, product[: high - low])
        s = segment
        for w in range(low, high):
            while w >= firsts[s + 1]:
                s += 1
            t = bounds[s, 0] + (w - firsts[s]) * R
            end = min(t + R, bounds[s, 2] - L + 1)
            source = product[w - low]
            target = g[t * K : end * K]
            if c.size > 0:
                less = c[t * K : end * K]
                for i in range(target.size):
                    target[i] = source[i] - less[i]
            else:
                for i in range(target.size):
                    target[i] = source[i]
    add(flags, m, mine)
    wait_until(flags, m, m)


@kernel
def _cut_off_rows(h, c, A, E, start, stop, g):
    """The rows that the end of a segment cuts off: two such motifs overlap by E, others by A."""
    L, K = E.shape[:2]
    cut = max(start, stop - L + 1)
    for t in range(cut, stop):
        place = t - stop + L
        begin = max(start, t - L + 1)
        for k in range(K):
            window, taps = h[begin * K : cut * K], A[k].reshape((2 * L - 1) * K)
            taps = taps[(begin - t + L - 1) * K :]
            total = h.dtype.type(0)
            for i in range(window.size):
                total += window[i] * taps[i]
            window, taps = (
                h[cut * K : stop * K],
                E[place, k].reshape(L * K)[L * K - (stop - cut) * K :],
            )
            for i in range(window.size):
                total += window[i] * taps[i]
            g[t * K + k] = total - c[t * K + k] if c.size > 0 else total
