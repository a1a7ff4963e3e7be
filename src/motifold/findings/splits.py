"""Held-out data for recordings: blocks of time with a gap, and random entries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments

Rows = npt.NDArray[np.intp]


class BlockTimeSeriesSplit:
    """Cross-validation by blocks of time, with a gap so that no motif reaches from one to another.

    The recording is cut into ``n_splits`` blocks of about equal length. Each in turn is the test
    set; the training set is all the rest but the ``gap`` bins on either side of it. Plain k-fold
    leaks: neighbouring bins share motifs.

    A training set then has a junction, where bins that were far apart become neighbours, and no
    motif must reach across it. ``segments`` gives ids of rows that say so; they survive the
    slicing of scikit-learn's tools and are passed on by its metadata routing (see the example).
    They change at every border between blocks, since one array has to serve all splits. In a loop
    of your own, ``mark_junctions(train)`` marks the one junction there is.

    Parameters
    ----------
    n_splits : int, default=5
        Number of blocks.
    gap : int, default=0
        Time bins left out on either side of the test block: ``n_lags``, or a little more.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import BlockTimeSeriesSplit
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> cv = BlockTimeSeriesSplit(n_splits=3, gap=8)
    >>> [(train.size, int(test[0]), int(test[-1])) for train, test in cv.split(X)]
    [(192, 0, 99), (184, 100, 199), (192, 200, 299)]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = CNMF(2, 8, tol=1e-2, random_state=0)
    ...     model.set_fit_request(segments=True).set_score_request(segments=True)
    ...     search = GridSearchCV(model, {"n_components": [1, 2]}, cv=cv)
    ...     search.fit(X, segments=cv.segments(X)).best_params_
    CNMF(n_components=2, n_lags=8, random_state=0, tol=0.01)
    {'n_components': 2}
    """

    def __init__(self, n_splits: int = 5, *, gap: int = 0) -> None:
        if n_splits < 2:
            raise ValueError(f"n_splits must be 2 or greater, not {n_splits}.")
        if gap < 0:
            raise ValueError(f"gap must be 0 or greater (time bins), not {gap}.")
        self.n_splits = n_splits
        self.gap = gap

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the rows to train on and those to test on, block after block.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y, groups : ignored

        Yields
        ------
        train, test : ndarray of int
        """
        T = _n_rows(X)
        edges = self._edges(T)
        for a, b in pairwise(edges):
            train = np.r_[0 : max(0, a - self.gap), min(T, b + self.gap) : T]
            if train.size == 0:
                raise ValueError(
                    f"A gap of {self.gap} bins leaves nothing of {T} rows to train on: take a "
                    "smaller gap or more data."
                )
            yield train, np.arange(a, b)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits.

        Parameters
        ----------
        X, y, groups : ignored

        Returns
        -------
        int
        """
        return self.n_splits

    def segments(self, X: Any, segments: Any = None) -> npt.NDArray[np.intp]:
        """Ids of rows that mark the junctions of every split, for ``fit(..., segments=...)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        segments : array-like of shape (n_samples,) or None
            The ids of the recording's own segments, if it has several.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        T = _n_rows(X)
        changes = np.zeros(T, dtype=np.intp)
        changes[self._edges(T)[1:-1]] = 1
        changes[Segments.of(T, segments=segments).breaks(0, T)] = 1
        return np.cumsum(changes)

    def _edges(self, T: int) -> Rows:
        if self.n_splits > T:
            raise ValueError(f"{T} rows cannot be cut into {self.n_splits} blocks.")
        return np.arange(self.n_splits + 1) * T // self.n_splits

    def __repr__(self) -> str:
        return f"BlockTimeSeriesSplit(n_splits={self.n_splits}, gap={self.gap})"


def _n_rows(X: Any) -> int:
    """Of an array, a sparse matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def mark_junctions(rows: Any, segments: Any = None) -> npt.NDArray[np.intp]:
    """Ids of the segments that a choice of rows consists of.

    Parameters
    ----------
    rows : array-like of int
        Rows of a recording in rising order, such as a training set.
    segments : array-like of shape (n_samples,) or None
        The ids of the whole recording's own segments, if it has several.

    Returns
    -------
    ndarray of shape (len(rows),)
        For ``fit(X[rows], segments=...)``: a new id wherever rows are left out.

    Examples
    --------
    >>> from motifold.findings import mark_junctions
    >>> mark_junctions([0, 1, 2, 7, 8]).tolist()
    [0, 0, 0, 1, 1]
    """
    rows = np.asarray(rows)
    jumps = np.diff(rows) != 1
    if segments is not None:
        ids = np.asarray(segments)[rows]
        jumps |= ids[1:] != ids[:-1]
    return np.r_[0, np.cumsum(jumps)].astype(np.intp)[: len(rows)]


def observed_entries(
    shape: tuple[int, int], share: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """A mask, True = observed, with a random ``share`` of the entries left out."""
    mask = np.ones(shape, dtype=bool)
    hidden = rng.choice(mask.size, size=round(share * mask.size), replace=False)
    mask.ravel()[hidden] = False
    return mask
