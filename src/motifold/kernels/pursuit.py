"""Matching pursuit: events one by one, each where a motif explains most of what is left."""

import numpy as np

from motifold.kernels._jit import kernel

_ROWS = 256  # of a block whose largest score is remembered


@kernel
def _look_again(C, norms, floors, is_open, first, last, best, places):
    """The largest excess over the floors in blocks first to last (changes the last two arguments).

    A block without an open place has a best of 0: no event.
    """
    T, K = C.shape
    for block in range(first, last + 1):
        largest = 0.0
        place = 0
        for t in range(block * _ROWS, min(T, (block + 1) * _ROWS)):
            for k in range(K):
                if is_open[t, k]:
                    excess = C[t, k] / norms[t, k] - floors[k]
                    if excess > largest:
                        largest = excess
                        place = t * K + k
        best[block] = largest
        places[block] = place


@kernel
def pursue(C, norms, floors, is_open, grams, gap, events, values):
    """Events, strongest first, while one is above its floor (changes C, is_open, the last two).

    C (T, K) are the products of each motif with the recording, norms (T, K) those of the motif
    there, is_open (T, K) where one may be placed, grams (K, 2L−1, K) what an event takes off C
    around it. Two events of a motif are more than ``gap`` bins apart. Fills events (n, 2), bin and
    motif, and values (n, 2), amplitude and strength. Returns their number.
    """
    T, K = C.shape
    L = (grams.shape[1] + 1) // 2
    n_blocks = (T + _ROWS - 1) // _ROWS
    best = np.zeros(n_blocks)
    places = np.zeros(n_blocks, np.int64)
    _look_again(C, norms, floors, is_open, 0, n_blocks - 1, best, places)
    n = 0
    while n < events.shape[0]:
        block = np.argmax(best)
        if best[block] <= 0:
            break
        t = places[block] // K
        k = places[block] % K
        strength = C[t, k] / norms[t, k]
        amplitude = strength / norms[t, k]
        events[n, 0] = t
        events[n, 1] = k
        values[n, 0] = amplitude
        values[n, 1] = strength
        n += 1
        low = max(0, t - L + 1)
        high = min(T, t + L)
        for s in range(low, high):
            for j in range(K):
                C[s, j] -= amplitude * grams[k, s - t + L - 1, j]
        first = max(0, t - gap)
        end = min(T, t + gap + 1)
        for s in range(first, end):
            is_open[s, k] = False
        low = min(low, first)
        high = max(high, end)
        _look_again(C, norms, floors, is_open, low // _ROWS, (high - 1) // _ROWS, best, places)
    return n
