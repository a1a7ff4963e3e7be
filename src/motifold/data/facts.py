"""One look at all of X: whether its values will do, how large they are, and their power."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from motifold.data.recording import Block, Data
from motifold.data.sentinels import advice, is_sentinel, stands_out
from motifold.data.sources.stored import stored_of
from motifold.model.arrays import Array

# Rows of a sparse matrix that are looked at together.
_ROWS = 2**16
# Entries that are looked at together on a GPU, which is slow to begin with anything.
_GLANCED = 2**26
# Entries from which on several threads are worth it.
_LARGE = 2**24


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
    data: Data,
    width: int = 1,
    *,
    nonnegative: bool = True,
    scale: float | None = None,
    threads: int = 1,
) -> Facts:
    """Read X once: raise at the first bad value, with its place; else the facts.

    ``width`` as in ``Data.blocks``. ``scale``: to be used instead of the one that fits the data.
    ``threads``: of those that may look at what is in memory; the numbers are the same.
    """
    largest, total, exponent = 0.0, 0.0, 0
    for block, rows, look in _looked_at(data, width, threads):
        low, high = look.low, look.high
        if not (np.isfinite(low) and np.isfinite(high)) or (nonnegative and low < 0):
            raise _bad_value(data, block, nonnegative)
        size = max(high, -low)
        if size == 0:
            continue
        largest = max(largest, size)
        # The sum is counted in units of 4^exponent, so that no square overflows or vanishes.
        needed = -int(np.frexp(largest)[1]) if working_scale(largest, data.dtype) != 1.0 else 0
        if needed != exponent:
            total *= 4.0 ** float(max(-500, min(500, needed - exponent)))
            exponent = needed
        total += _power(np.ldexp(rows.astype(np.float64), exponent)) if exponent else look.power
    if stands_out(data, largest):
        warnings.warn(f"{data.name}: {advice(largest)}", UserWarning, stacklevel=3)
    if scale is None:
        scale = working_scale(largest, data.dtype)
    squared_norm = total * float(np.ldexp(scale, -exponent)) ** 2
    return Facts(data.T, data.N, data.dtype, scale, squared_norm, data.observed_share)


@dataclass(frozen=True)
class _Look:
    """The least, the largest, and the sum of squares of some rows."""

    low: float
    high: float
    power: float

    @classmethod
    def at(cls, rows: Array) -> _Look:
        with np.errstate(
            all="ignore"
        ):  # what is not finite is told, and overflows are counted anew
            return cls(float(rows.min()), float(rows.max()), _power(rows))


def _power(rows: Array) -> float:
    # Not by BLAS, whose threads would wake up for it.
    return float(np.einsum("tn,tn->", rows, rows, dtype=np.float64))


def _looked_at(data: Data, width: int, threads: int) -> Iterator[tuple[Block, Array, _Look]]:
    """The blocks, what they hold, and a look at it: by threads, where X is large and in memory."""
    blocks = _blocks(data, width)
    there = all(segment.array is not None for segment in data.segments)
    if threads < 2 or not there or data.T * data.N < _LARGE:
        yield from ((block, rows, _Look.at(rows)) for block, rows in blocks)
        return
    parts = list(blocks)  # views
    with ThreadPoolExecutor(threads, "motifold-scan") as pool:
        looks = pool.map(_Look.at, [rows for _, rows in parts])
        for (block, rows), look in zip(parts, looks, strict=True):
            yield block, rows, look


def _blocks(data: Data, width: int) -> Iterator[tuple[Block, Array]]:
    """The blocks of the data and what they hold; of a sparse matrix, its entries as one row.

    What a source holds elsewhere, on a GPU, is looked at there (``glance``).
    """
    if data.n_entries is None:
        for segment, a, b in data.blocks(width):
            if not hasattr(segment.source, "glance"):
                yield (segment, a, b), segment.rows(a, b)
        for segment in data.segments:
            if hasattr(segment.source, "glance"):
                step = max(1, _GLANCED // data.N)
                for a in range(0, len(segment), step):
                    b = min(a + step, len(segment))
                    yield (segment, a, b), segment.source.glance(a, b)
        return
    for segment in data.segments:
        assert segment.sparse is not None
        for a in range(0, len(segment), _ROWS):
            b = min(a + _ROWS, len(segment))
            entries = segment.sparse.entries(a, b)
            if entries.size:
                yield (segment, a, b), entries[None]


def weighed(facts: Facts, data: Data, weights: Array, width: int = 1) -> Facts:
    """The same facts of X·weights, whose features are weighed, (N,)."""
    power = 0.0
    for segment, a, b in data.blocks(width):
        if segment.sparse is None:
            rows, own = segment.rows(a, b), weights
        else:
            low, high = segment.sparse.starts[[a, b]]
            rows, own = segment.sparse.entries(a, b), weights[segment.sparse.columns[low:high]]
        rows = np.asarray(rows, dtype=np.float64) * facts.scale * own
        power += float(np.einsum("i,i->", rows.ravel(), rows.ravel()))
    return replace(facts, squared_norm=power)


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


def _bad_value(data: Data, block: Block, nonnegative: bool) -> Exception:
    """The error for a block of the data with a bad value."""
    segment, a, b = block
    if segment.sparse is not None:  # the one row that has it will do
        entries = segment.sparse.entries(a, b)
        bad = ~np.isfinite(entries) | (nonnegative & (entries < 0))
        a += int(segment.sparse.rows_of_entries(a, b)[np.argmax(bad)])
        b = a + 1
    error = bad_value(segment.rows(a, b), *place_of(data, (segment, a, b)), nonnegative)
    stored = stored_of(segment.source)
    told = None if stored is None else getattr(stored.stored, "bad_value", None)
    return error if told is None else told(str(error))  # a file has a name, and options


def place_of(data: Data, block: Block) -> tuple[str, int]:
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
            f"with the argument mask (True = observed: mask=~np.isnan({name})), not left as NaN."
        )
    if np.isinf(value):
        return ValueError(
            f"Input {name} contains infinity or a value too large for dtype({block.dtype}), "
            f"first at {place}: {value}. Replace it by a finite value."
        )
    if is_sentinel(value):
        what = advice(value)
    else:
        what = (
            "What they mean only you know: noise around zero may stay as it is "
            "(allow_negative=True), or be set to zero; deviations of both signs want magnitudes, "
            "or positive and negative parts as features of their own. Do not raise all values: "
            "motifs would have to explain the raise (How-to, Fit data below zero)."
        )
    return ValueError(
        f"Negative values in data passed to CNMF, first in {name} at {place}: {value}. {what}"
    )
