"""Motifs against data: what is read of a model or an array, and the overlap W⋆X."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from motifold.estimator import CNMF
from motifold.parallel import Workers
from motifold.problem import Array, Problem
from motifold.statistics import h_statistics
from motifold.validation import check_recording

Floats = npt.NDArray[np.float64]


def checked_motifs(components: Any, name: str = "components") -> Floats:
    """Motifs (K, L, N) in float64, of a fitted model or an array."""
    motifs = np.asarray(getattr(components, "components_", components), dtype=np.float64)
    if motifs.ndim != 3 or 0 in motifs.shape:
        raise ValueError(
            f"{name} must be a fitted model or an array of shape (n_components, n_lags, "
            f"n_features), none of them 0; its shape is {motifs.shape}."
        )
    if not np.isfinite(motifs).all() or motifs.min() < 0:
        raise ValueError(f"{name} must be finite and nonnegative, as motifs are.")
    return motifs


def checked_data(X: Any, motifs: Floats, lengths: Any, segments: Any) -> list[Array]:
    """The segments of X, checked to have the features of the motifs."""
    arrays = check_recording(X, lengths, segments)
    N = motifs.shape[2]
    if arrays[0].shape[1] != N:
        raise ValueError(
            f"X has {arrays[0].shape[1]} features (columns), the motifs have {N}: they must be the "
            "same ones."
        )
    return arrays


def with_motifs(model: CNMF, motifs: Floats, scales: Any = None) -> CNMF:
    """A copy of the model that has these motifs, as if a fit had found them: for ``transform``."""
    holder = clone(model).set_params(n_components=len(motifs), n_lags=motifs.shape[1])
    holder.components_ = motifs
    holder.scales_ = np.ones(len(motifs)) if scales is None else scales
    holder.n_features_in_ = motifs.shape[2]
    holder._transform_tol = model.tol or 1e-3
    return holder


def overlap(arrays: list[Array], motifs: Floats) -> Floats:
    """W⋆X (T, K): the product of each motif, placed at each bin, with the data."""
    K, L, _ = motifs.shape
    problem = Problem.from_arrays(arrays, K, L)
    W = np.ascontiguousarray(motifs.transpose(2, 1, 0), dtype=problem.dtype)
    with Workers(1) as workers:
        C = h_statistics(problem, W, workers).C
    return C.astype(np.float64) / problem.scale


def x_ortho_cost(arrays: list[Array], motifs: Floats, activations: Floats) -> float:
    """The cost of redundant motifs, as in seqNMF: Σ_{j≠k} Σ_t (W⋆X)[t, j] · (S H)[t, k].

    S sums activations over the bins less than L away, within a segment.
    """
    L = motifs.shape[1]
    C = overlap(arrays, motifs)
    total, start = 0.0, 0
    for array in arrays:
        stop = start + len(array)
        products = C[start:stop].T @ _neighbours(activations[start:stop], L)
        total += float(products.sum() - np.trace(products))
        start = stop
    return total


def _neighbours(H: Floats, L: int) -> Floats:
    """Sums of H (T, K) over the 2L − 1 bins around each bin."""
    T = len(H)
    sums = np.vstack([np.zeros((1, H.shape[1])), np.cumsum(H, axis=0, dtype=np.float64)])
    bins = np.arange(T)
    return sums[np.minimum(bins + L, T)] - sums[np.maximum(bins - L + 1, 0)]
