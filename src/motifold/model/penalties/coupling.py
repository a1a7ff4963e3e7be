"""Penalties on what different components share: seqNMF's, "events" and "parts"."""

from __future__ import annotations

import numpy as np

from motifold.model.arrays import Array, different
from motifold.model.penalties.base import Penalty


class XOrtho(Penalty):
    """Motifs that explain the same events (seqNMF's cross-orthogonality)."""

    name, factor, degree, couples = "x_ortho", "both", 2, True
    formula = "λ Σ_{i≠j} Σ_t (W⋆X)[t, i] · (Q∗H)[t, j]"
    help = "Against motifs that explain the same events (seqNMF's)."

    def between_matches(self, K: int) -> Array:
        """λ for every pair of different components."""
        return self.weight * different(K)


class OrthoH(Penalty):
    """Motifs that are active near each other, whatever the data."""

    name, factor, degree, couples, convex = "ortho_H", "H", 2, True, False
    formula = "λ/2 Σ_{i≠j} Σ_t (Q∗H)[t, i] · H[t, j]"
    help = "Against motifs that are active at the same time."

    def between_activations(self, K: int) -> Array:
        """λ for every pair of different components."""
        return self.weight * different(K)


class OrthoW(Penalty):
    """Motifs that share features."""

    name, factor, degree, couples = "ortho_W", "W", 0, True
    formula = "λ/2 Σ_{i≠j} Σ_n (Σ_ℓ W[n, ℓ, i]) · (Σ_ℓ W[n, ℓ, j])"
    help = "Against motifs that share features."

    def between_motifs(self, K: int, L: int) -> Array:
        """λ for every pair of different components, at any two lags."""
        return self.weight * np.tile(different(K), (L, L))
