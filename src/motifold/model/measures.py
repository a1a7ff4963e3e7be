"""How well motifs explain a recording: each measure by its one formula."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.model.losses import SQUARED, Loss

ROWS = 4096  # at a time, so that of a long recording no second copy stands in memory


class Power:
    """What parts explain of the squares of a recording, block by block; NaN does not count.

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

    def add(
        self,
        X: npt.NDArray[Any],
        parts: Iterable[npt.NDArray[Any]],
        background: npt.NDArray[Any] | None = None,
    ) -> None:
        """A block (bins, N) of the recording, its K parts, and a constant (N,) beside them."""
        missing = np.isnan(X)
        hidden = bool(missing.any())
        X = np.where(missing, 0, X) if hidden else X
        self._total += _dot(X, X)
        left = X.astype(np.float64)
        if background is not None:
            left -= np.where(missing, 0, background)
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
        """‖X − X̂‖ / ‖X‖ of all parts together."""
        return SQUARED.relative(self._residual, self._total)

    @property
    def explained(self) -> float:
        """Share of the power that all parts explain together."""
        return SQUARED.explained(self.loss)


class Deviance:
    """The same for another loss: the deviance that is explained, and what each part is of X̂.

    Parameters
    ----------
    K : number of parts
    loss : which
    means : (N,), of the features: what the deviance is relative to is that of these constants
    """

    def __init__(self, K: int, loss: Loss, means: npt.NDArray[np.float64]) -> None:
        self._loss = loss
        self._means = means
        self._made = np.zeros(K)
        self._left = 0.0
        self._reference = 0.0

    def add(
        self,
        X: npt.NDArray[Any],
        parts: Iterable[npt.NDArray[Any]],
        background: npt.NDArray[Any] | None = None,
    ) -> None:
        """A block (bins, N) of the recording, its K parts, and a constant (N,) beside them."""
        seen = ~np.isnan(X)
        there = X[seen]
        fit = np.full(len(there), floor_of(self._means, X.dtype))
        if background is not None:
            fit += np.broadcast_to(background, X.shape)[seen]
        for k, part in enumerate(parts):
            self._made[k] += part[seen].sum(dtype=np.float64)
            fit += part[seen]
        self._left += self._loss.divergence(there, fit)
        constants = np.broadcast_to(self._means, X.shape)[seen]
        self._reference += self._loss.divergence(there, constants)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Share of X̂ that each part makes, (K,)."""
        return self._made / (self._made.sum() or 1)

    @property
    def loss(self) -> float:
        """The deviance as a share of that of the constants."""
        return self._loss.relative(2 * self._left, 2 * self._reference)

    @property
    def explained(self) -> float:
        """Share of the deviance that all parts explain together."""
        return self._loss.explained(self.loss)


def floor_of(means: npt.NDArray[np.float64], dtype: Any) -> float:
    """What a fit adds to X̂ so that it is nowhere zero: rounding of X's mean; none for silence."""
    positive = means[means > 0]
    kind = dtype if np.issubdtype(dtype, np.floating) else np.float64
    return float(np.finfo(kind).eps) * (float(positive.mean()) if positive.size else 0.0)


def _dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(np.einsum("tn,tn->", a, b, dtype=np.float64))
