"""One look at all of X: whether its values will do, how large they are, and their power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from motifold.data.recording import Block, Data
from motifold.model.arrays import Array


@dataclass(frozen=True)
class Facts:
    """What is known of the data before the first iteration.

    Attributes
    ----------
    T, N : number of time bins and of features
    dtype : of the data
    scale : 1 for ordinary data; else the power of two that brings the largest entry near 1
    squared_norm : ‖scale·X‖² over observed entries, in float64
    observed_share : share of the entries that are observed
    """

    T: int
    N: int
    dtype: np.dtype
    scale: float
    squared_norm: float
    observed_share: float

    def check_room(self, L: int) -> None:
        """Raise where activations, up to √(N·L) times as large as X, may not be representable."""
        largest = 1 / self.scale  # and not below half of that, if the scale is not 1
        if largest > np.finfo(self.dtype).max / np.sqrt(self.N * L):
            wider = " or give it as float64" if self.dtype == np.float32 else ""
            raise ValueError(
                f"X has entries of about {largest:.0e}: the activations of motifs of norm 1 may be "
                f"too large for {self.dtype}. Divide X by a large number{wider}."
            )


def scan(
    data: Data, width: int = 1, *, nonnegative: bool = True, scale: float | None = None
) -> Facts:
    """Read X once: raise at the first bad value, with its place; else the facts.

    ``width`` as in ``Data.blocks``. ``scale``: to be used instead of the one that fits the data.
    """
    largest, total, exponent = 0.0, 0.0, 0
    for block in data.blocks(width):
        segment, a, b = block
        rows = segment.rows(a, b)
        low, high = float(rows.min()), float(rows.max())
        if not (np.isfinite(low) and np.isfinite(high)) or (nonnegative and low < 0):
            raise bad_value(rows, *_place(data, block), nonnegative)
        size = max(high, -low)
        if size == 0:
            continue
        largest = max(largest, size)
        # The sum is counted in units of 4^exponent, so that no square overflows or vanishes.
        needed = -int(np.frexp(largest)[1]) if working_scale(largest, data.dtype) != 1.0 else 0
        if needed != exponent:
            total *= 4.0 ** float(max(-500, min(500, needed - exponent)))
            exponent = needed
        if exponent:
            rows = np.ldexp(rows.astype(np.float64), exponent)
        # Not by BLAS, whose threads would wake up for it.
        total += float(np.einsum("tn,tn->", rows, rows, dtype=np.float64))
    if scale is None:
        scale = working_scale(largest, data.dtype)
    squared_norm = total * float(np.ldexp(scale, -exponent)) ** 2
    return Facts(data.T, data.N, data.dtype, scale, squared_norm, data.observed_share)


def ordinary_exponent(dtype: np.dtype) -> int:
    """Numbers of a size between 2^−this and 2^this are ordinary: no product of them is extreme."""
    return 60 if dtype == np.float64 else 12


def working_scale(largest: float, dtype: np.dtype) -> float:
    """1 for ordinary data; else the power of two that brings the largest entry near 1.

    Statistics are products of up to four factors of the data's size: outside this range they
    would overflow or lose their precision.
    """
    ordinary = 2.0 ** ordinary_exponent(dtype)
    if largest == 0.0 or 1 / ordinary <= largest <= ordinary:
        return 1.0
    exponent = -int(np.frexp(largest)[1])
    return float(2.0 ** min(exponent, np.finfo(dtype).maxexp - 2))


def _place(data: Data, block: Block) -> tuple[str, int]:
    """What the user calls the array that has the block, and the number of its first row there."""
    segment, a, _ = block
    if not data.listed:
        return data.name, segment.start + a
    return f"{data.name}[{data.segments.index(segment)}]", a


def bad_value(block: Array, name: str, first: int, nonnegative: bool) -> ValueError:
    """The error for a block of rows with a bad value; its rows are counted from ``first``."""
    bad = ~np.isfinite(block)
    if nonnegative:
        bad |= block < 0
    row, column = (int(i) for i in np.argwhere(bad)[0])
    value = block[row, column]
    place = f"row {first + row}, column {column}"
    if np.isnan(value):
        return ValueError(
            f"Input {name} contains NaN, first at {place}. Missing entries are to be declared "
            "with the argument mask (True = observed), not left as NaN."
        )
    if np.isinf(value):
        return ValueError(
            f"Input {name} contains infinity or a value too large for dtype({block.dtype}), "
            f"first at {place}: {value}. Replace it by a finite value."
        )
    return ValueError(
        f"Negative values in data passed to CNMF, first in {name} at {place}: {value}. The "
        "model is nonnegative: shift, rectify or take magnitudes first."
    )
