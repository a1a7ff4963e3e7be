"""Numbers that often stand for no number, in data that does not say so."""

from __future__ import annotations

import math

import numpy as np

from motifold.data.recording import Data

# Of netCDF and of the programs that write it, of GIS, of SPSS; the least values of types.
_SMALL = (-999, -9999, -99999, -999999, -32767, -32768, -2147483647, -2147483648, -(2**63))
_LARGE = (1e20, 1e30, 1e33, 1e35, 1e36, 9.969209968386869e36, 3.4028234663852886e38)
_APART = 1e-3  # other values are at most as large, beside one that stands for none


def is_sentinel(value: float) -> bool:
    """Whether the number, to the precision of float32, often stands for a missing value."""
    known = (*_SMALL, *_LARGE, *(-large for large in _LARGE))
    return any(math.isclose(value, number, rel_tol=1e-7) for number in known)


def advice(value: float) -> str:
    """What to do about it."""
    return (
        f"{value:g} often stands for a missing value. If it does here, hide such entries with the "
        "argument mask (True = observed), or write NaN in their place."
    )


def stands_out(data: Data, largest: float) -> bool:
    """Whether the largest value is such a number, and all others are far smaller."""
    if not is_sentinel(largest):
        return False
    second = 0.0
    for segment, a, b in data.blocks():
        rows = segment.rows(a, b)
        second = max(second, float(np.max(rows, where=rows < largest, initial=0)))
    return 0 < second < _APART * largest
