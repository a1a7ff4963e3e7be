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
def _factorised(G, memory):
    """Cholesky of the passive Gram, in the corner of R, rows in the order of ``index``.

    Returns the number of passive variables, and how many come before the first one that depends on
    those (all of them, if the Gram is positive definite); of that one's row of R all is known but
    the last (changes memory).
    """
    R, _, index, flags = memory
    passive = flags[0]
    m = 0
    for i in range(passive.shape[0]):
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
                    return m, a
                R[a, a] = np.sqrt(total)
            else:
                R[a, b] = total / R[b, b]
    return m, m


@kernel
def _substituted_back(R, z, m):
    """Solve R'z = z for the first m rows of R, from the last one up (changes z)."""
    for a in range(m - 1, -1, -1):
        total = z[a]
        for c in range(a + 1, m):
            total -= R[c, a] * z[c]
        z[a] = total / R[a, a]


@kernel
def _stationary(q, memory, m):
    """Set z = argmin ½x'Gx − q'x over the passive variables, in the order of ``index``."""
    R, z, index, _ = memory
    for a in range(m):
        total = q[index[a]]
        for c in range(a):
            total -= R[a, c] * z[c]
        z[a] = total / R[a, a]
    _substituted_back(R, z, m)


@kernel
def _solve_passive(G, q, x, memory):
    """X = argmin ½x'Gx − q'x over the passive variables.

    Returns False if the passive Gram is not positive definite (changes x, memory).
    """
    m, definite = _factorised(G, memory)
    x[:] = 0.0
    if definite < m:
        return False
    _stationary(q, memory, m)
    for a in range(m):
        x[memory[2][a]] = memory[1][a]
    return True


@kernel
def _dual(G, q, x, i):
    """The slope at i, and the size of the terms that it is the sum of."""
    dual, magnitude = -q[i], abs(q[i])
    for j in range(q.shape[0]):
        dual += G[i, j] * x[j]
        magnitude += abs(G[i, j] * x[j])
    return dual, magnitude


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
                dual, magnitude = _dual(G, q, x, i)
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
def settle_column(G, q, x, memory):
    """The same from x ≥ 0, where G is singular: one variable at a time (changes x, memory).

    A primal active set, each step downhill: to the solution for the passive variables, or, where
    one of them depends on others, along that dependence, to the first bound on the way. Returns
    False if there is none. Where rounding decides it ends with the x it has.
    """
    K = q.shape[0]
    z, index, (passive, _) = memory[1:]
    for i in range(K):
        passive[i] = x[i] > 0 and G[i, i] > 0
        if not passive[i]:
            x[i] = 0.0
    for _ in range(10 * K + 50):
        m, known = _factorised(G, memory)
        if known < m:
            downhill = _along_dependence(G, q, x, memory, known)
            m, longest = known + 1, np.inf
            if not downhill and np.min(z[:m]) >= 0:  # no bound on this way, and the other is level
                z[:m] *= -1
        else:
            _stationary(q, memory, m)
            for a in range(m):
                z[a] -= x[index[a]]
            longest = 1.0
        first = -1
        for a in range(m):
            if z[a] < 0 and x[index[a]] <= -z[a] * longest:
                first, longest = index[a], x[index[a]] / -z[a]
        if longest == np.inf:
            return False
        for a in range(m):
            x[index[a]] = max(0.0, x[index[a]] + longest * z[a])
        if first >= 0:
            x[first], passive[first] = 0.0, False
            continue
        steepest, least = -1, -_TOLERANCE
        for i in range(K):
            if not passive[i] and G[i, i] > 0:
                dual, magnitude = _dual(G, q, x, i)
                if dual < least * magnitude:
                    steepest, least = i, dual / magnitude
        if steepest < 0:
            return True
        passive[steepest] = True
    return True


@kernel
def _along_dependence(G, q, x, memory, known):
    """Set z = a direction downhill that G does not see, or curves down along.

    Of the passive variables up to the first that depends on those before (changes memory).
    Returns whether it goes down by more than rounding.
    """
    R, z, index, _ = memory
    z[:known] = R[known, :known]
    _substituted_back(R, z, known)
    slope = 0.0
    size = 0.0
    for a in range(known + 1):
        z[a] = -z[a] if a < known else 1.0
        dual, magnitude = _dual(G, q, x, index[a])
        slope += z[a] * dual
        size += abs(z[a]) * magnitude
    if slope > 0:
        z[: known + 1] *= -1
    return abs(slope) > _TOLERANCE * size


@kernel
def pivot_rows(G, Q, X, solved):
    """Solve min ½x'Gx − q'x, x ≥ 0, for every row q of Q (changes the rows of X, and solved).

    Where pivoting fails one variable is exchanged at a time, from what X was: its objective does
    not rise. Where ``solved`` is False that failed as well, and the row of X is undefined.
    """
    memory = scratch(G.shape[0])
    start = np.empty(G.shape[0])
    for r in range(Q.shape[0]):
        start[:] = X[r]
        solved[r] = pivot_column(G, Q[r], X[r], memory)
        if not solved[r]:
            X[r] = start
            solved[r] = settle_column(G, Q[r], X[r], memory)


@kernel
def pass_H(rows, C, A, E, layout, l1, l2):
    """One pass over the columns of H, each solved exactly with the others fixed (changes rows).

    Arguments as in ``hals.sweep_in_time``; l1, l2 (K,). Where pivoting fails (a singular Gram) one
    variable is exchanged at a time. If rounding made that worse than it was, the column is updated
    entry by entry, which never raises the objective. Returns the squared length of the move.
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
            if not solved:
                for k in range(K):
                    x[k] = column[k]
                solved = settle_column(G, q, x, memory) and _quadratic_falls(G, q, x, column)
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
