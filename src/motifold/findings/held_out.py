"""Hold-out in one recording: cut it, and test motifs on what their fit has not seen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from motifold.data import Segments
from motifold.data.given import takes_recordings
from motifold.data.held_out import HoldOut
from motifold.data.validation import is_list_of_segments
from motifold.files import fingerprint_of_all

_MOST_BLOCKS = 5
_MOTIFS_PER_BLOCK = 20  # length of a block, in motifs, below which fewer blocks are made
_LEAST_MOTIFS = 2  # and below which there is nothing to test on


@takes_recordings
def hold_out(
    X: Any,
    fraction: float = 0.3,
    *,
    gap: int,
    n_blocks: int | None = None,
    lengths: Any = None,
    segments: Any = None,
) -> HoldOut:
    """Cut a recording into stretches to test on and the rest to fit.

    The recording is divided into ``n_blocks`` equal parts, and the end of each is held out: the
    test sees early and late times. Where a border between segments is near, the cut is made there.
    ``gap`` bins on either side of what is held out are left out of both.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    fraction : float, default=0.3
        Share of the time bins that is held out.
    gap : int
        ``n_lags − 1``, so that no occurrence of a motif is in both parts.
    n_blocks : int or None, default=None
        Number of stretches. None: up to five, each of 20 times the gap or more.
    lengths, segments
        As in ``CNMF.fit``.

    Returns
    -------
    HoldOut
        With ``train`` and ``test``, the rows, and ``train_segments`` and ``test_segments``.

    Examples
    --------
    >>> from motifold import CNMF, significance
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import hold_out
    >>> X = make_sequences(
    ...     1200, 30, 2, 12, activation_probability=0.02, noise=0.2, random_state=0
    ... ).X
    >>> split = hold_out(X, 0.3, gap=11)
    >>> model = CNMF(2, 12, n_init=3, random_state=0)
    >>> model = model.fit(X[split.train], segments=split.train_segments)
    >>> found = significance(X[split.test], model, segments=split.test_segments, random_state=0)
    >>> found.significant.tolist()
    [True, True]
    """
    if is_list_of_segments(X):
        raise TypeError("X is a list of segments: stack them, and give their lengths.")
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be between 0 and 1, not {fraction}.")
    if gap < 0:
        raise ValueError(f"gap must be 0 or greater (time bins), not {gap}.")
    T, L = X.shape[0], gap + 1
    layout = Segments.of(T, lengths, segments)
    if n_blocks is None:
        n_blocks = int(np.clip(fraction * T / (_MOTIFS_PER_BLOCK * L), 1, _MOST_BLOCKS))
    if n_blocks < 1:
        raise ValueError(f"n_blocks must be 1 or greater, not {n_blocks}.")
    stretches = _stretches(layout, fraction, n_blocks)
    found = HoldOut(tuple(layout.lengths), stretches, gap, fingerprint_of_all([X]))
    for part, rows in (("test on", found.test), ("fit", found.train)):
        if len(rows) < _LEAST_MOTIFS * L:
            raise ValueError(
                f"Of {T} time bins, holding out {fraction:g} of them leaves {len(rows)} to {part}: "
                f"too few for motifs of {L} lags. Hold out "
                f"{'more' if part == 'test on' else 'less'}, or take shorter motifs."
            )
    return found


def _stretches(layout: Segments, fraction: float, n_blocks: int) -> tuple[tuple[int, int], ...]:
    """The ends of equal parts of the recording, cut at borders of segments where they are near."""
    T = int(layout.edges[-1])
    found: list[tuple[int, int]] = []
    near = fraction * T / n_blocks / 4
    for i in range(n_blocks):
        end = (i + 1) * T / n_blocks
        a, b = (_snapped(layout, place, near) for place in (end - fraction * T / n_blocks, end))
        cuts = [a, *layout.breaks(a, b).tolist(), b]
        found += [(first, last) for first, last in pairwise(cuts) if last > first]
    return tuple(found)


def _snapped(layout: Segments, place: float, near: float) -> int:
    """The nearest border of a segment, or the row itself where none is near."""
    border = int(layout.edges[np.abs(layout.edges - place).argmin()])
    return border if abs(border - place) <= near else round(place)
