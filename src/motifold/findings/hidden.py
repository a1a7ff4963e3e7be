"""Where missing entries hide a motif, so that its activation rests on little."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.data.observed import LEAST_OBSERVED, Shares, observed_shares
from motifold.data.validation import check_mask, is_list_of_segments
from motifold.findings.overlap import checked_motifs
from motifold.model import Array

_ROUNDING = 1e-5


def observed_share(
    components: Any, mask: Any, lengths: Any = None, segments: Any = None
) -> Shares | None:
    """Of each motif's power, placed at each bin, the share that is observed, (T, K).

    ``mask`` (T, N), or a list, as ``CNMF.fit`` takes it. What the end of a segment cuts off does
    not count. None if everything is observed.
    """
    motifs = checked_motifs(components)
    if is_list_of_segments(mask) and lengths is None:
        lengths = [len(part) for part in mask]
    n_rows = int(np.sum(lengths)) if lengths is not None else len(mask)
    sizes = Segments.of(n_rows, lengths, segments).lengths
    masks = check_mask(mask, [(size, motifs.shape[2]) for size in sizes])
    return observed_shares(motifs, masks, sizes)


def is_known(shares: Shares) -> npt.NDArray[np.bool_]:
    """Where an activation counts: at least half of the motif is observed."""
    return shares >= LEAST_OBSERVED * (1 - _ROUNDING)


def mostly_observed(
    components: Any, mask: Any, lengths: Any = None, segments: Any = None
) -> npt.NDArray[np.bool_]:
    """For each bin and motif, whether half of the motif's power, placed there, is observed.

    Where it is not, the activation is hardly known: it may be huge on account of a few entries.
    What the end of a segment cuts off does not count.

    Parameters
    ----------
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
    mask : ndarray of bool, of shape (n_samples, n_features)
        True where the recording is observed.
    lengths, segments
        As in ``CNMF.fit``.

    Returns
    -------
    ndarray of bool, of shape (n_samples, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings.hidden import mostly_observed
    >>> mask = np.ones((6, 1), dtype=bool)
    >>> mask[2:4] = False
    >>> mostly_observed(np.ones((1, 3, 1)), mask)[:, 0].tolist()
    [True, False, False, True, True, True]
    """
    shares = observed_share(components, mask, lengths, segments)
    if shares is None:
        T = sum(map(len, mask)) if is_list_of_segments(mask) else len(mask)
        return np.ones((T, len(checked_motifs(components))), dtype=bool)
    return is_known(shares)


def known_activations(model: Any, mask: Any = None) -> Array:
    """The activations of the training data, zero where less than half of the motif was observed.

    By what the model knows of it, or by a ``mask`` of the training data.
    """
    shares = getattr(model, "observed_", None)
    if mask is not None:
        shares = observed_share(model, mask, getattr(model, "lengths_", None))
    H: Array = model.activations_
    return H if shares is None else np.where(is_known(shares), H, 0)
