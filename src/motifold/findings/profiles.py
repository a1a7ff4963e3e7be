"""What a motif looks like along its lags: order of the features, onset, effective length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.findings.agreement import reconstruction_gram
from motifold.findings.hidden import known_activations
from motifold.findings.overlap import Floats, checked_motifs


@dataclass(frozen=True)
class FeatureOrder:
    """Features sorted by the motif they belong to and by when they peak in it.

    Attributes
    ----------
    order : ndarray of shape (N,)
        Features in that order: ``X[:, order]`` is sorted.
    motif : ndarray of shape (N,)
        Motif of each feature, in their own order; −1 for a feature in no motif.
    lag : ndarray of shape (N,)
        Lag of its peak in that motif; −1 for a feature in no motif.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import sort_features
    >>> motifs = np.eye(4)[None, [2, 0, 3, 1]]  # one motif: feature 2 first, then 0, 3 and 1
    >>> found = sort_features(motifs)
    >>> found.order.tolist(), found.lag.tolist()
    ([2, 0, 3, 1], [1, 3, 0, 2])
    """

    order: npt.NDArray[np.intp]
    motif: npt.NDArray[np.intp]
    lag: npt.NDArray[np.intp]


def sort_features(components: Any, *, weights: Any = None, mask: Any = None) -> FeatureOrder:
    """Sort features by (motif, lag of peak), so that sequences show as diagonals.

    A feature belongs to the motif in which it has most power. Features in no motif come last.

    Parameters
    ----------
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or motifs. Of a model, a motif's power is that in the reconstruction of
        the training data.
    weights : array-like of shape (n_components,) or None
        Power of each motif; None means as above, or equal for an array.
    mask : array-like of bool, of shape (n_samples, n_features), or None
        True where the training data was observed; None means what the model knows of it.
        Activations of which less than half of the motif was observed count for nothing.

    Returns
    -------
    FeatureOrder

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import sort_features
    >>> motifs = np.zeros((2, 3, 4))
    >>> motifs[0, 2, 0] = motifs[0, 0, 3] = motifs[1, 1, 1] = 1.0
    >>> found = sort_features(motifs)
    >>> found.order.tolist(), found.motif.tolist(), found.lag.tolist()
    ([3, 0, 1, 2], [0, 1, -1, 0], [2, 1, -1, 0])
    """
    motifs = checked_motifs(components)
    K = len(motifs)
    if weights is None:
        weights = np.ones(K)
        if hasattr(components, "activations_"):
            H = known_activations(components, mask)
            segments = Segments.of(len(H), getattr(components, "lengths_", None))
            weights = motif_weights(motifs, H, segments)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (K,) or not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(f"weights must hold a nonnegative number for each of the {K} motifs.")
    power = np.square(motifs).sum(axis=1) * weights[:, None]  # (K, N)
    motif = power.argmax(axis=0)
    lag = motifs[motif, :, np.arange(motifs.shape[2])].argmax(axis=1)
    silent = power.max(axis=0) == 0
    order = np.lexsort((lag, motif, silent))
    return FeatureOrder(order, np.where(silent, -1, motif), np.where(silent, -1, lag))


def motif_weights(motifs: Any, activations: Any, segments: Segments) -> Floats:
    """Power of each motif in the reconstruction, by that of the motif itself, (K,).

    Not ΣH²: activations of motifs that the end of a segment cuts off may be large for what little
    is left. motifs (K, L, N), activations (T, K).
    """
    motifs, H = (np.asarray(factor, dtype=np.float64) for factor in (motifs, activations))
    own = np.square(motifs).sum(axis=(1, 2))
    power = [  # one at a time: what two motifs share is not needed
        reconstruction_gram(motifs[k : k + 1], H[:, k : k + 1], segments)[0, 0]
        for k in range(len(motifs))
    ]
    return np.array(power) / np.where(own > 0, own, 1)


@dataclass(frozen=True)
class MotifExtent:
    """Where along its lags each motif lies.

    Attributes
    ----------
    onset : ndarray of shape (K,)
        First lag of the stretch that holds the motif; 0 for an empty motif.
    length : ndarray of shape (K,)
        Number of lags of that stretch; 0 for an empty motif.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import motif_extent
    >>> motifs = np.zeros((2, 10, 3))  # the second one is empty
    >>> motifs[0, 2:6] = 1.0
    >>> extent = motif_extent(motifs)
    >>> extent.onset.tolist(), extent.length.tolist()
    ([2, 0], [4, 0])
    """

    onset: npt.NDArray[np.intp]
    length: npt.NDArray[np.intp]


def motif_extent(components: Any, *, share: float = 0.95) -> MotifExtent:
    """Onset and effective length of each motif.

    The stretch of lags that holds the middle ``share`` of the motif's power: from the lag at which
    the power summed over the lags exceeds (1 − share)/2 to that at which it reaches (1 + share)/2.
    A motif that fills all its lags may be longer than ``n_lags``.

    Parameters
    ----------
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or its motifs.
    share : float, default=0.95
        Share of the power that counts.

    Returns
    -------
    MotifExtent

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import motif_extent
    >>> motifs = np.zeros((1, 10, 3))
    >>> motifs[0, 2:6, 0] = 1.0
    >>> extent = motif_extent(motifs)
    >>> extent.onset.tolist(), extent.length.tolist()
    ([2], [4])
    """
    motifs = checked_motifs(components)
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share}.")
    power = np.square(motifs).sum(axis=2)
    total = power.sum(axis=1, keepdims=True)
    reached: Floats = np.cumsum(power, axis=1) / np.where(total > 0, total, 1)
    noise = 1e-9  # of sums in floating point
    onset = (reached <= (1 - share) / 2 + noise).sum(axis=1)
    last = (reached < (1 + share) / 2 - noise).sum(axis=1)
    empty = total[:, 0] == 0
    return MotifExtent(np.where(empty, 0, onset), np.where(empty, 0, last - onset + 1))
