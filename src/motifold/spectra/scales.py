"""From magnitudes to what is factorised: silence is zero on every scale but the old logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_COLUMNS = 32  # features at a time
SCALES = ("sqrt", "magnitude", "power", "log1p", "log")
# Share of the time in which nothing sounds at a frequency, unless it is said: measured on drums and
# on speech with and without noise (docs/how-to/sound.md). The scales of 0.1 stay what they were.
NOISE_FLOOR = {"sqrt": 0.1, "log1p": 0.1}
_EPSILON = 1e-6  # what stands for silence under the logarithm, as in the paper's speech matrix
_GAMMA = 1000.0


@dataclass(frozen=True)
class Scale:
    """A scale of magnitudes |S|.

    Parameters
    ----------
    name : {"sqrt", "magnitude", "power", "log1p", "log"}
        √|S|, |S|, |S|², log(1 + γ|S|), or log(|S| + 1e-6) less its minimum (the paper's).
    gamma : γ

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.spectra import Scale
    >>> Scale("sqrt").of(np.array([0.0, 0.25, 1.0]))
    array([0. , 0.5, 1. ])
    """

    name: str = "sqrt"
    gamma: float = _GAMMA

    def __post_init__(self) -> None:
        if self.name not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {self.name!r}.")

    def of(self, magnitude: Array) -> Array:
        """The magnitudes on this scale; "log" before its minimum is taken off."""
        if self.name == "sqrt":
            return np.sqrt(magnitude)
        if self.name == "power":
            return np.square(magnitude)
        if self.name == "log1p":
            return np.log1p(self.gamma * magnitude)
        return np.log(magnitude + _EPSILON) if self.name == "log" else magnitude

    def level(self, least: float) -> float:
        """What is taken off so that the smallest of all magnitudes is zero; 0 but for "log"."""
        return float(np.log(least + _EPSILON)) if self.name == "log" else 0.0


def remove_floor(X: Array, share: float) -> None:
    """Take the noise floor off: what a feature does not exceed in that share of the time.

    X (time, features) is changed; what was below is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.spectra.scales import remove_floor
    >>> X = np.array([[1.0], [1.0], [1.5], [3.0]])
    >>> remove_floor(X, 0.25)
    >>> X.ravel()
    array([0. , 0. , 0.5, 2. ])
    """
    for a in range(0, X.shape[1], _COLUMNS):
        part = X[:, a : a + _COLUMNS]
        part -= np.quantile(part, share, axis=0, method="lower")
        np.maximum(part, 0, out=part)
