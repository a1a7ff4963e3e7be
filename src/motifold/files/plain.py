"""Values as JSON knows them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np


def plain_scalar(value: Any) -> bool | int | float | str | None:
    """The value as a plain one of Python; TypeError if it is neither number, text nor None."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be stored.")


def plain_tree(value: Any) -> Any:
    """The value with all that it holds, for people and programs to read.

    NaN and infinity, which JSON lacks, are None; what is no JSON at all is its text.
    """
    if isinstance(value, dict):
        return {str(key): plain_tree(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain_tree(entry) for entry in value]
    try:
        scalar = plain_scalar(value)
    except TypeError:
        return str(value)
    return None if isinstance(scalar, float) and not math.isfinite(scalar) else scalar
