"""Motifs against data: what is read of a model or an array, and the overlap W⋆X."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from motifold.data import Data, Segments, scan
from motifold.data.sources import is_stored
from motifold.data.validation import check_recording, recording_of
from motifold.engines.cpu import Problem, Workers, engine_of
from motifold.engines.cpu.statistics import h_statistics
from motifold.engines.cpu.toeplitz import Padding, smoothed
from motifold.estimator import CNMF
from motifold.findings.rows import RowsOnDisk
from motifold.fit.ratios import ratio_tolerance
from motifold.fit.solve import solve_for_motifs
from motifold.fit.step import transform_tolerance
from motifold.model import Array
from motifold.model.arrays import different
from motifold.model.losses import loss_of
from motifold.model.penalties import PENALTIES, penalties_of

Floats = npt.NDArray[np.float64]


def checked_motifs(
    components: Any, name: str = "components", *, nonnegative: bool = True
) -> Floats:
    """Motifs (K, L, N) in float64, of a fitted model or an array."""
    if isinstance(components, BaseEstimator):
        check_is_fitted(components)
    motifs = np.asarray(getattr(components, "components_", components))
    if motifs.ndim != 3 or 0 in motifs.shape or motifs.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be a fitted model or an array of shape (n_components, n_lags, "
            f"n_features), none of them 0; its shape is {motifs.shape}, its dtype {motifs.dtype}."
        )
    motifs = motifs.astype(np.float64)
    if not np.isfinite(motifs).all() or (nonnegative and motifs.min() < 0):
        more = " and nonnegative, as motifs are" if nonnegative else ""
        raise ValueError(f"{name} must be finite{more}.")
    return motifs


def checked_data(
    X: Any, motifs: Floats, lengths: Any, segments: Any, *, signed: bool = False
) -> list[Any]:
    """The segments of X, arrays or sparse, checked to have the features of the motifs.

    ``signed``: values may be below zero (``is_signed`` says of whose motifs).
    """
    if isinstance(X, RowsOnDisk) or is_stored(X):
        rows = X if isinstance(X, RowsOnDisk) else RowsOnDisk.of(X)
        layout = Segments.of(len(rows), lengths, segments)
        scan(Data.of(rows.split(layout)[0]), nonnegative=not signed)
        arrays: list[Any] = [RowsOnDisk(part) for part in rows.split(layout)[0]]
    else:
        arrays = check_recording(X, lengths, segments, sparse=True, nonnegative=not signed)
    N = motifs.shape[2]
    if arrays[0].shape[1] != N:
        raise ValueError(
            f"X has {arrays[0].shape[1]} features (columns), the motifs have {N}: they must be the "
            "same ones."
        )
    return arrays


def is_signed(components: Any) -> bool:
    """Whether these motifs are a model's that takes data below zero."""
    return bool(getattr(components, "allow_negative", False))


def activations_of(
    X: Any,
    motifs: Array,
    model: CNMF,
    *,
    scales: Any = None,
    background: Array | None = None,
    mask: Any = None,
    **layout: Any,
) -> Array:
    """Activations (T, K) of X with these motifs (K, L, N), found as the model's ``transform`` does.

    By its loss, with its penalties, boundary and tolerance; ``scales`` are the motifs' norms in the
    fit, if they had others, ``background`` (N,) the constants beside them, if there are any.
    ``layout``: ``lengths`` or ``segments``.
    """
    K, L, _ = motifs.shape
    weights = {penalty.name: getattr(model, penalty.name) for penalty in PENALTIES}
    data = recording_of(X, mask=mask, **layout)
    loss, constant = loss_of(model.beta_loss), background is not None
    n = K + constant
    penalties = penalties_of(n, constant, **weights)
    options: dict[str, Any] = {"loss": loss, "background": constant, "signed": model.allow_negative}
    problem = Problem.of(data, n, L, model.boundary, penalties, **options)
    tolerance = ratio_tolerance if loss.by_ratios else transform_tolerance
    scales = np.ones(K) if scales is None else scales
    with Workers(model.n_jobs) as workers:
        engine = engine_of(problem, workers)
        known = motifs, scales, tolerance(model.tol), background
        _, scales, solution = solve_for_motifs(engine, *known)
        H = engine.gather(engine.settled(solution.H, solution.problem))[:, :K]
    return (H * scales / problem.scale).astype(problem.dtype, copy=False)


def overlap(arrays: list[Any], motifs: Floats) -> Floats:
    """W⋆X (T, K): the product of each motif, placed at each bin, with the data."""
    K, L, _ = motifs.shape
    sources = [array.source if isinstance(array, RowsOnDisk) else array for array in arrays]
    problem = Problem.of(Data.of(sources), K, L, signed=True)  # they have been checked
    W = np.ascontiguousarray(motifs.transpose(2, 1, 0), dtype=problem.dtype)
    with Workers(1) as workers:
        C = h_statistics(problem, W, workers).C
    return C.astype(np.float64) / problem.scale


def x_ortho_cost(arrays: list[Any], motifs: Floats, activations: Floats) -> float:
    """The cost of redundant motifs, as in seqNMF: Σ_{j≠k} Σ_t (W⋆X)[t, j] · (Q∗H)[t, k].

    Q sums activations over the bins less than L away, within a segment.
    """
    padding = Padding(Segments([array.shape[0] for array in arrays]).bounds, motifs.shape[1])
    nearby = smoothed(np.asarray(activations, np.float64), padding)
    others = nearby @ different(motifs.shape[0])
    return float(np.vdot(overlap(arrays, motifs), others))
