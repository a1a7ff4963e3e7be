"""Block principal pivoting (Kim & Park 2011) for many small nonnegative least-squares problems."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.hals import cut_off_slope, update_entry

# A dual variable counts as negative below −_TOLERANCE, in units where the Gram's diagonal is 1.
_TOLERANCE = 1e-12


@kernel
def scratch(K):
    """Memory for ``pivot_column``: allocating it for every column would cost more than solving."""
    return np.empty((K, K)), np.empty(K), np.empty(K, np.int64), np.empty((2, K), np.bool_)


@kernel
def _solve_passive(G, q, x, memory):
    """X = argmin ½x'Gx − q'x over the passive variables, by Cholesky in the corner of R.

    Returns False if the passive Gram is not positive definite (changes x, memory).
    """
    R, z, index, flags = memory
    passive = flags[0]
    K = q.shape[0]
    m = 0
    for i in range(K):
        x[i] = 0.0
        if passive[i]:
            index[m] = i
            m += 1
    for a in range(m):
        for b in range(a + 1):
            total = G[index[a], index[b]]
            for c in range(b):
                total -= R[a, c] * R[b, c]
            if a == b:
                if total <= 1e-13 * G[index[a], index[a]]:
                    return False
                R[a, a] = np.sqrt(total)
            else:
                R[a, b] = total / R[b, b]
    for a in range(m):
        total = q[index[a]]
        for c in range(a):
            total -= R[a, c] * z[c]
        z[a] = total / R[a, a]
    for a in range(m - 1, -1, -1):
        total = z[a]
        for c in range(a + 1, m):
            total -= R[c, a] * z[c]
        z[a] = total / R[a, a]
        x[index[a]] = z[a]
    return True


@kernel
def pivot_column(G, q, x, memory):
    """Solve min ½x'Gx − q'x, x ≥ 0, warm-started from the support of x (changes x, memory).

    G (K, K) float64 symmetric, q, x (K,), memory from ``scratch``. Exchanges all infeasible
    variables at once while their number falls, else the last one only (the backup rule, which
    cannot cycle). Returns False, with x undefined, if a passive Gram is singular or the limit of
    exchanges is reached.
    """
    K = q.shape[0]
    passive, wrong = memory[3]
    for i in range(K):
        passive[i] = x[i] > 0 and G[i, i] > 0
    fewest = K + 1
    chances = 3
    for _ in range(10 * K + 50):
        if not _solve_passive(G, q, x, memory):
            return False
        infeasible = 0
        last = -1
        for i in range(K):
            wrong[i] = False
            if passive[i]:
                wrong[i] = x[i] < 0
            elif G[i, i] > 0:
                dual = -q[i]
                magnitude = abs(q[i])
                for j in range(K):
                    dual += G[i, j] * x[j]
                    magnitude += abs(G[i, j] * x[j])
                wrong[i] = dual < -_TOLERANCE * magnitude
            if wrong[i]:
                infeasible += 1
                last = i
        if infeasible == 0:
            return True
        if infeasible < fewest:
            fewest = infeasible
            chances = 3
        elif chances > 0:
            chances -= 1
        else:
            passive[last] = not passive[last]
            continue
        for i in range(K):
            if wrong[i]:
                passive[i] = not passive[i]
    return False


@kernel
def pivot_rows(G, Q, X, solved):
    """Solve min ½x'Gx − q'x, x ≥ 0, for every row q of Q (changes the rows of X, and solved).

    Where ``solved`` is False, pivoting failed and the row of X is undefined.
    """
    memory = scratch(G.shape[0])
    for r in range(Q.shape[0]):
        solved[r] = pivot_column(G, Q[r], X[r], memory)


@kernel
def pass_H(rows, C, A, E, layout, l1, l2):
    """One pass over the columns of H, each solved exactly with the others fixed (changes rows).

    Arguments as in ``hals.sweep_in_time``; l1, l2 (K,). Where pivoting fails (a singular Gram), or
    rounding made it worse than it was, the column is updated entry by entry instead, which never
    raises the objective. Returns the squared length of the move.
    """
    K = rows.shape[1]
    L = E.shape[0]
    n = (2 * L - 1) * K
    flat = rows.reshape(rows.size)
    G = np.empty((K, K))
    memory = scratch(K)
    q = np.empty(K)
    x = np.empty(K)
    moved = 0.0
    for s in range(layout.shape[0]):
        start, stop_active, stop, shift = layout[s]
        for t in range(start, stop_active):
            left = stop - t
            column = rows[t + shift]
            if left < L or t == start:
                for i in range(K):
                    for j in range(K):
                        G[i, j] = A[i, L - 1, j] if left >= L else E[L - left, i, L - left, j]
                    G[i, i] += l2[i]
            if left >= L:
                begin = (t + shift - L + 1) * K
                window = flat[begin : begin + n]
                for i in range(K):
                    slope = -C[t, i]
                    taps = A[i].reshape(n)
                    for r in range(n):
                        slope += window[r] * taps[r]
                    q[i] = -slope
            else:
                for i in range(K):
                    q[i] = -cut_off_slope(flat, C, A, E, stop, shift, t, i)
            for i in range(K):
                # q = G h − (slope + l1 + l2 h), and G holds l2 already
                q[i] -= l1[i] + l2[i] * column[i]
                for j in range(K):
                    q[i] += G[i, j] * column[j]
                x[i] = column[i]
            solved = pivot_column(G, q, x, memory) and _quadratic_falls(G, q, x, column)
            for k in range(K):
                if solved:
                    moved += (x[k] - column[k]) ** 2
                    column[k] = x[k]
                else:
                    moved += update_entry(flat, C, A, E, stop, shift, t, k, l1[k], l2[k])
    return moved


@kernel
def _quadratic_falls(G, q, new, old):
    """Whether ½x'Gx − q'x at ``new`` is not above its value at ``old``, and all is finite."""
    K = q.shape[0]
    change = 0.0
    magnitude = 0.0
    for i in range(K):
        row_new = -q[i]
        row_old = -q[i]
        for j in range(K):
            row_new += 0.5 * G[i, j] * new[j]
            row_old += 0.5 * G[i, j] * old[j]
        change += row_new * new[i] - row_old * old[i]
        magnitude += abs(q[i]) * (abs(new[i]) + abs(old[i]))
    return change <= 1e-14 * magnitude
