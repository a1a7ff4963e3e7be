"""Moves between a sequence of rows and the rows' lags: shift-and-add, correlation in the tail."""

from motifold.kernels._jit import kernel


@kernel
def shift_and_add(Y, first, C):
    """Add row s of Y to the rows of C that end at row ``first + s`` (changes C).

    Y (S, L·K) holds X·W̃ with the oldest lag first, so that each of its rows is L consecutive rows
    of C (·, K): one contiguous addition. Rows before the beginning of C are left out.
    """
    S, LK = Y.shape
    K = C.shape[1]
    flat = C.reshape(C.size)
    for s in range(S):
        end = (first + s + 1) * K
        begin = max(0, end - LK)
        target = flat[begin:end]
        source = Y[s, LK - (end - begin) :]
        for i in range(end - begin):
            target[i] += source[i]


@kernel
def lag_products(rows, out):
    """out[j, dK + k] += Σ_s rows[s, j] · rows[s + d, k], d = 0…L−1, where all rows are there.

    rows (S + L − 1, K), out (K, L·K): for each s and j one axpy over L contiguous rows (changes
    out). Four of them go together, which saves loads and stores of out.
    """
    K, LK = out.shape
    flat = rows.reshape(rows.size)
    S = rows.shape[0] - LK // K + 1
    fours = max(0, S - S % 4)
    for s in range(0, fours, 4):
        p = s * K
        w0, w1 = flat[p : p + LK], flat[p + K : p + K + LK]
        w2, w3 = flat[p + 2 * K : p + 2 * K + LK], flat[p + 3 * K : p + 3 * K + LK]
        for j in range(K):
            h0, h1, h2, h3 = rows[s, j], rows[s + 1, j], rows[s + 2, j], rows[s + 3, j]
            target = out[j]
            for i in range(LK):
                target[i] += h0 * w0[i] + h1 * w1[i] + h2 * w2[i] + h3 * w3[i]
    for s in range(fours, S):
        window = flat[s * K : s * K + LK]
        for j in range(K):
            h0, target = rows[s, j], out[j]
            for i in range(LK):
                target[i] += h0 * window[i]


@kernel
def correlate_tails(D, A, E, bounds, out):
    """Rows of A∗D that the end of a segment cuts off (changes these rows of out).

    D (T, J), out (T, K); A (J, 2L−1, K); E (L, J, L, K) is the Gram of the last L placements of a
    segment in the order of time. Two cut-off motifs overlap by E, all others by A.
    """
    J = D.shape[1]
    K = out.shape[1]
    L = E.shape[0]
    for segment in range(bounds.shape[0]):
        start, _, stop = bounds[segment]
        first = stop - L + 1  # the first start that is cut off
        for t in range(max(start, first), stop):
            row = out[t]
            row[:] = 0
            for s in range(max(start, t - L + 1), stop):
                for j in range(J):
                    d = D[s, j]
                    if d != 0:
                        p, q = s - stop + L, t - stop + L
                        taps = A[j, t - s + L - 1] if s < first else E[p, j, q]
                        for k in range(K):
                            row[k] += d * taps[k]
