"""What is kept of a stream that is learnt from: sums, the last rows, and nothing that grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from motifold.model import Array, Mask


@dataclass(frozen=True)
class Running:
    """The sums over a stream, and the rows that are still open; all in the working scale.

    Attributes
    ----------
    W : (N, L, K), the motifs in the scale in which they are learnt, the background among them
    P : (N, L·K), Σ_t X[t] H̃[t]ᵀ over the rows that are done, old ones discounted
    B : (L·K, L·K), Σ_t H̃[t] H̃[t]ᵀ
    H : (L−1, K), the activations before the open rows; zero before a segment
    X : (rows, N), the open rows: what comes next may change their activations
    observed : like X, or None if all is
    scale : a power of two, by which X is multiplied
    n_seen : rows that have come
    n_done : rows of the segment before the open ones
    weight : rows that the sums count, discounted as they are
    power, residual : Σ X² and Σ (X − X̂)² over them, discounted too
    level : (K,), the mean activation of the last rows that were done
    """

    W: Array
    P: Array
    B: Array
    H: Array
    X: Array
    observed: Mask | None
    scale: float
    n_seen: int
    n_done: int
    weight: float
    power: float
    residual: float
    level: Array

    @property
    def loss(self) -> float:
        """‖X − X̂‖/‖X‖ of what is counted, as it was when it came."""
        return float(np.sqrt(self.residual / self.power)) if self.power > 0 else 0.0
