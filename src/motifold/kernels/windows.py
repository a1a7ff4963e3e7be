"""Moves between a sequence of rows and the rows' lags: shift-and-add."""

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
