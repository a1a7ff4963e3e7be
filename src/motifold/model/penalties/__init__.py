"""Penalties: one class each, and one line in ``PENALTIES``.

From that line come the constraint and the default of the parameter, the option of the command line,
the row of the table in the docs, and the property tests against the oracle.
"""

from __future__ import annotations

from motifold.model.penalties.base import Penalties, Penalty
from motifold.model.penalties.coupling import OrthoH, OrthoW, XOrtho
from motifold.model.penalties.entries import L1H, L1W, L2H, L2W

PENALTIES: tuple[type[Penalty], ...] = (L1W, L2W, L1H, L2H, XOrtho, OrthoH, OrthoW)

__all__ = ["PENALTIES", "Penalties", "Penalty", "penalties_of"]


def penalties_of(K: int, background: bool = False, **weights: float) -> Penalties:
    """The penalties with these weights, by name, for K components; those of weight 0 are left out.

    ``background``: the last component is left out, too.

    Examples
    --------
    >>> from motifold.model.penalties import penalties_of
    >>> penalties_of(2, l1_H=0.5, ortho_W=0).terms
    (L1H(0.5),)
    """
    classes = {penalty.name: penalty for penalty in PENALTIES}
    unknown = sorted(set(weights) - set(classes))
    if unknown:
        raise ValueError(f"There is no penalty {unknown[0]!r}; there are {sorted(classes)}.")
    terms = [classes[name](weight) for name, weight in weights.items() if weight > 0]
    return Penalties(tuple(terms), K, background)
