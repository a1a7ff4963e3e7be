"""Block principal pivoting (Kim & Park 2011) for many small nonnegative least-squares problems."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.hals import add_motif, update_entry

# A dual variable counts as negative below −_TOLERANCE, in units where the Gram's diagonal is 1.
_TOLERANCE = 1e-12


@kernel
def _solve_passive(G, q, passive, x, R):
    """X = argmin ½x'Gx − q'x over the passive variables, by Cholesky in the corner of R.

    Returns False if the passive Gram is not positive definite (changes x, R).
    """
    K = q.shape[0]
    index = np.empty(K, dtype=np.int64)
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
    z = np.empty(m)
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
def pivot_column(G, q, x, R):
    """Solve min ½x'Gx − q'x, x ≥ 0, warm-started from the support of x (changes x, R).

    G (K, K) float64 symmetric, q, x (K,). Exchanges all infeasible variables at once while their
    number falls, else the last one only (the backup rule, which cannot cycle). Returns False,
    with x undefined, if a passive Gram is singular or the limit of exchanges is reached.
    """
    K = q.shape[0]
    passive = np.empty(K, dtype=np.bool_)
    for i in range(K):
        passive[i] = x[i] > 0 and G[i, i] > 0
    fewest = K + 1
    chances = 3
    for _ in range(10 * K + 50):
        if not _solve_passive(G, q, passive, x, R):
            return False
        infeasible = 0
        last = -1
        wrong = np.zeros(K, dtype=np.bool_)
        for i in range(K):
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
def pass_H(H, g, A, E, bounds, l1, l2):
    """One pass over the columns of H, each solved exactly with the others fixed (changes H, g).

    Arguments as in ``hals.sweep_H``. Where pivoting fails (a singular Gram), or rounding made it
    worse than it was, the column is updated entry by entry instead, which never raises the
    objective. Returns the squared length of the move.
    """
    K = H.shape[1]
    L = E.shape[0]
    G = np.empty((K, K))
    R = np.empty((K, K))
    q = np.empty(K)
    x = np.empty(K)
    moved = 0.0
    for s in range(bounds.shape[0]):
        start, stop_active, stop = bounds[s]
        for t in range(start, stop_active):
            left = stop - t
            if left < L or t == start:
                for i in range(K):
                    for j in range(K):
                        G[i, j] = A[i, L - 1, j] if left >= L else E[L - left, i, L - left, j]
                    G[i, i] += l2[i]
            for i in range(K):
                # q = G h − (g + l1 + l2 h), and G holds l2 already
                q[i] = -np.float64(g[t, i]) - l1[i] - l2[i] * H[t, i]
                for j in range(K):
                    q[i] += G[i, j] * H[t, j]
                x[i] = H[t, i]
            solved = pivot_column(G, q, x, R) and _quadratic_falls(G, q, x, H[t])
            for k in range(K):
                if solved:
                    d = H.dtype.type(x[k]) - H[t, k]
                    if d != 0:
                        H[t, k] += d
                        add_motif(g, A, E, start, stop, t, k, d)
                        moved += d * d
                else:
                    moved += update_entry(H, g, A, E, start, stop, t, k, l1[k], l2[k])
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
