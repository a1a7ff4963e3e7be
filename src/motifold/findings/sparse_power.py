"""What motifs explain of a recording that is sparse, or on disk: without a dense copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from motifold.data import Data, Segments
from motifold.engines.cpu import CPUEngine, Problem, Workers
from motifold.engines.cpu.hidden import hidden_fit, hidden_power
from motifold.engines.cpu.statistics import h_statistics
from motifold.estimator import CNMF
from motifold.findings.agreement import reconstruction_gram
from motifold.findings.overlap import Floats
from motifold.model import Array, Mask
from motifold.model.measures import Power


def power_of(
    model: CNMF, parts: Sequence[Any], masks: Sequence[Mask] | None, activations: Array
) -> Power:
    """What the motifs explain of segments, sparse or on disk, from the statistics of a fit."""
    K, L, _ = model.components_.shape
    data = Data.of(parts, masks)
    segments = Segments([part.shape[0] for part in parts])
    problem = Problem.of(data, K, L, signed=model.allow_negative)
    W = np.ascontiguousarray(model.components_.transpose(2, 1, 0), dtype=problem.dtype)
    H = np.ascontiguousarray(activations * problem.scale, dtype=problem.dtype)
    with Workers.for_passes(model.n_jobs, problem.multiplications) as workers:
        C = h_statistics(problem, W, workers).C
        with_X = np.einsum("tk,tk->k", C, H, dtype=np.float64)  # ⟨X, X̂_k⟩
        with_all, own = _products_of_parts(problem, W, H, segments, workers)
        residual = CPUEngine(problem, workers).residual(W, H)
    return Power.of(2 * with_X - with_all, 2 * with_X - own, residual, problem.squared_norm)


def _products_of_parts(
    problem: Problem, W: Array, H: Array, segments: Segments, workers: Workers
) -> tuple[Floats, Floats]:
    """⟨X̂, X̂_k⟩ and ⟨X̂_k, X̂_k⟩ over the observed entries, (K,) each."""
    motifs = W.transpose(2, 1, 0).astype(np.float64)
    gram = reconstruction_gram(motifs, H.astype(np.float64), segments)
    with_all, own = gram.sum(axis=1), gram.diagonal().copy()
    if not problem.hidden:
        return with_all, own

    def hidden(which: slice | list[int]) -> float:
        """Σ X̂² over the missing entries, of some motifs."""
        some = np.ascontiguousarray(W[:, :, which]), np.ascontiguousarray(H[:, which])
        return hidden_power(hidden_fit(problem, *some, workers), workers)

    K, everything = len(motifs), hidden(slice(None))
    for k in range(K):
        mine, others = hidden([k]), hidden([j for j in range(K) if j != k]) if K > 1 else 0.0
        own[k] -= mine
        with_all[k] -= (everything + mine - others) / 2  # 2⟨X̂, X̂_k⟩ = X̂² + X̂_k² − (X̂ − X̂_k)²
    return with_all, own
