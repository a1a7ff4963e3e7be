"""Multiplicative updates (Smaragdis 2004; the paper's section II-C)."""

from __future__ import annotations

import numpy as np

from motifold.model import Array, Penalties
from motifold.model.losses import Loss
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

    def update_by_ratios(
        self, F: Array, above: Array, below: Array, loss: Loss, l1: Array, l2: Array
    ) -> Array:
        """A new F for any β-divergence: where a majoriser of J at F has its minimum.

        ``above`` and ``below`` are the two parts of the gradient, of which the latter is taken off.
        F ∘ (above / (below + l1))^γ(β), which never raises J (Févotte & Idier 2011; l1 enters the
        majoriser by u ≤ u^β/β + 1 − 1/β). With l2 it is the root of one equation for each entry.
        """
        below = np.maximum(below + l1.astype(F.dtype), _SMALLEST)
        factor: Array = above / below
        if loss.exponent != 1:
            factor = factor ** F.dtype.type(loss.exponent)
        if l2.any():
            factor = _damped(factor, above, below, l2.astype(F.dtype) * F, loss)
        return F * factor


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


# Halvings of the interval in which the root of an entry with an l2 penalty lies.
_HALVINGS = 50


def _damped(most: Array, above: Array, below: Array, pull: Array, loss: Loss) -> Array:
    """The u ≥ 0 at which −above·u^a + below·u^b + pull·u is zero; without ``pull`` it is ``most``.

    a, b = β−2, 0 for β < 1; β−2, β−1 up to 2; 0, β−1 above: it rises with u.
    """
    beta = loss.beta
    if beta == 1:  # a quadratic equation
        return 2 * above / (below + np.sqrt(below * below + 4 * pull * above))
    a = most.dtype.type(min(beta - 2, 0.0))
    b = most.dtype.type(0.0 if beta < 1 else beta - 1)
    low, high = np.zeros_like(most), most.copy()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rising = below * middle**b + pull * middle > above * middle**a
            high = np.where(rising, middle, high)
            low = np.where(rising, low, middle)
    return high
