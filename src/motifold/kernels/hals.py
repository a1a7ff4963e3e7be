"""Coordinate-descent sweeps (the paper's HALS) over columns of W̃ and over rows of H."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.memory import bare
from motifold.kernels.spin import add, claim, wait_until


@kernel
def sweep_rows(F, aims, gram, l1, l2, columns, lines, flags, moved, shrink, threads):
    """All sweeps over a factor whose rows are independent (changes F, lines, flags, moved).

    Any number of threads make the call at the same time.

    F, aims : (n, M), min ½f'Gf − a'f for each row
    gram : (M, M); l1, l2 : (M,)
    columns : so many are swept between two gradients, which come from a matrix product
    lines : (chunks, 2, M, rows), memory for chunks of F and of the aims, turned
    flags : (chunks + 2,), zero
    moved : (sweeps, chunks), squared lengths of the moves; shrink : as in ``tiles.sweep_tiles``
    """
    F, aims, gram, lines = bare(F), bare(aims), bare(gram), bare(lines)
    l1, l2 = bare(l1), bare(l2)
    m, _, M, rows = lines.shape
    n = F.shape[0]
    begin = add(flags, m + 1, 1) * m // threads
    gradient = np.empty((columns, rows), F.dtype)
    first, phase, last = 0.0, 0, False
    while True:
        mine = 0
        for place in range(begin, begin + m):
            c = place % m
            if not claim(flags, c, phase, phase + 1):
                continue
            mine += 1
            r0, r1 = c * rows, min((c + 1) * rows, n)
            if phase == 0:
                lines[c, :, :, r1 - r0 :] = 0
                for p in range(M):
                    line, aim = lines[c, 0, p], lines[c, 1, p]
                    for r in range(r1 - r0):
                        line[r], aim[r] = F[r0 + r, p], aims[r0 + r, p]
            if last:
                for p in range(M):
                    line = lines[c, 0, p]
                    for r in range(r1 - r0):
                        F[r0 + r, p] = line[r]
            else:
                moved[phase, c] = _sweep_chunk(lines[c], gram, l1, l2, columns, gradient)
        phase += 1
        add(flags, m, mine)
        wait_until(flags, m, phase * m)
        if last:
            return
        total = 0.0
        for c in range(m):
            total += moved[phase - 1, c]
        if phase == 1:
            first = total
        last = phase == moved.shape[0] or total <= shrink * shrink * first


@kernel
def _sweep_chunk(chunk, gram, l1, l2, columns, gradient):
    """One sweep over a chunk of rows, a few columns at a time."""
    lines, aims = chunk[0], chunk[1]
    M = gram.shape[0]
    total = 0.0
    for p in range(0, M, columns):
        end = min(p + columns, M)
        g = gradient[: end - p]
        np.dot(gram[p:end], lines, g)
        g -= aims[p:end]
        block = gram[p:end, p:end].copy()
        total += sweep_columns(lines[p:end], g, block, l1[p:end], l2[p:end])
    return total


@kernel
def sweep_columns(F, g, B, l1, l2):
    """One sweep over a few columns of a factor whose rows are independent (changes F, g).

    F, g (M, n): the columns as lines, and their gradient; B (M, M), their part of the Gram; l1, l2
    (M,). Each column in turn takes its best nonnegative values; of g only what is still to be
    used is kept up to date. Returns the squared length of the move.
    """
    M, n = F.shape
    zero, moved = F.dtype.type(0), 0.0
    d = np.empty(n, F.dtype)
    for p in range(M):
        curvature = B[p, p] + l2[p]
        inverse = 1 / curvature if curvature > 0 else zero
        keep = F.dtype.type(curvature > 0)
        entries, slopes = F[p], g[p]
        squares = zero
        for i in range(n):
            old = entries[i]
            new = max(zero, old - (slopes[i] + l1[p] + l2[p] * old) * inverse) * keep
            d[i] = new - old
            entries[i] = new
            squares += d[i] * d[i]
        moved += squares
        if squares > 0:
            for q in range(p + 1, M):
                target, tap = g[q], B[p, q]
                for i in range(n):
                    target[i] += d[i] * tap
    return moved


@kernel
def cut_off_slope(flat, C, A, E, stop, shift, t, k):
    """∇_H ½‖X − X̂‖² at entry (t, k), where the segment's end cuts motif k off.

    ``flat`` is H with L−1 rows of zeros around every segment, flattened; row t stands at
    t + shift. Two motifs that are cut off overlap by E, all others by A.
    """
    L, K = E.shape[:2]
    first = stop - L + 1  # the first start that is cut off
    begin, end = (t + shift - L + 1) * K, (first + shift) * K
    total = -C[t, k]
    taps = A[k].reshape((2 * L - 1) * K)
    for i in range(end - begin):
        total += flat[begin + i] * taps[i]
    for s in range(first, stop):
        for j in range(K):
            total += flat[(s + shift) * K + j] * E[t - stop + L, k, s - stop + L, j]
    return total


@kernel
def sweep_in_time(rows, C, A, E, layout, k, l1, l2, t0, t1):
    """One sweep over H[t0:t1, k]: for each t, the best entry (changes rows).

    rows : H with L−1 rows of zeros around every segment
    layout : (S, 4), start, end of the free activations, end and shift of every segment
    The slope at an entry is gathered from H: one dot product of K(2L−1) consecutive numbers. Four
    are taken together, from what H is before the first of the four moves, so that they do not wait
    for each other; what their own moves change is added from registers. Returns the squared
    length of the move.
    """
    K = rows.shape[1]
    L = E.shape[0]
    flat = rows.reshape(rows.size)
    n = (2 * L - 1) * K
    taps = A[k].reshape(n)
    zero, moved = C.dtype.type(0), 0.0
    a0, a1, a2, a3 = A[k, L - 1, k], zero, zero, zero  # the motif with itself, 0…3 bins later
    if L > 1:
        a1 = A[k, L, k]
    if L > 2:
        a2 = A[k, L + 1, k]
    if L > 3:
        a3 = A[k, L + 2, k]
    inverse = 1 / (a0 + l2) if a0 + l2 > 0 else zero
    keep = C.dtype.type(a0 + l2 > 0)
    for segment in range(layout.shape[0]):
        start, stop_active, stop, shift = layout[segment]
        begin, end = max(t0, start), min(t1, stop_active)
        uncut = min(end, stop - L + 1)
        fours = begin + max(0, uncut - begin) // 4 * 4
        for t in range(begin, fours, 4):
            p = (t + shift - L + 1) * K
            w0, w1 = flat[p : p + n], flat[p + K : p + K + n]
            w2, w3 = flat[p + 2 * K : p + 2 * K + n], flat[p + 3 * K : p + 3 * K + n]
            s0, s1, s2, s3 = l1 - C[t, k], l1 - C[t + 1, k], l1 - C[t + 2, k], l1 - C[t + 3, k]
            for i in range(n):
                tap = taps[i]
                s0 += w0[i] * tap
                s1 += w1[i] * tap
                s2 += w2[i] * tap
                s3 += w3[i] * tap
            p = (t + shift) * K + k
            h0, h1, h2, h3 = flat[p], flat[p + K], flat[p + 2 * K], flat[p + 3 * K]
            d0 = max(zero, h0 - (s0 + l2 * h0) * inverse) * keep - h0
            d1 = max(zero, h1 - (s1 + l2 * h1 + d0 * a1) * inverse) * keep - h1
            d2 = max(zero, h2 - (s2 + l2 * h2 + d0 * a2 + d1 * a1) * inverse) * keep - h2
            s3 += d0 * a3 + d1 * a2 + d2 * a1
            d3 = max(zero, h3 - (s3 + l2 * h3) * inverse) * keep - h3
            flat[p], flat[p + K] = max(zero, h0 + d0), max(zero, h1 + d1)
            flat[p + 2 * K], flat[p + 3 * K] = max(zero, h2 + d2), max(zero, h3 + d3)
            moved += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        for t in range(fours, end):
            moved += update_entry(flat, C, A, E, stop, shift, t, k, l1, l2)
    return moved


@kernel
def sweep_in_blocks(rows, C, A, E, layout, k, l1, l2, t0, t1):
    """The same with every L-th entry in turn, which do not interact: all of them at once."""
    K = rows.shape[1]
    L = E.shape[0]
    flat = rows.reshape(rows.size)
    n = (2 * L - 1) * K
    taps = A[k].reshape(n)
    zero, moved = C.dtype.type(0), 0.0
    curvature = A[k, L - 1, k] + l2
    inverse = 1 / curvature if curvature > 0 else zero
    keep = C.dtype.type(curvature > 0)
    for offset in range(L):
        for segment in range(layout.shape[0]):
            start, stop_active, stop, shift = layout[segment]
            begin, end = max(t0, start), min(t1, stop_active)
            uncut = min(end, stop - L + 1)
            for t in range(begin + offset, uncut, L):
                p = (t + shift - L + 1) * K
                window = flat[p : p + n]
                slope = l1 - C[t, k]
                for i in range(n):
                    slope += window[i] * taps[i]
                p = (t + shift) * K + k
                old = flat[p]
                new = max(zero, old - (slope + l2 * old) * inverse) * keep
                flat[p] = new
                moved += (new - old) ** 2
            past = max(0, uncut - begin)  # where the grid of every L-th entry goes on
            for t in range(begin + past + (offset - past) % L, end, L):
                moved += update_entry(flat, C, A, E, stop, shift, t, k, l1, l2)
    return moved


@kernel
def update_entry(flat, C, A, E, stop, shift, t, k, l1, l2):
    """Minimise over the entry H[t, k] (changes flat); returns the squared move.

    For the few entries that the fast loops leave out: at the end of a segment or of a tile.
    """
    L, K = E.shape[:2]
    left = stop - t
    if left >= L:
        slope, curvature = -C[t, k], l2 + A[k, L - 1, k]
        begin = (t + shift - L + 1) * K
        for s in range(2 * L - 1):
            for j in range(K):
                slope += flat[begin + s * K + j] * A[k, s, j]
    else:
        slope = cut_off_slope(flat, C, A, E, stop, shift, t, k)
        curvature = l2 + E[L - left, k, L - left, k]
    position = (t + shift) * K + k
    old = flat[position]
    new = C.dtype.type(0)
    if curvature > 0:
        new = max(new, old - (slope + l1 + l2 * old) / curvature)
    flat[position] = new
    return (new - old) ** 2
