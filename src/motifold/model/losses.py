"""Losses: how far X̂ is from X, and how a majorisation of it moves an entry.

Squared error is solved on Grams of the factors. Every other β-divergence is solved on *ratios* of
X and X̂, entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from motifold.model.arrays import Array

NAMES = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
_MOST = 20  # either side of zero: powers of ordinary data stay far from the ends of their range
_APART = 1e-6  # from 0 and 1, by which the divergence divides: half of the digits are left
_NEAR = 1e-4  # x̂ and its reference are one to this share


@dataclass(frozen=True)
class Loss:
    """The β-divergence Σ d_β(x | x̂) (Févotte & Idier 2011).

    β = 2 is ½‖X − X̂‖², 1 Kullback and Leibler's (counts), 0 Itakura and Saito's (power spectra).
    *Deviance* is twice the divergence: ‖X − X̂‖², or that of Poisson and gamma models.

    Examples
    --------
    >>> from motifold.model.losses import loss_of
    >>> loss_of("kullback-leibler"), loss_of(0.5).exponent
    (Loss(beta=1.0), 0.6666666666666666)
    """

    beta: float = 2.0

    @property
    def by_ratios(self) -> bool:
        """Whether it needs X̂ at every entry of X; if not, Grams will do."""
        return self.beta != 2

    @property
    def name(self) -> str:
        """As ``CNMF(beta_loss=...)`` has it."""
        return next((name for name, beta in NAMES.items() if beta == self.beta), f"{self.beta:g}")

    @property
    def title(self) -> str:
        """In words, for readers."""
        if self.beta == 2:
            return "squared error"
        return self.name.title() if self.name in NAMES else f"β = {self.name}"

    @property
    def convex(self) -> bool:
        """Whether the problem in one factor is."""
        return 1 <= self.beta <= 2

    @property
    def exponent(self) -> float:
        """γ(β): the power of the ratio for which multiplicative updates never raise the loss."""
        if self.beta < 1:
            return 1 / (2 - self.beta)
        return 1.0 if self.beta <= 2 else 1 / (self.beta - 1)

    @property
    def explains(self) -> str:
        """What a model explains a share of."""
        return "deviance" if self.by_ratios else "power"

    def explained(self, relative: float) -> float:
        """That share, of a relative loss."""
        return 1 - (relative if self.by_ratios else relative**2)

    def unscaled(self, value: float, scale: float, power: float = 1.0) -> float:
        """A divergence of scale·X, to this power, as that of X: divided by scale^(β·power).

        ``scale`` is a power of two. That of it may be beyond all numbers where the result is none.
        """
        exponent = -self.beta * power * float(np.log2(scale))
        whole = round(exponent)
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value * 2.0 ** (exponent - whole), whole))

    def divergence(self, X: Array, X_hat: Array) -> float:
        """Σ d_β(x | x̂), entry by entry in float64; infinite where only x̂ is zero (β ≤ 1).

        For some entries or a block: a fit has it from the passes over its data.
        """
        beta, x, y = self.beta, X.astype(np.float64), X_hat.astype(np.float64)
        there = x > 0
        with np.errstate(divide="ignore"):
            if beta == 2:
                parts = 0.5 * (x - y) ** 2
            elif beta == 1:
                parts = y - x
                parts[there] += x[there] * np.log(x[there] / y[there])
            elif beta == 0:
                ratio = x / y
                parts = ratio - np.log(ratio) - 1
            else:
                parts = y**beta / beta
                x, y = x[there], y[there]
                parts[there] += (x**beta / beta - x * y ** (beta - 1)) / (beta - 1)
        return float(parts.sum())

    def gain_per_unit(self, X: Array, X_hat: Array, reference: Array) -> Array:
        """(d(x | m) − d(x | x̂)) / (x̂ − m) at every entry: what a change of X̂ there was worth.

        The mean slope of the loss on the way from the ``reference`` m to x̂. It times x̂ − m is what
        was gained, whatever that is made of.
        """
        beta = self.beta
        x, u, m = (np.asarray(values, dtype=np.float64) for values in (X, X_hat, reference))
        there = x > 0
        step, middle = u - m, (u + m) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            if beta == 1:
                gain = np.where(there, x * np.log(u / m), 0) - step
            elif beta == 0:
                gain = x * (1 / m - 1 / u) - np.log(u / m)
            else:
                terms = np.where(there, x * (u ** (beta - 1) - m ** (beta - 1)), 0)
                gain = (m**beta - u**beta) / beta + terms / (beta - 1)
            # Where the two are nearly the same their difference is rounding: the slope between.
            near = (x - middle) * middle ** (beta - 2)
            slope = np.where(np.abs(step) < _NEAR * middle, near, gain / step)
        return np.where(middle > 0, slope, 0)  # of silence that is left silent nothing is gained

    def relative(self, deviance: float, reference: float) -> float:
        """The loss that is told: ‖X − X̂‖/‖X‖, or the deviance as a share of ``reference``.

        The reference is that of the best constant for every feature. Of a recording that a
        constant explains, 0 if X̂ does as well, infinite if it does not.
        """
        if reference == 0:
            return 0.0 if deviance == 0 else np.inf
        share = deviance / reference
        return float(np.sqrt(share)) if self.beta == 2 else float(share)


SQUARED = Loss()


def loss_of(beta_loss: str | float) -> Loss:
    """The loss of that name, or of that β."""
    if isinstance(beta_loss, str):
        if beta_loss not in NAMES:
            raise ValueError(
                f"beta_loss must be one of {sorted(NAMES)} or a number, not {beta_loss!r}."
            )
        return Loss(NAMES[beta_loss])
    is_number = isinstance(beta_loss, Real) and not isinstance(beta_loss, bool)
    if not is_number or not -_MOST <= beta_loss <= _MOST:
        raise ValueError(
            f"beta_loss must be one of {sorted(NAMES)} or a number from -{_MOST} to {_MOST}, not "
            f"{beta_loss!r}."
        )
    beta = float(beta_loss)
    for special in (0.0, 1.0):
        if 0 < abs(beta - special) < _APART:
            raise ValueError(
                f"beta_loss={beta!r} is too near {special:g}, of which it would be the difference "
                f"of large numbers: give {special:g} itself."
            )
    return Loss(beta)


def refuse_signed(loss: Loss, x_ortho: float) -> None:
    """Raise where data below zero (``allow_negative=True``) has no meaning for the loss.

    Nor has it for the penalty on what motifs match.
    """
    if loss.by_ratios:
        raise ValueError(
            f'beta_loss="{loss.name}" compares X with X̂ by their ratio, which has no meaning below '
            'zero: allow_negative=True is for beta_loss="frobenius" (squared error).'
        )
    if x_ortho > 0:
        raise ValueError(
            "x_ortho weighs how motifs match X: where X is below zero it would reward what it is "
            "to punish, and J has no least value. With allow_negative=True use ortho_H or ortho_W."
        )
