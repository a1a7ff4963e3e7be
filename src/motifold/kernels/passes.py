"""The two passes over the data, each in one call for all blocks of it.

Any number of threads make the call at the same time, with the same arrays but for their buffers.
The data comes as a list of ``pieces``, (n, 6) of int64: the address of the first row, the strides
across rows and along a row in bytes, the number of rows, the row of H that belongs to the first,
and the row of H where its segment starts. Block b is the pieces blocks[b]:blocks[b + 1], group q
the blocks groups[q]:groups[q + 1]. Blocks and groups are cut by shape, so that no bit depends on
who does what.
"""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.memory import bare, copy_rows, rows_at
from motifold.kernels.spin import add, claim, wait_until


@kernel
def block_rows(pieces, first, last, N, buffer):
    """The data of a block, (rows, N): where it stands if it stands in order, else copied."""
    size = buffer.itemsize
    address, across, along, rows = pieces[first, :4]
    if last - first == 1 and along == size and across == N * size:
        return rows_at(address, rows, N, buffer)
    place = buffer.ctypes.data
    total = 0
    for i in range(first, last):
        address, across, along, rows = pieces[i, :4]
        copy_rows(address, across, along, rows_at(place + total * N * size, rows, N, buffer))
        total += rows
    return rows_at(place, total, N, buffer)


@kernel
def _block_columns(pieces, first, last, N, buffer):
    """The same as (N, rows), for data that has its features one after the other."""
    place = buffer.ctypes.data
    total = 0
    for i in range(first, last):
        total += pieces[i, 3]
    out = rows_at(place, N, total, buffer)
    begin = 0
    for i in range(first, last):
        address, _, along, rows = pieces[i, :4]
        for n in range(N):
            source, target = rows_at(address + n * along, 1, rows, buffer)[0], out[n]
            for t in range(rows):
                target[begin + t] = source[t]
        begin += rows
    return out


@kernel
def fill_windows(H, pieces, first, last, out):
    """Rows of H̃, the oldest lag first, for the pieces of a block (changes out); how many."""
    K = H.shape[1]
    LK = out.shape[1]
    flat = H.reshape(H.size)
    r = 0
    for i in range(first, last):
        rows, begin, start = pieces[i, 3], pieces[i, 4], pieces[i, 5]
        for t in range(begin, begin + rows):
            # Loops, since numba's assignment of slices takes longer than what it copies.
            missing = max(0, LK - (t + 1 - start) * K)
            target, source = out[r], flat[(t + 1) * K - LK + missing : (t + 1) * K]
            for j in range(missing):
                target[j] = 0
            for j in range(source.size):
                target[missing + j] = source[j]
            r += 1
    return r


@kernel
def lag_products(windows, K, out):
    """out[j, dK + k] += Σ_t H[t−L+1, j] · H[t−L+1+d, k] over rows of windows (changes out)."""
    n, LK = windows.shape
    fours = n - n % 4
    for t in range(0, fours, 4):
        w0, w1, w2, w3 = windows[t], windows[t + 1], windows[t + 2], windows[t + 3]
        for j in range(K):
            h0, h1, h2, h3 = w0[j], w1[j], w2[j], w3[j]
            target = out[j]
            for i in range(LK):
                target[i] += h0 * w0[i] + h1 * w1[i] + h2 * w2[i] + h3 * w3[i]
    for t in range(fours, n):
        w0 = windows[t]
        for j in range(K):
            h0, target = w0[j], out[j]
            for i in range(LK):
                target[i] += h0 * w0[i]


@kernel
def _block_products(H, pieces, first, last, columns, windows, data, product, small):
    """H̃·X of a block, (L·K, N), and its lag products, (K, L·K) (sets product, adds to small)."""
    K = H.shape[1]
    N = product.shape[1]
    rows = fill_windows(H, pieces, first, last, windows)
    lag_products(windows[:rows], K, small)
    if N > 0:
        # In this order BLAS is faster than in the other, (N, rows) times (rows, L·K).
        H_tilde = windows[:rows].T
        if columns:
            np.dot(H_tilde, _block_columns(pieces, first, last, N, data).T, product)
        else:
            np.dot(H_tilde, block_rows(pieces, first, last, N, data), product)


@kernel
def products_of_blocks(H, pieces, blocks, columns, buffers, products, smalls, flags, threads):
    """What every block adds to pass 1, by itself (changes products, smalls, flags).

    buffers : of the calling thread: windows (rows, L·K), data (rows, N)
    products, smalls : (blocks, L·K, N) and (blocks, K, L·K), of the data's type
    flags : (blocks + 2,), zero
    """
    H, pieces, products, smalls = bare(H), bare(pieces), bare(products), bare(smalls)
    windows, data = buffers
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        smalls[b] = 0
        block = blocks[b], blocks[b + 1]
        _block_products(H, pieces, *block, columns, windows, data, products[b], smalls[b])
    add(flags, m, mine)
    wait_until(flags, m, m)


@kernel
def pass_one(
    H, pieces, blocks, groups, columns, buffers, sums, bases, P, base, scale, flags, threads
):
    """P = X H̃ᵀ (N, L, K) and the lag products of H (K, L·K) (changes P, base, sums, bases, flags).

    columns : whether the data has its features one after the other
    buffers : of the calling thread: windows (rows, L·K), data (rows, N), product (L·K, N); without
        data to read, N = 0
    sums, bases : (groups, L·K, N), of the data's type, and (groups, K, L·K): for every group
    scale : of P
    flags : (groups + 2,), zero
    """
    H, pieces, sums, bases, P = bare(H), bare(pieces), bare(sums), bare(bases), bare(P)
    windows, data, product = buffers
    N, L, K = P.shape
    m = groups.shape[0] - 1
    small, total = np.empty((K, L * K), H.dtype), np.empty(N)
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 0, 1):
            continue
        mine += 1
        bases[q] = 0
        for b in range(groups[q], groups[q + 1]):
            first, last = blocks[b], blocks[b + 1]
            small[:] = 0
            if b == groups[q]:
                _block_products(H, pieces, first, last, columns, windows, data, sums[q], small)
            else:
                _block_products(H, pieces, first, last, columns, windows, data, product, small)
                if N > 0:
                    sums[q] += product
            bases[q] += small
    add(flags, m, mine)
    wait_until(flags, m, m)
    # The sums over groups, in their order: columns of P are shared out as groups were.
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 1, 2):
            continue
        mine += 1
        for p in range(q * L * K // m, (q + 1) * L * K // m):
            total[:] = 0
            for i in range(m):
                total += sums[i, p]
            for n in range(N):
                P[n, L - 1 - p // K, p % K] = total[n] * scale
        if q == 0:
            for i in range(m):
                base += bases[i]
    add(flags, m, mine)
    wait_until(flags, m, 2 * m)


@kernel
def add_rows(Y, own, start, K, flat, halo):
    """Add row r of products to the L rows of C up to ``own + r`` (changes flat and halo).

    Rows from ``own`` on begin at zero. Those before the segment's start are left out, others before
    ``own`` go to the block's halo.
    """
    LK = Y.shape[1]
    flat[own * K : (own + Y.shape[0]) * K] = 0
    for r in range(Y.shape[0]):
        row = Y[r]
        low, high = (own + r + 1) * K - LK, (own + r + 1) * K
        before = min(max(0, own * K - low), LK)
        there = min(max(0, start * K - low), LK)
        for j in range(there, before):
            halo[LK - K - own * K + low + j] += row[j]
        target, source = flat[low + before : high], row[before:]
        for j in range(LK - before):
            target[j] += source[j]


@kernel
def add_shifted(Y, pieces, first, last, halo, C):
    """C of a block from Y = X·W̃ (rows, L·K): each row of it is L rows of C (changes C, halo).

    halo : ((L−1)·K,), what the block adds to C before its own rows
    """
    K = C.shape[1]
    flat = C.reshape(C.size)
    halo[:] = 0
    r = 0
    for i in range(first, last):
        rows, own, start = pieces[i, 3], pieces[i, 4], pieces[i, 5]
        add_rows(Y[r : r + rows], own, start, K, flat, halo)
        r += rows


@kernel
def _add_halos(pieces, blocks, b, halos, K, flat):
    """Add to the last rows of block b what later blocks of the same segment have for them."""
    reach = halos.shape[1]
    end = blocks[b + 1] - 1
    own, stop = pieces[end, 4], pieces[end, 4] + pieces[end, 3]
    for later in range(b + 1, blocks.shape[0] - 1):
        i = blocks[later]
        begins, start = pieces[i, 4], pieces[i, 5]
        low = max(begins * K - reach, own * K, start * K)
        if begins == start or low >= stop * K:
            break
        halo = halos[later]
        for j in range(low, stop * K):
            flat[j] += halo[reach - begins * K + j]


@kernel
def join_blocks(begin, mine, pieces, blocks, halos, C, flags):
    """The end of a second pass: when all blocks are there, each gets what later ones have for it.

    begin, mine : where the calling thread began, and how many blocks it has done
    halos, C : (blocks, (L−1)·K) and (T, K), whatever comes before these axes (changes C, flags)
    """
    m, K, T = blocks.shape[0] - 1, C.shape[-1], C.shape[-2]
    n = C.size // (T * K)
    of_blocks, flat = halos.reshape((n, m, halos.shape[-1])), C.reshape((n, T * K))
    add(flags, m, mine)
    wait_until(flags, m, m)
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 1, 2):
            continue
        mine += 1
        for i in range(n):
            _add_halos(pieces, blocks, b, of_blocks[i], K, flat[i])
    add(flags, m, mine)
    wait_until(flags, m, 2 * m)


@kernel
def pass_two(W, pieces, blocks, columns, buffers, halos, C, flags, threads):
    """C = W⋆X (T, K) by products and shift-and-add (changes C, halos, flags).

    W : (N, L·K), the oldest lag first
    buffers : of the calling thread: product (rows, L·K), data (rows, N)
    halos : (blocks, (L−1)·K): what a block adds to C before its own rows
    """
    W, pieces, halos, C = bare(W), bare(pieces), bare(halos), bare(C)
    product, data = buffers
    N = W.shape[0]
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        first, last = blocks[b], blocks[b + 1]
        n = 0
        for i in range(first, last):
            n += pieces[i, 3]
        Y = product[:n]
        if columns:
            np.dot(_block_columns(pieces, first, last, N, data).T, W, Y)
        else:
            np.dot(block_rows(pieces, first, last, N, data), W, Y)
        add_shifted(Y, pieces, first, last, halos[b], C)
    join_blocks(begin, mine, pieces, blocks, halos, C, flags)


@kernel
def pass_residual(H, W, pieces, blocks, columns, buffers, scale, norms, flags, threads):
    """‖scale·X − X̂‖² of every block (changes norms, flags).

    W : (L·K, N), the oldest lag first
    buffers : of the calling thread: windows (rows, L·K), data (rows, N), fit (rows, N)
    norms : (blocks,)
    """
    H, W, pieces = bare(H), bare(W), bare(pieces)
    windows, data, fit = buffers
    N = W.shape[1]
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        first, last = blocks[b], blocks[b + 1]
        rows = fill_windows(H, pieces, first, last, windows)
        if columns:
            X = _block_columns(pieces, first, last, N, data)
            turned = rows_at(fit.ctypes.data, N, rows, fit)
            np.dot(W.T, windows[:rows].T, turned)
            norms[b] = _squared_distance(X, turned, scale)
        else:
            X = block_rows(pieces, first, last, N, data)
            np.dot(windows[:rows], W, fit[:rows])
            norms[b] = _squared_distance(X, fit[:rows], scale)
    add(flags, m, mine)
    wait_until(flags, m, m)


@kernel
def _squared_distance(X, fit, scale):
    """‖scale·X − fit‖², rows in their own precision, their sum in float64."""
    total = 0.0
    for t in range(X.shape[0]):
        row, expected = X[t], fit[t]
        squares = fit.dtype.type(0)
        for n in range(row.size):
            distance = scale * row[n] - expected[n]
            squares += distance * distance
        total += squares
    return total
