"""How much of the data each motif explains."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from motifold.data.given import takes_recordings
from motifold.data.masked import split_masked
from motifold.data.refused import check_model
from motifold.data.validation import check_masked_recording, check_recording
from motifold.estimator import CNMF
from motifold.findings.decomposition import Decomposition
from motifold.findings.formerly import model_first
from motifold.findings.overlap import Floats, checked_data, checked_motifs, is_signed


@takes_recordings
def explained_power(
    model: CNMF,
    X: Any,
    activations: Any = None,
    *,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    kind: Literal["share", "alone", "unique"] = "share",
) -> Floats:
    """Share of the power of X that each motif explains; the shares add up.

    ⟨2X − X̂, X̂_k⟩/‖X‖², whatever the model's loss. Their sum is what all motifs explain together
    (with a background, all but its share), 1 − ‖X − X̂‖²/‖X‖²: where motifs overlap, each has a
    share of what they explain. Where a motif does more harm than good its share is below zero,
    which does not happen where the activations are optimal.

    What chance explains is not taken off: three motifs of independent noise explained .34 to .42 of
    it, as much as those of spikes of which a third were in sequences. A share says how much of
    this recording a motif describes, not whether it is real (``discover``, ``significance``).

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
    activations : array-like of shape (n_samples, n_components) or None
        Those of X; None means ``model.transform(X)``.
    lengths, segments, mask
        As in ``CNMF.fit``; entries that were not observed count nowhere.
    kind : {"share", "alone", "unique"}, default="share"
        "alone": what each motif would explain if there were no other, Σ(2X·X̂_k − X̂_k²)/ΣX²,
        floored at zero; that of overlapping motifs is counted by all of them. "unique": what would
        be lost without the motif. The share lies in the middle between the two.

    Returns
    -------
    ndarray of shape (n_components,)

    Examples
    --------
    >>> from motifold import CNMF, explained_power
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> model = CNMF(2, 8, n_init=3, random_state=0).fit(X)
    >>> shares = explained_power(model, X, model.activations_)
    >>> bool(abs(shares.sum() - (1 - model.loss_**2)) < 1e-6)
    True
    """
    model, X = model_first("explained_power", model, X)
    if kind not in ("share", "alone", "unique"):
        raise ValueError(f'kind must be "share", "alone" or "unique", not {kind!r}.')
    check_model(model)
    motifs = checked_motifs(model)
    X, mask = split_masked(X, mask)
    signed = is_signed(model)
    if mask is None:
        arrays = checked_data(X, motifs, lengths, segments, signed=signed)
    else:
        arrays, _ = check_masked_recording(X, lengths, segments, mask, nonnegative=not signed)
    if activations is None:
        activations = model.transform(X, lengths=lengths, segments=segments, mask=mask)
    H = np.asarray(activations)
    sizes = [array.shape[0] for array in arrays]
    if H.shape != (sum(sizes), len(motifs)):
        raise ValueError(
            f"activations must have shape (n_samples, n_components) = {(sum(sizes), len(motifs))}, "
            f"not {H.shape}."
        )
    # As it was given: only a list has to be stacked.
    data = arrays if mask is not None else check_recording(X, check_values=False, sparse=True)
    found = Decomposition.of(model, data if len(data) > 1 else data[0], H, sizes, mask).power
    if kind == "alone":
        return np.maximum(found.alone, 0)
    return found.shares - (found.overlaps if kind == "unique" else 0)
