"""How well motifs explain a recording: each measure by its one formula."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 4096  # at a time, so that of a long recording no second copy stands in memory


def relative_loss(squared_residual: float, squared_norm: float) -> float:
    """‖X − X̂‖ / ‖X‖; of a recording of zeros 0 if X̂ is zero as well, infinite if it is not."""
    if squared_norm == 0:
        return 0.0 if squared_residual == 0 else np.inf
    return float(np.sqrt(squared_residual / squared_norm))


def explained(loss: float) -> float:
    """Share of the power that a fit with this relative loss explains."""
    return 1 - loss**2


class Power:
    """What parts explain of a recording, added up block by block; NaN does not count.

    Parameters
    ----------
    K : number of parts
    """

    def __init__(self, K: int) -> None:
        self._explained = np.zeros(K)
        self._total = 0.0
        self._residual = 0.0

    @classmethod
    def of(cls, shares: npt.NDArray[Any], residual: float, total: float) -> Power:
        """From shares, squared residual and squared norm of the whole recording."""
        found = cls(len(shares))
        found._explained, found._residual, found._total = shares * total, residual, total
        return found

    def add(self, X: npt.NDArray[Any], parts: Iterable[npt.NDArray[Any]]) -> None:
        """A block (bins, N) of the recording, and the K parts of it."""
        missing = np.isnan(X)
        hidden = bool(missing.any())
        X = np.where(missing, 0, X) if hidden else X
        self._total += _dot(X, X)
        left = X.astype(np.float64)
        for k, part in enumerate(parts):
            part = np.where(missing, 0, part) if hidden else part
            self._explained[k] += 2 * _dot(X, part) - _dot(part, part)
            left -= part
        self._residual += _dot(left, left)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Σ(2X·X̂_k − X̂_k²)/ΣX², floored at zero: what each part explains alone, (K,)."""
        return np.maximum(self._explained, 0) / (self._total or 1)

    @property
    def loss(self) -> float:
        """Relative loss of all parts together."""
        return relative_loss(self._residual, self._total)


def _dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(np.einsum("tn,tn->", a, b, dtype=np.float64))
