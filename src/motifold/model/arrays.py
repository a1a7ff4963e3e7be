"""Names of the types of arrays, and the components' own little algebra."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]
Boundary = Literal["zero", "valid"]


def different(K: int) -> npt.NDArray[np.float64]:
    """(K, K): one for every pair of different components."""
    return 1 - np.eye(K)
