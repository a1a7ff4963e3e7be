"""Which stretches of a recording a fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data.segments import Segments
from motifold.files import fingerprint_of_all


@dataclass(frozen=True)
class HoldOut:
    """A recording cut in two: stretches of time to test on, and the rest to fit.

    Attributes
    ----------
    lengths : tuple of int
        Rows of each segment of the whole recording.
    stretches : tuple of (int, int)
        First row and end of each stretch that is held out, in rising order, each in one segment.
    gap : int
        Rows beside them, in the same segment, that belong to neither part.
    fingerprint : str
        A checksum of the recording, by which it is known again.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import hold_out
    >>> split = hold_out(np.ones((100, 2)), 0.3, gap=4, n_blocks=1)
    >>> split.stretches, split.train.size, split.test.size
    (((70, 100),), 66, 30)
    """

    lengths: tuple[int, ...]
    stretches: tuple[tuple[int, int], ...]
    gap: int
    fingerprint: str

    @property
    def n_samples(self) -> int:
        """Rows of the whole recording."""
        return sum(self.lengths)

    @property
    def share(self) -> float:
        """Share of the rows that is held out."""
        return len(self.test) / self.n_samples

    @cached_property
    def test(self) -> npt.NDArray[np.intp]:
        """Rows that are held out."""
        return np.concatenate([np.arange(a, b) for a, b in self.stretches])

    @cached_property
    def train(self) -> npt.NDArray[np.intp]:
        """Rows to fit: those of neither the stretches nor the gaps beside them."""
        kept = np.ones(self.n_samples, dtype=bool)
        segments = Segments(list(self.lengths))
        for a, b in self.stretches:
            first, last = segments.edges[segments.ids[a]], segments.edges[segments.ids[a] + 1]
            kept[max(a - self.gap, first) : min(b + self.gap, last)] = False
        return np.flatnonzero(kept)

    @property
    def test_segments(self) -> npt.NDArray[np.intp]:
        """Ids for ``X[test]``: a new one at every border, as ``significance`` takes them."""
        return self._ids(self.test)

    @property
    def train_segments(self) -> npt.NDArray[np.intp]:
        """Ids for ``X[train]``: a new one at every border, as ``CNMF.fit`` takes them."""
        return self._ids(self.train)

    def is_of(self, X: Any) -> bool:
        """Whether X is the recording that was cut.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        bool
        """
        return bool(X.shape[0] == self.n_samples and fingerprint_of_all([X]) == self.fingerprint)

    def _ids(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        own = Segments(list(self.lengths)).ids[rows]
        jumps = (np.diff(rows) != 1) | (own[1:] != own[:-1])
        return np.r_[0, np.cumsum(jumps)].astype(np.intp)
