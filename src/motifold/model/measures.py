"""How well motifs explain a recording: each measure by its one formula.

One rule divides what a model explains among its motifs, for every loss. At each entry the model has
changed X̂ from a reference m to x̂, and gained d(x|m) − d(x|x̂) by it; of that each motif has the part
which it has in the change. So shares, the background's and what is left over add up to 1, over any
entries. By squares the reference is zero, and the share of motif k is ⟨2X − X̂, X̂_k⟩/‖X‖²: the mean
of what it adds over all orders in which motifs may be added (Shapley's value), and ⟨X̂, X̂_k⟩/‖X‖²
where the activations are optimal. For other losses, which zero may cost anything, the reference is
the mean of every feature, divided among the motifs as X̂ is: a motif gains by when it comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.model.losses import SQUARED, Loss

ROWS = 4096  # at a time, so that of a long recording no second copy stands in memory

Floats = npt.NDArray[np.float64]


class Power:
    """What parts explain of the squares of a recording, block by block; NaN does not count.

    Parameters
    ----------
    K : number of parts; with 0 only the loss is measured
    """

    def __init__(self, K: int) -> None:
        self._explained = np.zeros(K)
        self._alone = np.zeros(K)
        self._constant = 0.0
        self._total = 0.0
        self._residual = 0.0

    @classmethod
    def of(cls, explained: Floats, alone: Floats, residual: float, total: float) -> Power:
        """From ⟨2X − X̂, X̂_k⟩ and ⟨2X − X̂_k, X̂_k⟩, squared residual and norm of all of it."""
        found = cls(len(explained))
        found._explained, found._alone = explained, alone
        found._residual, found._total = residual, total
        return found

    def add(
        self,
        X: npt.NDArray[Any],
        X_hat: npt.NDArray[Any],
        parts: Iterable[npt.NDArray[Any]] = (),
        background: npt.NDArray[Any] | None = None,
    ) -> None:
        """A block (bins, N) of the recording, X̂, its K parts, and a constant (N,) beside them."""
        seen = ~np.isnan(X)
        all_seen = bool(seen.all())
        data = X.astype(np.float64) if all_seen else np.where(seen, X, 0).astype(np.float64)
        left = data - (X_hat if all_seen else np.where(seen, X_hat, 0))
        self._total += _dot(data, data)
        self._residual += _dot(left, left)
        gained = data + left  # 2X − X̂
        for k, part in enumerate(parts):
            part = part if all_seen else np.where(seen, part, 0)
            self._explained[k] += _dot(gained, part)
            self._alone[k] += 2 * _dot(data, part) - _dot(part, part)
        if background is not None:
            self._constant += float(gained.sum(axis=0, where=seen) @ background)

    @property
    def shares(self) -> Floats:
        """⟨2X − X̂, X̂_k⟩/‖X‖²: what each part has of what all explain together, (K,)."""
        return _of(self._explained, self._total)

    @property
    def alone(self) -> Floats:
        """⟨2X − X̂_k, X̂_k⟩/‖X‖²: what each part would explain without any other, (K,)."""
        return _of(self._alone, self._total)

    @property
    def overlaps(self) -> Floats:
        """⟨X̂ − X̂_k, X̂_k⟩/‖X‖²: of each share what lies where other parts are as well, (K,).

        The rest of the share is what would be lost without the part, and the share and this once
        more what the part would explain alone.
        """
        return self.alone - self.shares

    @property
    def background(self) -> float:
        """The share of the constants."""
        return float(_of(self._constant, self._total))

    @property
    def loss(self) -> float:
        """‖X − X̂‖ / ‖X‖ of all parts together."""
        return SQUARED.relative(self._residual, self._total)

    @property
    def explained(self) -> float:
        """Share of the power that all parts explain together."""
        return SQUARED.explained(self.loss)


class Deviance:
    """The same for another loss, by the deviance.

    Parameters
    ----------
    loss : which
    constants : (K + 1, N), what parts and background have of the mean of every feature: their sum
        is the reference, and what the deviance is relative to is that of it
    """

    def __init__(self, loss: Loss, constants: Floats) -> None:
        self._loss = loss
        self._constants = constants
        self._means = constants.sum(axis=0)
        self._gained = np.zeros(len(constants))
        self._left = 0.0
        self._reference = 0.0

    def add(
        self,
        X: npt.NDArray[Any],
        X_hat: npt.NDArray[Any],
        parts: Iterable[npt.NDArray[Any]] = (),
        background: npt.NDArray[Any] | None = None,
    ) -> None:
        """A block (bins, N) of the recording, X̂, its K parts, and a constant (N,) beside them."""
        seen = ~np.isnan(X)
        there = X[seen]
        fit = X_hat[seen] + floor_of(self._means, X.dtype)
        reference = np.broadcast_to(self._means, X.shape)[seen]
        self._left += self._loss.divergence(there, fit)
        self._reference += self._loss.divergence(there, reference)
        worth = np.zeros(X.shape)
        worth[seen] = self._loss.gain_per_unit(there, fit, reference)
        by_feature = worth.sum(axis=0)
        for k, part in enumerate(parts):
            self._gained[k] += _dot(worth, part) - float(by_feature @ self._constants[k])
        constant = np.zeros(X.shape[1]) if background is None else background
        self._gained[-1] += float(by_feature @ (constant - self._constants[-1]))

    @property
    def shares(self) -> Floats:
        """What each part has of the deviance that all explain together, (K,)."""
        return _of(self._gained[:-1], self._reference)

    @property
    def background(self) -> float:
        """The share of the constants: next to nothing, since the reference is constant, too."""
        return float(_of(self._gained[-1], self._reference))

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


def _of(part: Any, total: float) -> Any:
    """The part as a share; of silence there is none."""
    return part / total if total > 0 else 0 * part


def _dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(np.einsum("tn,tn->", a, b, dtype=np.float64))
