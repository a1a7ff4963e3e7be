"""How much of the data each motif explains."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from motifold.data.validation import check_recording
from motifold.estimator import CNMF
from motifold.findings.decomposition import Decomposition
from motifold.findings.overlap import Floats, checked_data, checked_motifs, is_signed


def explained_power(
    X: Any, model: CNMF, activations: Any = None, *, lengths: Any = None, segments: Any = None
) -> Floats:
    """Share of the power of X that each motif explains alone.

    Σ(2X·X̂_k − X̂_k²)/ΣX², floored at zero, whatever the model's loss. Motifs that overlap explain
    less together than their shares add up to. (Of a model with another loss than squared error,
    reports, sweeps and pictures have shares of X̂ instead: what each motif makes of it.)

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
    model : CNMF
        A fitted model.
    activations : array-like of shape (n_samples, n_components) or None
        Those of X; None means ``model.transform(X)``.
    lengths, segments
        As in ``CNMF.fit``.

    Returns
    -------
    ndarray of shape (n_components,)

    Examples
    --------
    >>> from motifold import CNMF, explained_power
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> shares = explained_power(X, CNMF(2, 8, n_init=3, random_state=0).fit(X))
    >>> bool(0.9 < shares.sum() < 1.05)
    True
    """
    check_is_fitted(model)
    motifs = checked_motifs(model)
    arrays = checked_data(X, motifs, lengths, segments, signed=is_signed(model))
    if activations is None:
        activations = model.transform(X, lengths=lengths, segments=segments)
    H = np.asarray(activations)
    sizes = [array.shape[0] for array in arrays]
    if H.shape != (sum(sizes), len(motifs)):
        raise ValueError(
            f"activations must have shape (n_samples, n_components) = {(sum(sizes), len(motifs))}, "
            f"not {H.shape}."
        )
    # As it was given: only a list has to be stacked.
    data = check_recording(X, check_values=False, sparse=True)
    return Decomposition.of(model, data if len(data) > 1 else data[0], H, sizes).power.shares
