"""Where missing entries hide a motif, so that its activation rests on little."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.findings.overlap import Floats, checked_data, checked_motifs, overlap
from motifold.model import Mask

_HALF = 0.5


def mostly_observed(
    components: Any, mask: Mask, lengths: Any = None, segments: Any = None
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
    power = np.square(checked_motifs(components))
    seen = overlap(checked_data(mask.astype(np.float32), power, lengths, segments), power)
    there = _power_inside(power, np.asarray(mask), lengths, segments)
    return seen >= _HALF * (1 - 1e-5) * there


def _power_inside(power: Floats, mask: Mask, lengths: Any, segments: Any) -> Floats:
    """Power of each motif that no segment's end cuts off, (T, K)."""
    reach = np.cumsum(power.sum(axis=2), axis=1).T  # (L, K): of the first lags
    left = Segments.of(len(mask), lengths, segments).left
    return reach[np.minimum(left, len(reach)) - 1]
