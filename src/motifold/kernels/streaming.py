"""Activations of a stream: one row at a time, the open bins solved anew from where they were."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.hals import sweep_in_time, update_entry


@kernel
def follow(X, W, rows, C, n, grams, weights, latencies, limits, out, settled):
    """Take rows in and give activations out (changes rows, C, out, settled).

    X : (m, N), the new rows
    W : (L·K, N), the motifs, lag by lag
    rows : the window of H, L−1 rows of zeros around it; the first L−1 of its bins are final
    C : (bins of the window at most, K), products of placed motifs with the rows that are there
    n : bins in the window
    grams : A, E, as in ``HStatistics``
    weights : l1, l2 (K,), and what is added to l2 where only so many lags have been seen, (L, K)
    latencies : bins after it that an activation waits for before it is given out, and those, as
        many or more, before it moves no longer
    limits : sweeps for each row at most, and the move, relative to H, that ends them before
    out : (m, K), what is given out
    settled : (m, K), what moves no longer; or (0, K) if nobody asks
    Returns the bins in the window, how many were given out, and how many have settled.
    """
    L = grams[1].shape[0]
    K = C.shape[1]
    given = 0
    n_settled = 0
    for i in range(X.shape[0]):
        products = np.dot(W, X[i])
        C[n] = 0
        for lag in range(min(L, n + 1)):
            for k in range(K):
                C[n - lag, k] += products[lag * K + k]
        rows[n + L - 1] = 0
        n += 1
        settle(rows, C, n, n, grams, weights, limits[0], limits[1])
        if n - (L - 1) > latencies[0]:
            out[given] = rows[n - 1 - latencies[0] + L - 1]
            given += 1
        if n - (L - 1) > latencies[1]:
            if settled.shape[0]:
                settled[n_settled] = rows[n - 1 - latencies[1] + L - 1]
            n_settled += 1
            n -= 1
            rows[L - 1 : L - 1 + n] = rows[L : L + n].copy()
            rows[L - 1 + n] = 0
            C[:n] = C[1 : n + 1].copy()
    return n, given, n_settled


@kernel
def settle(rows, C, n, free, grams, weights, most, least):
    """Sweep the open bins before ``free`` until they hardly move (changes rows); the sweeps."""
    A, E = grams
    l1, l2, more = weights
    L, K = E.shape[0], C.shape[1]
    flat = rows.reshape(rows.size)
    begin, uncut = L - 1, max(L - 1, min(free, n - L + 1))
    layout = np.array([[0, free, n, L - 1]])
    for sweep in range(most):
        moved = 0.0
        for k in range(K):
            if begin < uncut:
                moved += sweep_in_time(rows, C, A, E, layout, k, l1[k], l2[k], begin, uncut)
            for t in range(uncut, free):
                held = l2[k] + more[n - t - 1, k]
                moved += update_entry(flat, C, A, E, n, L - 1, t, k, l1[k], held)
        power = 0.0
        for i in range((begin + L - 1) * K, (free + L - 1) * K):
            power += flat[i] * flat[i]
        if moved <= least * least * power:
            return sweep + 1
    return most
