"""The model: everything that says what is to be solved, and nothing of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from motifold.model.arrays import Array, Boundary, Mask
from motifold.model.losses import SQUARED, Loss
from motifold.model.penalties import Penalties

__all__ = ["Array", "Boundary", "Mask", "Model"]


@dataclass(frozen=True)
class Model:
    """What is to be solved, in the working scale.

    The solvers see ``scale · X``, with ``scale`` a power of two that brings extreme data into
    range. Activations of the working problem are ``scale`` times those of the data, motifs are the
    same.

    Attributes
    ----------
    N, K, L : number of features, of motifs, of lags
    boundary : "zero" (motifs are cut off at a segment's end) or "valid" (none is)
    penalties : in the working scale
    scale : power of two
    fixed : (K,) of bool, motifs that are not learnt; None if all are
    loss : how X̂ is compared with X
    background : whether the last of the K components is a constant of every feature: it is active
        everywhere, at 1, and has lag 0 alone
    signed : whether X may lie below zero; motifs and activations do not, a background may
    """

    N: int
    K: int
    L: int
    boundary: Boundary
    penalties: Penalties
    scale: float = 1.0
    fixed: Mask | None = None
    loss: Loss = SQUARED
    background: bool = False
    signed: bool = False

    def with_penalties(self, penalties: Penalties) -> Model:
        """The same with other penalties, which are in the working scale."""
        return replace(self, penalties=penalties)

    @property
    def learnt(self) -> np.ndarray:
        """Indices of the motifs that are learnt; the background is none."""
        return np.arange(self.n_motifs) if self.held is None else np.flatnonzero(~self.held)

    @property
    def n_motifs(self) -> int:
        """How many components are motifs."""
        return self.K - self.background

    @property
    def held(self) -> Mask | None:
        """(K,) of bool, components that no solver moves: fixed motifs, and the background."""
        if not self.background:
            return self.fixed
        held = np.zeros(self.K, dtype=bool) if self.fixed is None else self.fixed.copy()
        held[-1] = True
        return held
