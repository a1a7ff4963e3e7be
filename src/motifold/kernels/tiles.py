"""Sweeps over H by tiles in two phases, all of them in one call, the gradient kept."""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.memory import bare
from motifold.kernels.spin import add, claim, wait_until

# Entries of a row of H that move together before the gradient is told. What is then added to it is
# rounded up to a multiple of so many numbers, the last of them zeros, which vector instructions
# do without a remainder: behind each tile there is room for them.
TOGETHER, ROUND = 4, 32


@kernel
def sweep_tiles(H, gradient, g, A, E, l1, l2, tiles, items, flags, moved, shrink, threads):
    """All sweeps over H (changes H, gradient, g, flags, moved).

    Any number of threads make the call at the same time.

    H, gradient : (T, K), the activations and A∗H − C, which follows them
    g : memory for the gradient tile by tile, flattened, each with L−1 rows before it and room for
        ROUND numbers behind it
    A, E : the Grams, as in ``HStatistics``
    l1, l2 : (K,)
    tiles : (n, 7), begin, begin of the seam, end, start, end of the free activations and end of the
        segment, and shift: row t of the tile is row t + shift of g
    items : (m + 1,), runs of tiles items[i]:items[i + 1] that a thread takes at a time
    flags : (m + 2,), zero: phases an item has been claimed in; how many are done in all; threads
    moved : (sweeps, 2, m), squared lengths of the moves, which decide on the next sweep
    shrink : a sweep that moved H by less than this part of the first is the last
    threads : about how many there are: each begins elsewhere, in each sweep in the same place

    Interiors of neighbouring tiles are L bins apart: none sees what another does. Their changes of
    the gradient meet in the seam between them; there the tile on the right has rows of its own,
    which are added when it is the seam's turn. A seam behind the last tile is left to whoever has
    the next one (``sweep_seams``).
    """
    H, gradient, g, A, E = bare(H), bare(gradient), bare(g), bare(A), bare(E)
    tiles, items = bare(tiles), bare(items)
    m = items.shape[0] - 1
    taps = _wide_taps(A)
    begin = add(flags, m + 1, 1) * m // threads
    first, phase = 0.0, 0
    last = False
    while not last:
        for part in range(2):
            sweep, mine = phase // 2, 0
            for place in range(begin, begin + m):
                i = place % m
                if not claim(flags, i, phase, phase + 1):
                    continue
                mine += 1
                squares = 0.0
                for j in range(items[i], items[i + 1]):
                    if part == 0:
                        if phase == 0:
                            _copy_in(gradient, g, tiles[j], E.shape[0])
                        squares += _interior(H, g, A, E, taps, l1, l2, tiles[j])
                    elif tiles[j, 1] < tiles[j, 2] and j + 1 < tiles.shape[0]:
                        squares += _seam(H, g, A, taps, l1, l2, tiles[j], tiles[j + 1, 6])
                moved[sweep, part, i] = squares
            phase += 1
            add(flags, m, mine)
            wait_until(flags, m, phase * m)
        total = 0.0
        for part in range(2):
            for i in range(m):
                total += moved[phase // 2 - 1, part, i]
        if phase == 2:
            first = total
        last = phase == 2 * moved.shape[0] or total <= shrink * shrink * first
    mine = 0
    for place in range(begin, begin + m):
        if claim(flags, place % m, phase, phase + 1):
            mine += 1
            for j in range(items[place % m], items[place % m + 1]):
                _copy_out(gradient, g, tiles[j])
    add(flags, m, mine)
    wait_until(flags, m, (phase + 1) * m)


@kernel
def sweep_seams(H, slopes, A, l1, l2):
    """Sweep seams whose tiles are in different hands (changes H, slopes); the squared moves, (m,).

    H : (m, L−1, K), the activations of every seam
    slopes : (m, 3(L−1), K), A∗H − C there and in L−1 bins on either side
    """
    m, h, K = H.shape
    taps = _wide_taps(A)
    moved, row = np.zeros(m), np.empty(3 * h * K + ROUND, H.dtype)
    for i in range(m):
        entries, source = H[i].reshape(h * K), slopes[i].reshape(3 * h * K)
        for j in range(source.size):
            row[j] = source[j]
        for k in range(K):
            moved[i] += _sweep_row(entries, row, A, taps, l1[k], l2[k], k, 0, h, h)
        for j in range(source.size):
            source[j] = row[j]
    return moved


@kernel
def _wide_taps(A):
    """The taps of every motif with zeros around, so that shifted ones can be read: (K, ·)."""
    K, width, _ = A.shape
    margin = (TOGETHER - 1) * K
    taps = np.zeros((K, margin + _rounded(width * K + margin)), A.dtype)
    for k in range(K):
        taps[k, margin : margin + width * K] = A[k].reshape(width * K)
    return taps


@kernel
def _rounded(n):
    return (n + ROUND - 1) // ROUND * ROUND


@kernel
def _copy_in(gradient, g, tile, L):
    """The gradient of a tile into g, zeros before it (changes g)."""
    K = gradient.shape[1]
    a, b, shift = tile[0], tile[2], tile[6]
    source, target = gradient.reshape(gradient.size)[a * K : b * K], g[(a + shift) * K :]
    for i in range(source.size):
        target[i] = source[i]
    before = g[(a + shift - L + 1) * K : (a + shift) * K]
    for i in range(before.size):
        before[i] = 0


@kernel
def _copy_out(gradient, g, tile):
    """The gradient of a tile from g (changes gradient)."""
    K = gradient.shape[1]
    a, b, shift = tile[0], tile[2], tile[6]
    target, source = gradient.reshape(gradient.size)[a * K : b * K], g[(a + shift) * K :]
    for i in range(target.size):
        target[i] = source[i]


@kernel
def _interior(H, g, A, E, taps, l1, l2, tile):
    """Sweep a tile up to its seam; at the end of a segment, to the end."""
    a, seam, _, start, stop_active, stop, shift = tile
    L, K = E.shape[:2]
    end = min(seam, stop_active)
    uncut = max(a, min(end, stop - L + 1))
    h = H.reshape(H.size)
    moved = 0.0
    for k in range(K):
        moved += _sweep_row(h, g, A, taps, l1[k], l2[k], k, a, uncut, shift)
        for t in range(uncut, end):
            moved += _cut_off_entry(h, g, A, E, l1[k], l2[k], k, t, start, stop, shift)
    return moved


@kernel
def _seam(H, g, A, taps, l1, l2, tile, shift_after):
    """Sweep the last L−1 bins of a tile, once the interiors on both sides have been swept.

    Row t of the next tile is row t + shift_after of g: what its interior changed of the seam stands
    just before it. To be swept, the 3(L−1) rows that the seam can change are put side by side.
    """
    seam, b, shift = tile[1], tile[2], tile[6]
    K = H.shape[1]
    n = (b - seam) * K
    mine = g[(b + shift) * K - 2 * n : (b + shift) * K]
    others = g[(b + shift_after) * K - n : (b + shift_after) * K + n]
    slopes = np.empty(3 * n + ROUND, g.dtype)
    for i in range(n):
        slopes[i], slopes[n + i] = mine[i], mine[n + i] + others[i]
        slopes[2 * n + i] = others[n + i]
        others[i] = 0
    h = H.reshape(H.size)
    moved = 0.0
    for k in range(K):
        # Row ``seam`` of H is row L−1 of the slopes.
        moved += _sweep_row(h, slopes, A, taps, l1[k], l2[k], k, seam, b, b - 2 * seam)
    for i in range(n):
        mine[i], mine[n + i] = slopes[i], slopes[n + i]
        others[n + i] = slopes[2 * n + i]
    return moved


@kernel
def _sweep_row(h, slopes, A, taps, l1, l2, k, t0, t1, shift):
    """For each t in t0…t1, none of them cut off: the best entry (t, k) of H; slopes follow.

    Row t of H is row t + shift of the slopes, which has L−1 rows before and after it. Four entries
    move together: what their own moves change is added from registers, and the slopes are changed
    once for all four. Meanwhile the next four are under way: their slopes are read before, and
    corrected from registers too, so that they need not wait for memory.
    """
    K = A.shape[0]
    L = (A.shape[1] + 1) // 2
    row = taps[k]
    margin = (TOGETHER - 1) * K
    width, narrow = _rounded((2 * L - 1) * K + margin), _rounded((2 * L - 1) * K)
    zero, one, moved = h.dtype.type(0), h.dtype.type(1), 0.0  # of their type, else all is float64
    curvature = A[k, L - 1, k] + l2
    inverse, stay = zero, zero  # without curvature an entry is zero
    if curvature > 0:
        inverse = one / curvature
        stay = one - l2 * inverse
    # How far the best value of an entry falls when the one δ bins before rises by one.
    c = np.zeros(2 * TOGETHER, h.dtype)
    for d in range(min(L, 2 * TOGETHER)):
        c[d] = A[k, L - 1 + d, k] * inverse
    c1, c2, c3, c4, c5, c6, c7 = c[1], c[2], c[3], c[4], c[5], c[6], c[7]
    less = l1 * inverse
    fours = t0 + (t1 - t0) // TOGETHER * TOGETHER
    x0, x1, x2, x3 = zero, zero, zero, zero  # the best values of the next four
    if t0 < fours:
        p, q = t0 * K + k, (t0 + shift) * K + k
        x0 = h[p] * stay - slopes[q] * inverse - less
        x1 = h[p + K] * stay - slopes[q + K] * inverse - less
        x2 = h[p + 2 * K] * stay - slopes[q + 2 * K] * inverse - less
        x3 = h[p + 3 * K] * stay - slopes[q + 3 * K] * inverse - less
    for t in range(t0, fours, TOGETHER):
        p = t * K + k
        h0, h1, h2, h3 = h[p], h[p + K], h[p + 2 * K], h[p + 3 * K]
        n0 = max(zero, x0)
        d0 = n0 - h0
        n1 = max(zero, x1 - d0 * c1)
        d1 = n1 - h1
        n2 = max(zero, x2 - d0 * c2 - d1 * c1)
        d2 = n2 - h2
        n3 = max(zero, x3 - d0 * c3 - d1 * c2 - d2 * c1)
        d3 = n3 - h3
        if t + TOGETHER < fours:
            u, q = p + TOGETHER * K, (t + TOGETHER + shift) * K + k
            x0 = h[u] * stay - slopes[q] * inverse - less
            x1 = h[u + K] * stay - slopes[q + K] * inverse - less
            x2 = h[u + 2 * K] * stay - slopes[q + 2 * K] * inverse - less
            x3 = h[u + 3 * K] * stay - slopes[q + 3 * K] * inverse - less
        if d0 == 0 and d1 == 0 and d2 == 0 and d3 == 0:
            continue
        x0 -= d0 * c4 + d1 * c3 + d2 * c2 + d3 * c1
        x1 -= d0 * c5 + d1 * c4 + d2 * c3 + d3 * c2
        x2 -= d0 * c6 + d1 * c5 + d2 * c4 + d3 * c3
        x3 -= d0 * c7 + d1 * c6 + d2 * c5 + d3 * c4
        h[p], h[p + K], h[p + 2 * K], h[p + 3 * K] = n0, n1, n2, n3
        moved += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        low = (t + shift - L + 1) * K
        target = slopes[low : low + width]
        w0, w1 = row[margin : margin + width], row[margin - K : margin - K + width]
        w2, w3 = row[margin - 2 * K : margin - 2 * K + width], row[0:width]
        for i in range(width):
            target[i] += d0 * w0[i] + d1 * w1[i] + d2 * w2[i] + d3 * w3[i]
    for t in range(fours, t1):
        p, low = t * K + k, (t + shift - L + 1) * K
        new = max(zero, h[p] * stay - slopes[low + (L - 1) * K + k] * inverse - less)
        d0 = new - h[p]
        if d0 != 0:
            h[p] = new
            moved += d0 * d0
            target, w0 = slopes[low : low + narrow], row[margin : margin + narrow]
            for i in range(narrow):
                target[i] += d0 * w0[i]
    return moved


@kernel
def _cut_off_entry(h, g, A, E, l1, l2, k, t, start, stop, shift):
    """The best entry (t, k) of H where the segment's end cuts the motif off; g follows.

    Two motifs that are cut off overlap by E, all others by A.
    """
    L, K = E.shape[:2]
    place = t - stop + L
    curvature = E[place, k, place, k] + l2
    old = h[t * K + k]
    new = h.dtype.type(0)
    if curvature > 0:
        new = max(new, old - (g[(t + shift) * K + k] + l1 + l2 * old) / curvature)
    d = new - old
    if d == 0:
        return 0.0
    h[t * K + k] = new
    cut = max(start, stop - L + 1)  # the first start that is cut off
    begin = max(start, t - L + 1)
    target = g[(begin + shift) * K : (cut + shift) * K]
    taps = A[k].reshape((2 * L - 1) * K)[(begin - t + L - 1) * K :]
    for i in range(target.size):
        target[i] += d * taps[i]
    target = g[(cut + shift) * K : (stop + shift) * K]
    taps = E[place, k].reshape(L * K)[(cut - stop + L) * K :]
    for i in range(target.size):
        target[i] += d * taps[i]
    return float(d * d)
