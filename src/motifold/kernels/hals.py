"""Coordinate-descent sweeps (the paper's HALS) over the columns of W̃ and the entries of H."""

from numba import njit


@njit(nogil=True, cache=True)
def sweep_W(W, g, B, l1, l2):
    """One sweep over W̃: for each k, for each lag, the best nonnegative entry (changes W, g).

    W, g (N, L·K), with g = W̃B − P; B (L·K, L·K); l1, l2 (K,). Rows are independent, so the loop
    over them is outermost. Returns the squared length of the move.
    """
    N, LK = W.shape
    K = l1.shape[0]
    moved = 0.0
    for n in range(N):
        for k in range(K):
            for p in range(k, LK, K):
                old = W[n, p]
                curvature = B[p, p] + l2[k]
                new = old * 0
                if curvature > 0:
                    new = max(new, old - (g[n, p] + l1[k] + l2[k] * old) / curvature)
                d = new - old
                if d != 0:
                    W[n, p] = new
                    moved += d * d
                    for q in range(LK):
                        g[n, q] += d * B[p, q]
    return moved


@njit(nogil=True, cache=True)
def sweep_H(H, g, A, E, bounds, l1, l2, stride):
    """One sweep over H: for each k, for each t, the best nonnegative entry (changes H, g).

    H, g (T, K), with g = A∗H − C; A (K, 2L−1, K); E (L, K, L, K); l1, l2 (K,); bounds (S, 3) as
    in ``Problem.bounds``. With ``stride`` = 1 entries are taken in the order of time; with
    ``stride`` = L every L-th entry of a row follows one another: these do not interact, so the
    result is that of updating them at once. Returns the squared length of the move.
    """
    K = H.shape[1]
    moved = 0.0
    for k in range(K):
        for offset in range(stride):
            for s in range(bounds.shape[0]):
                start, stop_active, stop = bounds[s]
                for t in range(start + offset, stop_active, stride):
                    moved += update_entry(H, g, A, E, start, stop, t, k, l1[k], l2[k])
    return moved


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def add_motif(g, A, E, start, stop, t, k, d):
    """Account for H[t, k] += d in the gradient g of its segment (changes g).

    Away from the end this is one contiguous axpy of up to K(2L−1) numbers.
    """
    K = g.shape[1]
    L = E.shape[0]
    first = stop - L + 1  # the first start that the segment's end cuts off
    begin = max(start, t - L + 1)
    end = min(stop, t + L) if t < first else max(begin, first)
    for s in range(begin, end):
        for j in range(K):
            g[s, j] += d * A[k, s - t + L - 1, j]
    if t >= first:
        for s in range(max(begin, first), stop):
            for j in range(K):
                g[s, j] += d * E[t - stop + L, k, s - stop + L, j]
