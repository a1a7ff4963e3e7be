"""The two passes over the data for a β-divergence: X̂, its ratios to X, and their products.

All of it block by block, in buffers that stay in the cache; nothing of X's size is stored. The
data, blocks, groups and threads are as in ``kernels.passes``. The divergence of X from X̂ comes with
every pass. X̂ is never below ``floor``, which is added to it.

With u = X̂: the ratios are X·u^(β−2) and u^(β−1), zero where X is not observed. For β = 1 the
latter is one everywhere, and its products are sums of the factors, unless entries are missing.
"""

import numpy as np

from motifold.kernels._jit import kernel
from motifold.kernels.logarithm import log
from motifold.kernels.memory import bare, copy_rows, rows_at
from motifold.kernels.passes import add_shifted, block_rows, fill_windows, join_blocks
from motifold.kernels.spin import add, claim, wait_until


@kernel
def _observed(masks, first, last, pieces, N, buffer):
    """What is observed of a block, (rows, N) of bytes, zero or one."""
    place = buffer.ctypes.data
    total = 0
    for i in range(first, last):
        address, across, along = masks[i]
        rows = pieces[i, 3]
        target = rows_at(place + total * N, rows, N, buffer)
        if address == 0:
            target[:] = 1
        else:
            copy_rows(address, across, along, target)
        total += rows
    return rows_at(place, total, N, buffer)


@kernel
def _counts(x, fit, scale, floor):
    """One row for β = 1: its divergence; fit becomes the ratio (changes fit)."""
    total = fit.dtype.type(0)
    for n in range(x.size):
        value, expected = scale * x[n], fit[n] + floor
        ratio = value / expected
        total += value * log(ratio) + (expected - value)
        fit[n] = ratio
    return total


@kernel
def _spectrum(x, fit, second, scale, floor):
    """One row for β = 0 (changes fit, second)."""
    total = fit.dtype.type(0)
    one = fit.dtype.type(1)
    for n in range(x.size):
        inverse = one / (fit[n] + floor)
        ratio = scale * x[n] * inverse
        total += (ratio - one) - log(ratio)
        second[n] = inverse
        fit[n] = ratio * inverse
    return total


@kernel
def _general(x, fit, second, scale, floor, beta):
    """One row for any other β (changes fit, second)."""
    total = 0.0
    for n in range(x.size):
        value, expected = scale * x[n], fit[n] + floor
        power = expected ** (beta - 1)
        total += (value**beta + (beta - 1) * expected * power - beta * value * power) / (
            beta * (beta - 1)
        )
        second[n] = power
        fit[n] = value * (power / expected)
    return total


@kernel
def _hide(x, fit, second, observed, scale, floor, beta):
    """What ``_general`` and the others do, for a row with missing entries."""
    total = 0.0
    zero, one = fit.dtype.type(0), fit.dtype.type(1)
    for n in range(x.size):
        if not observed[n]:
            fit[n], second[n] = zero, zero
            continue
        value, expected = scale * x[n], fit[n] + floor
        ratio = value / expected
        if beta == 1:
            total += value * log(ratio) + (expected - value)
            fit[n], second[n] = ratio, one
        elif beta == 0:
            total += (ratio - one) - log(ratio)
            fit[n], second[n] = ratio / expected, one / expected
        else:
            power = expected ** (beta - 1)
            total += (value**beta + (beta - 1) * expected * power - beta * value * power) / (
                beta * (beta - 1)
            )
            fit[n], second[n] = ratio * power, power
    return total


@kernel
def _ratios(X, fit, second, observed, scale, floor, beta):
    """The divergence of a block, whose ratios take the place of X̂ (changes fit, second).

    observed : (rows, N) of bytes, or of no rows
    """
    total = 0.0
    masked = observed.shape[0] > 0
    for t in range(X.shape[0]):
        if masked:
            total += _hide(X[t], fit[t], second[t], observed[t], scale, floor, beta)
        elif beta == 1:
            total += _counts(X[t], fit[t], scale, floor)
        elif beta == 0:
            total += _spectrum(X[t], fit[t], second[t], scale, floor)
        else:
            total += _general(X[t], fit[t], second[t], scale, floor, beta)
    return total


@kernel
def _fitted(H, W, pieces, masks, first, last, buffers, scale, floor, beta):
    """A block's windows of H, how many rows, and its divergence; ratios are in the buffers.

    buffers : windows (rows, L·K), data (rows, N), fit (rows, N), second (rows or 0, N), bytes
    """
    windows, data, fit, second, seen = buffers
    N = W.shape[1]
    rows = fill_windows(H, pieces, first, last, windows)
    np.dot(windows[:rows], W, fit[:rows])
    X = block_rows(pieces, first, last, N, data)
    observed = seen[:0]
    if masks.shape[0] > 0:
        observed = _observed(masks, first, last, pieces, N, seen)
    return rows, _ratios(X, fit, second, observed, scale, floor, beta)


@kernel
def ratio_pass_one(
    H, W, lists, buffers, product, numbers, sums, lags, P, below, divergences, flags, threads
):
    """Products of the ratios with H̃ (changes all from ``sums`` on).

    W : (L·K, N), the oldest lag first
    lists : pieces, blocks, groups as in ``kernels.passes``; masks (pieces or 0, 3), the address of
        the first row of what is observed, or 0 if all is, and its strides
    buffers, product : of the calling thread, see ``_fitted``; and (L·K, N)
    numbers : scale, floor, β, in the data's precision
    sums : (2 or 1, groups, L·K, N), lags : (groups, L·K), for every group
    P, below : (N, L, K), of the first and the second ratio; the latter (1, L, K) where it is one
        everywhere
    divergences : (groups,)
    flags : (groups + 2,), zero
    """
    pieces, blocks, groups, masks = lists
    scale, floor, beta = numbers
    H, W, pieces, sums, P, below = bare(H), bare(W), bare(pieces), bare(sums), bare(P), bare(below)
    windows, fit, second = buffers[0], buffers[2], buffers[3]
    N, L, K = P.shape
    m = groups.shape[0] - 1
    two = sums.shape[0] == 2
    total = np.empty(N)
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 0, 1):
            continue
        mine += 1
        lags[q] = 0
        divergences[q] = 0
        for b in range(groups[q], groups[q + 1]):
            first, last = blocks[b], blocks[b + 1]
            rows, divergence = _fitted(
                H, W, pieces, masks, first, last, buffers, scale, floor, beta
            )
            divergences[q] += divergence
            if not two:
                for t in range(rows):
                    lags[q] += windows[t]
            for i in range(sums.shape[0]):
                ratios = fit if i == 0 else second
                np.dot(windows[:rows].T, ratios[:rows], product)
                if b == groups[q]:
                    sums[i, q] = product
                else:
                    sums[i, q] += product
    add(flags, m, mine)
    wait_until(flags, m, m)
    # The sums over groups, in their order: columns are shared out as groups were.
    mine = 0
    for place in range(begin, begin + m):
        q = place % m
        if not claim(flags, q, 1, 2):
            continue
        mine += 1
        for p in range(q * L * K // m, (q + 1) * L * K // m):
            lag, k = L - 1 - p // K, p % K
            for i in range(sums.shape[0]):
                total[:] = 0
                for g in range(m):
                    total += sums[i, g, p]
                target = P if i == 0 else below
                for n in range(N):
                    target[n, lag, k] = total[n]
            if not two:
                below[0, lag, k] = 0
                for g in range(m):
                    below[0, lag, k] += lags[g, p]
    add(flags, m, mine)
    wait_until(flags, m, 2 * m)


@kernel
def ratio_pass_two(
    H, W, V, lists, buffers, product, numbers, halos, C, divergences, flags, threads
):
    """Products of the ratios with placed motifs (changes all from ``halos`` on).

    W, V : (L·K, N) and (N, L·K), the same motifs, the oldest lag first
    product : of the calling thread, (rows, L·K); all else as in ``ratio_pass_one``
    halos : (2 or 1, blocks, (L−1)·K)
    C : (2 or 1, T, K), of the first ratio and of the second
    divergences : (blocks,)
    flags : (blocks + 2,), zero
    """
    pieces, blocks, _, masks = lists
    scale, floor, beta = numbers
    H, W, V, pieces, halos, C = bare(H), bare(W), bare(V), bare(pieces), bare(halos), bare(C)
    fit, second = buffers[2], buffers[3]
    m = blocks.shape[0] - 1
    begin = add(flags, m + 1, 1) * m // threads
    mine = 0
    for place in range(begin, begin + m):
        b = place % m
        if not claim(flags, b, 0, 1):
            continue
        mine += 1
        first, last = blocks[b], blocks[b + 1]
        rows, divergences[b] = _fitted(
            H, W, pieces, masks, first, last, buffers, scale, floor, beta
        )
        for i in range(C.shape[0]):
            ratios = fit if i == 0 else second
            np.dot(ratios[:rows], V, product[:rows])
            add_shifted(product, pieces, first, last, halos[i, b], C[i])
    join_blocks(begin, mine, pieces, blocks, halos, C, flags)


@kernel
def add_feature_sums(X, scale, total, squares):
    """Σx and Σx² of every feature of a block, in float64 (changes total, squares)."""
    for t in range(X.shape[0]):
        row = X[t]
        for n in range(row.size):
            value = np.float64(scale * row[n])
            total[n] += value
            squares[n] += value * value


@kernel
def _counts_from(row, means, weights, scale):
    """One row for β = 1: its divergence from the means."""
    kind = row.dtype.type
    half, third, quarter = kind(1 / 2), kind(1 / 3), kind(1 / 4)  # whole numbers would widen them
    small = kind(1e-3)
    total = kind(0)
    for n in range(row.size):
        x, mean = scale * row[n], means[n]
        u = (x - mean) / mean
        part = x * log(x / mean) + (mean - x)
        near = mean * u * u * (half - u * (half * third - u * third * quarter))
        total += weights[n] * (near if abs(u) < small else part)
    return total


@kernel
def _spectrum_from(row, means, weights, scale):
    """One row for β = 0."""
    kind = row.dtype.type
    half, third, quarter = kind(1 / 2), kind(1 / 3), kind(1 / 4)
    small = kind(1e-3)
    total = kind(0)
    for n in range(row.size):
        x, mean = scale * row[n], means[n]
        u = (x - mean) / mean
        part = u - log(x / mean)
        near = u * u * (half - u * (third - u * quarter))
        total += weights[n] * (near if abs(u) < small else part)
    return total


@kernel
def _general_from(row, means, powers, weights, scale, beta):
    """One row for any other β; powers are the means to the power of β − 1."""
    kind = row.dtype.type
    half, third, small = kind(1 / 2), kind(1 / 3), kind(1e-3)
    total = kind(0)
    for n in range(row.size):
        x, mean, power = scale * row[n], means[n], powers[n]
        u = (x - mean) / mean
        part = x**beta + (beta - 1) * mean * power - beta * x * power
        part /= beta * (beta - 1)
        near = mean * power * u * u * (half + (beta - 2) * u * half * third)
        total += weights[n] * (near if abs(u) < small else part)
    return total


@kernel
def divergence_from(X, means, weights, observed, scale, beta):
    """Σ d_β(x | mean) of a block, each feature times its weight, 0 or 1; all of the data's type.

    Near the mean, where much cancels, it is taken from a series.
    observed : (rows, N), or of no rows
    """
    total = 0.0
    masked = observed.shape[0] > 0
    powers = means ** (beta - 1)
    live = weights.copy()
    for t in range(X.shape[0]):
        if masked:
            for n in range(live.size):
                live[n] = weights[n] if observed[t, n] else X.dtype.type(0)
        if beta == 1:
            total += _counts_from(X[t], means, live, scale)
        elif beta == 0:
            total += _spectrum_from(X[t], means, live, scale)
        else:
            total += _general_from(X[t], means, powers, live, scale, beta)
    return total


@kernel
def divergence_of_entries(columns, values, means, beta):
    """Σ d_β(x | mean) − d_β(0 | mean) over entries that are not zero, β > 0, in float64."""
    total = 0.0
    for i in range(values.size):
        x, mean = np.float64(values[i]), means[columns[i]]
        if x > 0 and beta == 1:
            total += x * np.log(x / mean) - x
        elif x > 0:
            power = mean ** (beta - 1)
            total += (x**beta - beta * x * power) / (beta * (beta - 1))
    return total
