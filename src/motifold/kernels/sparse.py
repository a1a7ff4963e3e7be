"""The passes over a sparse matrix: every entry costs one product of L·K numbers, or a few.

Work is shared out as in ``passes``, whose blocks and groups these are. In the list of ``pieces``
the first three of a row are the addresses of where the entries of its first row begin (of int64),
of the columns of all entries (integers), and of their values. ``kinds`` are arrays of these three
types. W and P are (N, L·K) with the oldest lag first, as the windows of H are.

With ``ratio`` an entry x does not count as itself but as x/x̂, x̂ being that of the model there, with
a background b (N,): the gradients of Kullback–Leibler's divergence.
"""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.logarithm import log
from motifold.kernels.memory import bare, numbers_at
from motifold.kernels.passes import add_rows, fill_windows, join_blocks
from motifold.kernels.spin import add, claim, wait_until


@kernel
def _piece(pieces, i, kinds):
    """Where the entries of the rows of piece i begin, and columns and values of all entries."""
    starts = numbers_at(pieces[i, 0], pieces[i, 3] + 1, kinds[0])
    n = starts[starts.size - 1]
    columns, values = numbers_at(pieces[i, 1], n, kinds[1]), numbers_at(pieces[i, 2], n, kinds[2])
    return starts, columns, values


@kernel
def _fits(flat, K, own, start, starts, columns, W, out):
    """X̂ at the entries of a piece, four of which share the loads of H (changes out).

    flat : H, of which row ``own`` belongs to the first row of the piece, row ``start`` to that of
        its segment; windows have zeros before it
    """
    LK, zero = W.shape[1], W.dtype.type(0)
    base = starts[0]
    for r in range(starts.size - 1):
        first, last, end = starts[r], starts[r + 1], (own + r + 1) * K
        missing = max(0, LK - end + start * K)
        window = flat[end - LK + missing : end]
        fours = last - (last - first) % 4
        for i in range(first, fours, 4):
            w0, w1 = W[columns[i], missing:], W[columns[i + 1], missing:]
            w2, w3 = W[columns[i + 2], missing:], W[columns[i + 3], missing:]
            v0, v1, v2, v3 = zero, zero, zero, zero
            for p in range(window.size):
                h = window[p]
                v0 += h * w0[p]
                v1 += h * w1[p]
                v2 += h * w2[p]
                v3 += h * w3[p]
            j = i - base
            out[j], out[j + 1], out[j + 2], out[j + 3] = v0, v1, v2, v3
        for i in range(fours, last):
            w0, v0 = W[columns[i], missing:], zero
            for p in range(window.size):
                v0 += window[p] * w0[p]
            out[i - base] = v0


@kernel
def _add_windows(flat, K, own, start, starts, columns, weights, P):
    """P[n] += weight · window over the entries of a piece; two of a row share its loads.

    Changes P; weights are those of the piece, the others as in ``_fits``.
    """
    LK = P.shape[1]
    base = starts[0]
    for r in range(starts.size - 1):
        first, last, end = starts[r], starts[r + 1], (own + r + 1) * K
        missing = max(0, LK - end + start * K)
        window = flat[end - LK + missing : end]
        twos = last - (last - first) % 2
        for i in range(first, twos, 2):
            p0, p1 = P[columns[i], missing:], P[columns[i + 1], missing:]
            v0, v1 = weights[i - base], weights[i - base + 1]
            for p in range(window.size):
                h = window[p]
                p0[p] += v0 * h
                p1[p] += v1 * h
        for i in range(twos, last):
            p0, v0 = P[columns[i], missing:], weights[i - base]
            for p in range(window.size):
                p0[p] += v0 * window[p]


@kernel
def _add_motifs(W, starts, columns, weights, Y):
    """Y[r] = Σ weight · W[n] over the entries of row r of a piece (changes Y)."""
    LK = W.shape[1]
    base = starts[0]
    for r in range(starts.size - 1):
        first, last, total = starts[r], starts[r + 1], Y[r]
        for p in range(LK):
            total[p] = 0
        fours = last - (last - first) % 4
        for i in range(first, fours, 4):
            w0, w1, w2, w3 = W[columns[i]], W[columns[i + 1]], W[columns[i + 2]], W[columns[i + 3]]
            j = i - base
            v0, v1, v2, v3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
            for p in range(LK):
                total[p] += v0 * w0[p] + v1 * w1[p] + v2 * w2[p] + v3 * w3[p]
        for i in range(fours, last):
            w0, v0 = W[columns[i]], weights[i - base]
            for p in range(LK):
                total[p] += v0 * w0[p]


@kernel
def _ratios(columns, values, background, floor, scale, out):
    """scale·x/x̂ of entries, ``out`` being x̂ without the background; at least ``floor``."""
    for i in range(values.size):
        out[i] = scale * values[i] / max(out[i] + background[columns[i]], floor)


@kernel
def _log_sum(values, ratios, scale):
    """Σ scale·x·log of the ratios, summed in float64; nothing for an entry that is zero."""
    total = 0.0
    for i in range(values.size):
        total += scale * values[i] * log(ratios[i])
    return total


@kernel
def pass_one(H, lists, kinds, model, scale, ratio, sums, totals, logs, P, flags, threads):
    """P = X H̃ᵀ (N, L, K), of scale·X (changes P, sums, totals, logs, flags).

    lists : pieces, blocks, groups
    model : W (N, L·K), background (N,), floor; only read with ``ratio``
    sums : (groups, N, L·K) of the data's type
    totals : (groups, N), with ``ratio``: Σ_t x/x̂
    logs : (groups,), with ``ratio``: Σ x log(x/x̂)
    flags : (groups + 2,), zero
    """
    pieces, blocks, groups = bare(lists[0]), lists[1], lists[2]
    W, background, floor = bare(model[0]), bare(model[1]), model[2]
    H, sums, totals, P = bare(H), bare(sums), bare(totals), bare(P)
    N, L, K = P.shape
    LK = L * K
    flat = H.reshape(H.size)
    m = groups.shape[0] - 1
    total = np.empty(LK)
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 0, 1):
            continue
        mine += 1
        target, logs[q] = sums[q], 0.0
        target[:] = 0
        totals[q] = 0
        for i in range(blocks[groups[q]], blocks[groups[q + 1]]):
            starts, columns, values = _piece(pieces, i, kinds)
            own, start = pieces[i, 4], pieces[i, 5]
            first, last = starts[0], starts[starts.size - 1]
            where, x = columns[first:last], values[first:last]
            weights = np.empty(last - first, H.dtype)
            if ratio:
                _fits(flat, K, own, start, starts, columns, W, weights)
                _ratios(where, x, background, floor, scale, weights)
                logs[q] += _log_sum(x, weights, scale)
                for j in range(where.size):
                    totals[q, where[j]] += weights[j]
            else:
                for j in range(where.size):
                    weights[j] = scale * x[j]
            _add_windows(flat, K, own, start, starts, columns, weights, target)
    add(flags, m, mine)
    wait_until(flags, m, m)
    # The sums over groups, in their order: features are shared out as groups were.
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 1, 2):
            continue
        mine += 1
        for n in range(q * N // m, (q + 1) * N // m):
            total[:] = 0
            for i in range(m):
                for p in range(LK):
                    total[p] += sums[i, n, p]
            for p in range(LK):
                P[n, L - 1 - p // K, p % K] = total[p]
    add(flags, m, mine)
    wait_until(flags, m, 2 * m)


@kernel
def pass_two(H, lists, kinds, model, scale, ratio, Y, halos, C, logs, flags, threads):
    """C = W⋆X (T, K), of scale·X, by sums of motifs and shift-and-add (changes C, halos, flags).

    H is only read with ``ratio``; logs (blocks,) then get Σ X log R. Y (rows, L·K) is a buffer of
    the calling thread; other arguments as in ``pass_one`` and ``passes.pass_two``.
    """
    pieces, blocks = bare(lists[0]), lists[1]
    W, background, floor = bare(model[0]), bare(model[1]), model[2]
    H, halos, C = bare(H), bare(halos), bare(C)
    K = C.shape[1]
    m = blocks.shape[0] - 1
    flat, past = C.reshape(C.size), H.reshape(H.size)
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        halo = halos[b]
        halo[:] = 0
        logs[b] = 0
        for i in range(blocks[b], blocks[b + 1]):
            starts, columns, values = _piece(pieces, i, kinds)
            rows, own, start = pieces[i, 3], pieces[i, 4], pieces[i, 5]
            first, last = starts[0], starts[rows]
            where, x = columns[first:last], values[first:last]
            weights = np.empty(last - first, C.dtype)
            if ratio:
                _fits(past, K, own, start, starts, columns, W, weights)
                _ratios(where, x, background, floor, scale, weights)
                logs[b] += _log_sum(x, weights, scale)
            else:
                for j in range(weights.size):
                    weights[j] = scale * x[j]
            _add_motifs(W, starts, columns, weights, Y)
            add_rows(Y[:rows], own, start, K, flat, halo)
    join_blocks(begin, mine, pieces, blocks, halos, C, flags)


@kernel
def pass_residual(H, W, lists, kinds, scale, buffers, norms, flags, threads):
    """‖scale·X − X̂‖² of every block, X̂ being dense where it is not zero (changes norms, flags).

    W : (L·K, N), the oldest lag first
    buffers : of the calling thread: windows (rows, L·K), fit (rows, N)
    norms : (blocks,)
    """
    pieces, blocks = bare(lists[0]), lists[1]
    H, W = bare(H), bare(W)
    windows, fit = buffers
    places = np.empty(windows.shape[0], np.int64)
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        n = _active_first(
            windows, fill_windows(H, pieces, blocks[b], blocks[b + 1], windows), places
        )
        if n > 0:
            np.dot(windows[:n], W, fit[:n])
        silent = 0.0
        t = 0
        for i in range(blocks[b], blocks[b + 1]):
            starts, columns, values = _piece(pieces, i, kinds)
            for r in range(pieces[i, 3]):
                place = places[t]
                for j in range(starts[r], starts[r + 1]):
                    x = scale * values[j]
                    if place < 0:
                        silent += x * x
                    else:
                        fit[place, columns[j]] -= x
                t += 1
        norms[b] = silent + _squares(fit[:n])
    add(flags, m, mine)
    wait_until(flags, m, m)


@kernel
def _active_first(windows, n, places):
    """Move the windows that are not zero to the front; how many they are (changes both).

    places : (n,), where each of them has gone, −1 if it is zero
    """
    found = 0
    for t in range(n):
        window, target, active = windows[t], windows[found], False
        for p in range(window.size):
            if window[p] != 0:
                active = True
                break
        places[t] = found if active else -1
        if active:
            for p in range(window.size):
                target[p] = window[p]
            found += 1
    return found


@kernel
def _squares(rows):
    """Σ r², rows in their own precision, their sum in float64."""
    total = 0.0
    for t in range(rows.shape[0]):
        row, squares = rows[t], rows.dtype.type(0)
        for n in range(row.size):
            squares += row[n] * row[n]
        total += squares
    return total


@kernel
def pass_unexplained(H, W, lists, kinds, scale, energy, flags, threads):
    """Σ_n max(0, scale·x − x̂)² of every row, (T,): only entries can be above X̂.

    Changes energy and flags; W is (N, L·K).
    """
    pieces, blocks = bare(lists[0]), lists[1]
    H, W, energy = bare(H), bare(W), bare(energy)
    K = H.shape[1]
    flat = H.reshape(H.size)
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        for i in range(blocks[b], blocks[b + 1]):
            starts, columns, values = _piece(pieces, i, kinds)
            own, start = pieces[i, 4], pieces[i, 5]
            base = starts[0]
            fit = np.empty(starts[starts.size - 1] - base, H.dtype)
            _fits(flat, K, own, start, starts, columns, W, fit)
            for r in range(pieces[i, 3]):
                squares = 0.0
                for j in range(starts[r], starts[r + 1]):
                    above = max(scale * values[j] - fit[j - base], H.dtype.type(0))
                    squares += above * above
                energy[own + r] = squares
    add(flags, m, mine)
    wait_until(flags, m, m)
