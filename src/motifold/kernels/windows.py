"""Moves between a sequence of rows and the rows' lags: shift-and-add, correlation with a Gram."""

from numba import njit


@njit(nogil=True, cache=True)
def shift_and_add(Y, offset, C):
    """C[offset + s − ℓ, k] += Y[s, ℓ, k] wherever the row exists (changes C).

    Y (S, L, K) holds X·W̃ for a block of rows that begins at row ``offset`` of C (T, K).
    """
    S, L, K = Y.shape
    for s in range(S):
        t = offset + s
        for lag in range(min(L, t + 1)):
            for k in range(K):
                C[t - lag, k] += Y[s, lag, k]


@njit(nogil=True, cache=True)
def correlate_tail(H, A, E, out):
    """Rows of A∗H whose motif the end of a segment cuts off (changes the last rows of out).

    H, out (T, K) are one segment; A (K, 2L−1, K); E (L, K, L, K) is the Gram of the last L
    placements in the order of time. Two cut-off motifs overlap by E, all others by A.
    """
    T, K = H.shape
    L = E.shape[0]
    first = T - L + 1  # the first start that is cut off
    for t in range(max(0, first), T):
        for k in range(K):
            total = 0.0
            for s in range(max(0, t - L + 1), T):
                if s < first:
                    for j in range(K):
                        total += A[k, s - t + L - 1, j] * H[s, j]
                else:
                    for j in range(K):
                        total += E[t - T + L, k, s - T + L, j] * H[s, j]
            out[t, k] = total
