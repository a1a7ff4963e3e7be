"""Motifs W (N, L, K): their layouts, Grams, norms and places in the window."""

from __future__ import annotations

import numpy as np

from motifold.model.arrays import Array


def oldest_first(W: Array) -> Array:
    """W̃ with the largest lag first, (N, L·K), contiguous: as a window of H has its rows in time."""
    N, L, K = W.shape
    return np.ascontiguousarray(W[:, ::-1].reshape(N, L * K))


def with_background(W: Array, background: Array) -> Array:
    """Motifs (N, L, K) with a constant (N,) beside them as one more: at lag 0, zero elsewhere."""
    N, L, _ = W.shape
    constant = np.zeros((N, L, 1), dtype=W.dtype)
    constant[:, 0, 0] = background
    return np.concatenate([W, constant], axis=2)


def newest_first(P: Array, L: int) -> Array:
    """What ``oldest_first`` did to the columns of W̃, undone: (N, L·K), lag 0 first."""
    N, LK = P.shape
    return P.reshape(N, L, LK // L)[:, ::-1].reshape(N, LK)


def motif_grams(W: Array) -> tuple[Array, Array]:
    """The Grams A (K, 2L−1, K) and E (L, K, L, K) of placed motifs."""
    N, L, K = W.shape
    reverse = W[:, ::-1].reshape(N, L * K)  # one sample left comes last, as in time
    G = (reverse.T @ reverse).reshape(L, K, L, K)
    E = block_diagonal_sums(G)
    A = np.empty((K, 2 * L - 1, K), dtype=W.dtype)
    ahead = E[0]  # motif k uncut, motif j starting δ = 0…L−1 later: (K, L, K)
    A[:, L - 1 :] = ahead
    A[:, L - 1 :: -1] = ahead.transpose(2, 1, 0)
    return A, E


def block_diagonal_sums(G: Array) -> Array:
    """S[p, q] = G[p, q] + S[p+1, q+1] in blocks, (L, K, L, K), symmetric; reads q ≥ p of G."""
    L = G.shape[0]
    S = G.copy()
    for p in range(L - 2, -1, -1):
        S[p, :, p : L - 1, :] += S[p + 1, :, p + 1 :, :]
    for p in range(L):
        S[p + 1 :, :, p, :] = S[p, :, p + 1 :, :].transpose(1, 2, 0)
    return S


def norms(W: Array) -> Array:
    """Frobenius norm of every motif, (K,)."""
    return np.sqrt(np.einsum("nlk,nlk->k", W, W))


def drop_rounding(W: Array, power: Array) -> None:
    """Set to zero what is not above the rounding of a motif's largest entry (changes W).

    It would be all that is left of a motif where the end of a segment cuts it off, and have an
    activation that makes up for it. Where there is such an activation already it stays: ``power``
    (L, K) is ΣH² of every lag, and what an entry adds to X̂ has to be rounding as well.
    """
    eps, added = np.finfo(W.dtype).eps, W * np.sqrt(power)
    least, least_added = (eps * part.max(axis=(0, 1)) for part in (W, added))
    W[(least >= W) & (least_added >= added)] = 0


def to_the_middle(W: Array) -> np.ndarray:
    """For each motif by how many lags its centre of mass is to move, (K,) of int."""
    L = W.shape[1]
    mass = W.sum(axis=0, dtype=np.float64)  # (L, K)
    total = mass.sum(axis=0)
    centre = np.arange(L) @ mass / np.where(total > 0, total, 1)
    return np.where(total > 0, np.rint((L - 1) / 2 - centre), 0).astype(int)


def moved_along(array: Array, by: int, axis: int) -> Array:
    """The array with its entries moved along an axis, zeros behind them."""
    moved = np.roll(array, by, axis=axis)
    n = min(abs(by), array.shape[axis])
    vacated = np.arange(n) if by > 0 else np.arange(array.shape[axis] - n, array.shape[axis])
    index: list[slice | np.ndarray] = [slice(None)] * array.ndim
    index[axis] = vacated
    moved[tuple(index)] = 0
    return moved


def in_data_scale(
    H: Array, scales: Array, scale: float, order: np.ndarray, dtype: np.dtype
) -> Array:
    """The activations (T, K) of motifs of norm 1, component by component: T × K takes memory."""
    out = np.empty((len(H), len(order)), dtype=dtype)
    for place, k in enumerate(order):
        out[:, place] = H[:, k].astype(np.float64) * scales[k] / scale
    return out
