"""Masks: which share of a sound each motif has, at every time and frequency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.findings.decomposition import Decomposition

Array = npt.NDArray[Any]

EXPONENT = 2.0


def masks_of(fit: Decomposition, a: int, b: int, exponent: float = EXPONENT) -> list[Array]:
    """The masks of time bins a to b, one for each motif, then one for the background if any.

    Each is (b − a, n_features); they sum to one everywhere.
    """
    parts = list(fit.parts(a, b))
    background = fit.model.background_
    if background is not None:
        parts.append(np.broadcast_to(background, parts[0].shape))
    return shares(parts, exponent)


def shares(parts: Iterable[Array], exponent: float = EXPONENT) -> list[Array]:
    """Wiener masks: the power of each part in the sum of all, partᵅ / Σ partᵅ.

    Where all parts are zero all take the same.

    Parameters
    ----------
    parts : nonnegative arrays of one shape
    exponent : α; 1 is the share of the sum, larger ones tell parts apart more sharply

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.sound.masks import shares
    >>> shares([np.array([3.0, 0.0]), np.array([1.0, 0.0])], exponent=1)
    [array([0.75, 0.5 ]), array([0.25, 0.5 ])]
    """
    parts = [np.asarray(part, np.float64) for part in parts]
    largest = np.maximum.reduce(parts)
    silent = largest <= 0
    # In units of the largest: no power of a tiny number becomes zero where it is all there is.
    powers = [(part / np.where(silent, 1.0, largest)) ** exponent for part in parts]
    total = np.add.reduce(powers)
    total[silent] = 1.0
    return [np.where(silent, 1 / len(parts), power / total) for power in powers]
