"""How similar the parts of the data are that motifs of two fits explain, from Grams alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from motifold.data import Segments
from motifold.data.refused import check_model
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import windows
from motifold.findings.hidden import known_activations
from motifold.findings.overlap import Floats
from motifold.fit.starts import StartAgreement, agreement_of
from motifold.model.motifs import motif_grams

_ROWS = 4096  # bins at a time
# Features for each lag up to which the parts of many fits are built, and numbers of them at a time.
_NARROW, _NUMBERS = 4, 2**23


def reconstruction_gram(motifs: Floats, activations: Floats, segments: Segments) -> Floats:
    """⟨X̂_j, X̂_k⟩ for all pairs of motifs, (K, K), without building any reconstruction.

    Σ_δ R[j, δ, k]·A[j, δ, k], with R the lagged products of the activations and A those of the
    motifs. Of two motifs that the end of a segment cuts off only what is left counts, E. Their
    activations can be huge (where a motif begins with next to nothing), so they are kept out of R
    rather than counted there and taken away.
    motifs (K, L, N), activations (T, K).
    """
    K, L, _ = motifs.shape
    A, E = motif_grams(np.ascontiguousarray(motifs.transpose(2, 1, 0)))
    among_whole, with_tail = np.zeros((2, K, (2 * L - 1) * K))  # lagged products, R in two parts
    gram = np.zeros((K, K))
    for H in segments.split(activations):
        size = len(H)
        n_whole = max(0, size - L)
        padded = np.zeros((size + 2 * L - 2, K))
        padded[L - 1 : L - 1 + n_whole] = H[:n_whole]
        for a in range(0, n_whole, _ROWS):
            b = min(a + _ROWS, n_whole)
            among_whole += H[a:b].T @ windows(padded[a : b + 2 * L - 2], 2 * L - 1, 1, Workers(1))
        with_tail += H[n_whole:].T @ windows(padded[n_whole:], 2 * L - 1, 1, Workers(1))
        tail = np.zeros((L, K))
        tail[max(0, L - size) :] = H[n_whole:]
        gram += np.einsum("pj,pjqk,qk->jk", tail, E, tail, optimize=True)
    whole, mixed = (
        np.einsum("jdk,jdk->jk", R.reshape(K, 2 * L - 1, K), A) for R in (among_whole, with_tail)
    )
    return gram + whole + mixed + mixed.T


def dissimilarity(a: Any, b: Any, *, mask: Any = None) -> float:
    """DISSX of two fits of the same data: 0 if they explain it by the same parts, 1 by no like.

    (2K − Σ_j max_i c_ij − Σ_i max_j c_ij) / 2K with c_ij the cosine between the reconstruction of
    motif i of one fit and that of motif j of the other (seqNMF's measure of how far two fits
    agree). A motif that explains nothing is like no other.

    Parameters
    ----------
    a, b : CNMF
        Fitted to the same data; n_components and n_lags may differ, and with different numbers of
        motifs 2K is the number of motifs in both.
    mask : array-like of bool, of shape (n_samples, n_features), or None
        True where that data was observed; None means what the fits know of it. Activations of which
        less than half of the motif was observed count for nothing.

    Returns
    -------
    float

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import dissimilarity
    >>> X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> a, b = (CNMF(2, 8, n_init=5, random_state=seed).fit(X) for seed in (0, 1))
    >>> bool(dissimilarity(a, b) < 0.05)
    True
    """
    if a.lengths_ != b.lengths_:
        raise ValueError(
            f"a and b were not fitted to the same data: their segments have {a.lengths_} and "
            f"{b.lengths_} rows."
        )
    if a.components_.shape[2] != b.components_.shape[2]:
        raise ValueError(
            f"a and b were not fitted to the same data: {a.components_.shape[2]} and "
            f"{b.components_.shape[2]} features."
        )
    first, second = ((fit.components_, known_activations(fit, mask)) for fit in (a, b))
    return dissimilarity_of_factors(first, second, Segments(a.lengths_))


def dissimilarity_of_factors(a: tuple[Any, Any], b: tuple[Any, Any], segments: Segments) -> float:
    """DISSX from (motifs, activations) of two fits."""
    L = max(a[0].shape[1], b[0].shape[1])
    motifs = np.concatenate([_with_lags(np.asarray(W, np.float64), L) for W, _ in (a, b)])
    H = np.concatenate([np.asarray(h, np.float64) for _, h in (a, b)], axis=1)
    gram = reconstruction_gram(motifs, H, segments)
    K_a = len(a[0])
    return _dissimilarity_by(_cosines(gram)[:K_a, K_a:])


def dissimilarities(factors: Sequence[tuple[Any, Any]], segments: Segments) -> Floats:
    """DISSX of each of several fits of as many motifs with each other, (fits, fits)."""
    n, K = len(factors), len(factors[0][0])
    found = np.zeros((n, n))
    pairs = list(combinations(range(n), 2))
    _, L, N = factors[0][0].shape
    if N > _NARROW * L:
        for i, j in pairs:
            value = dissimilarity_of_factors(factors[i], factors[j], segments)
            found[i, j] = found[j, i] = value
        return found
    motifs = np.concatenate([np.asarray(W, np.float64) for W, _ in factors])
    H = np.concatenate([np.asarray(h, np.float64) for _, h in factors], axis=1)
    cosines = _cosines(gram_of_reconstructions(motifs, H, segments)).reshape(n, K, n, K)
    for i, j in pairs:
        found[i, j] = found[j, i] = _dissimilarity_by(cosines[i, :, j])
    return found


class Dissimilarities:
    """DISSX of the runs of a point with each other, computed as soon as all of them are there."""

    def __init__(self, n_seeds: int, segments: Segments) -> None:
        self._segments = segments
        self._factors: list[tuple[Any, Any] | None] = [None] * n_seeds
        self._values: np.ndarray | None = None

    def add(self, seed: int, run: Any) -> None:
        """Another run."""
        self._factors[seed] = run.components, run.activations
        factors = [known for known in self._factors if known is not None]
        if self._values is None and len(factors) == len(self._factors) > 1:
            self._values = dissimilarities(factors, self._segments)

    @property
    def means(self) -> list[float]:
        """Of each run over the other seeds; NaN where there is none."""
        n = len(self._factors)
        if self._values is None:
            return [np.nan] * n
        return (self._values.sum(axis=0) / (n - 1)).tolist()


def gram_of_reconstructions(motifs: Floats, activations: Floats, segments: Segments) -> Floats:
    """``reconstruction_gram`` by building what each motif explains, some rows at a time.

    For many motifs of few features that is sooner: one product for all pairs.
    """
    M, L, N = motifs.shape
    gram = np.zeros((M, M))
    rows = max(1, _NUMBERS // (M * N))
    lagged = np.ascontiguousarray(motifs[:, ::-1])  # a window has the oldest bin first
    for H in segments.split(activations):
        padded = np.zeros((len(H) + L - 1, M))
        padded[L - 1 :] = H
        for a in range(0, len(H), rows):
            b = min(a + rows, len(H))
            near = sliding_window_view(padded[a : b + L - 1], L, axis=0)  # (rows, M, L)
            parts = np.matmul(near.transpose(1, 0, 2), lagged).reshape(M, -1)
            gram += parts @ parts.T
    return gram


def _cosines(gram: Floats) -> Floats:
    norms = np.sqrt(np.maximum(gram.diagonal(), 0))
    norms = np.where(norms > 0, norms, 1)
    return gram / norms[:, None] / norms


def _dissimilarity_by(cosine: Floats) -> float:
    """Of two fits, by the cosines between the parts of one and those of the other."""
    K = sum(cosine.shape)
    shared = cosine.max(axis=0).sum() + cosine.max(axis=1).sum()
    return float((K - shared) / K)


def _with_lags(motifs: Floats, L: int) -> Floats:
    """The same motifs with zeros up to L lags."""
    return np.pad(motifs, ((0, 0), (0, L - motifs.shape[1]), (0, 0)))


def start_agreement(model: Any) -> StartAgreement | None:
    """How many starts of a fit (``n_init``) ended like the best one.

    Parameters
    ----------
    model : CNMF
        A fitted model.

    Returns
    -------
    StartAgreement or None
        None where the model's file does not tell the losses of the starts (those of 0.1).

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import start_agreement
    >>> X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> found = start_agreement(CNMF(2, 8, n_init=5, random_state=0).fit(X))
    >>> found.n_starts, 1 <= found.agreeing <= 5
    (5, True)
    """
    check_model(model)
    if model.start_losses_ is None:
        return None
    return agreement_of(model.start_losses_, model.beta_loss)
