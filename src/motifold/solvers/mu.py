"""Multiplicative updates (Smaragdis 2004; the paper's section II-C)."""

from __future__ import annotations

import numpy as np

from motifold.model import Array, Penalties
from motifold.solvers.base import HStatistics, Inner, SolverOptions, WStatistics

# Denominators below this are raised to it.
_SMALLEST = 1e-16


class MU(SolverOptions):
    """Multiplicative updates: every entry is scaled by the ratio of the gradient's two parts.

    Simple, monotone, and slow near zeros, which it approaches but never reaches. An entry that is
    zero stays zero, so it is neither extrapolated nor started on a part of the data.

    Examples
    --------
    >>> from motifold import CNMF, MU
    >>> model = CNMF(n_components=2, n_lags=3, solver=MU())
    """

    leaves_zero = False

    def update_W(
        self, W: Array, statistics: WStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """W ← W ∘ P / (W̃B + slope + l1 + l2·W)."""
        N, L, K = W.shape
        P = statistics.P if statistics.P_data is None else statistics.P_data
        P = P.reshape(W.shape)

        def denominator() -> Array:
            product = W.reshape(N, L * K) @ statistics.B
            if statistics.slope is not None:
                product += statistics.slope
            return product.reshape(W.shape)

        _scale_entries(W, P, denominator, penalties.l1_W, penalties.l2_W, inner)

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """H ← H ∘ C / (A∗H + slope + l1 + l2·H)."""
        C = statistics.C if statistics.C_data is None else statistics.C_data

        def denominator() -> Array:
            product = statistics.correlate(H)
            if statistics.slope is not None:
                product += statistics.slope
            return product

        _scale_entries(H, C, denominator, penalties.l1_H, penalties.l2_H, inner)


def _scale_entries(F, numerator, denominator, l1, l2, inner) -> None:  # type: ignore[no-untyped-def]
    """Repeat F ← F ∘ numerator / (denominator() + l1 + l2·F) in place, as ``inner`` says."""

    def sweep() -> float:
        below = denominator() + (l1 + l2 * F).astype(F.dtype, copy=False)
        np.maximum(below, _SMALLEST, out=below)
        new = F * (numerator / below)
        moved = float(np.sum((new - F) ** 2, dtype=np.float64))
        F[...] = new
        return moved

    inner.repeat(sweep)
