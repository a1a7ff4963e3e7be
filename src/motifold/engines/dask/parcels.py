"""What a worker needs to have a shard: where its rows are read, or the rows themselves."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.data import Data, Facts
from motifold.data.facts import bad_value, working_scale
from motifold.data.sources import ArraySource, Part, Source, SparseSource
from motifold.engines.dask import shelf
from motifold.engines.dask.plan import Shard
from motifold.model import Array, Mask

# Rows that are looked at together.
_ROWS = 2**14


@dataclass(frozen=True)
class Stored:
    """Rows a to b of something on disk, to be read by the worker.

    Attributes
    ----------
    stored : reads rows, as ``data.sources`` has it; it is sent
    dtype : to be converted to
    """

    stored: Any
    a: int
    b: int
    dtype: np.dtype

    def read(self) -> Array:
        """All of them."""
        try:
            rows = self.stored.read(self.a, self.b)
        except Exception as error:
            raise self.stored.unreadable(self.a, self.b, error) from error
        return np.ascontiguousarray(rows, dtype=self.dtype)


@dataclass(frozen=True)
class DaskRows:
    """Rows of a dask array: they come from other workers."""

    array: Any
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)."""
        return self.array.shape


@dataclass(frozen=True)
class Shelved:
    """Rows that a task has left for it, in the worker's process."""

    token: str
    shape: tuple[int, int]
    dtype: np.dtype

    def read(self) -> Array:
        """All of them."""
        return np.ascontiguousarray(shelf.take(self.token), dtype=self.dtype)


@dataclass(frozen=True)
class Zeroed:
    """Rows that are zero where they are not observed, whatever is there."""

    source: Any
    observed: Mask

    def read(self) -> Array:
        """All of them."""
        rows = _read(self.source)
        return np.where(self.observed, rows, rows.dtype.type(0))


@dataclass(frozen=True)
class Parcel:
    """A shard, as it is sent.

    Attributes
    ----------
    sources : of each of its pieces, with the halo
    observed : of each, or None
    names : what the user calls the array of each piece, and its first row there
    signed : whether values may be below zero
    """

    shard: Shard
    sources: tuple[Any, ...]
    observed: tuple[Mask | None, ...]
    names: tuple[tuple[str, int], ...]
    signed: bool


@dataclass(frozen=True)
class Seen:
    """What a look at its own rows has shown.

    Attributes
    ----------
    largest : magnitude
    power : pairs of Σ(x·2^−e)² and e
    features : (N,), those with an observed entry
    hides : whether an entry is missing
    """

    largest: float
    power: list[tuple[float, int]]
    features: Mask
    hides: bool


def parcel_of(data: Data, shard: Shard, signed: bool) -> Parcel:
    """The parcel of a shard; rows that are in memory here go with it."""
    sources, observed, names = [], [], []
    for piece in shard.pieces:
        segment = data.segments[piece.segment]
        sources.append(_sendable(segment.source, piece.a, piece.b))
        seen = segment.observed
        observed.append(None if seen is None else np.ascontiguousarray(seen[piece.a : piece.b]))
        if data.listed:
            names.append((f"{data.name}[{piece.segment}]", piece.a))
        else:
            names.append((data.name, segment.start + piece.a))
    return Parcel(shard, tuple(sources), tuple(observed), tuple(names), signed)


def _sendable(source: Any, a: int, b: int) -> Any:
    """Rows a to b of a source: those in memory themselves, of others how to read them."""
    if isinstance(source, Part):
        return _sendable(source.source, source.first + a, source.first + b)
    if isinstance(source, ArraySource):
        return ArraySource(np.ascontiguousarray(source.array[a:b]))
    if isinstance(source, SparseSource):
        return SparseSource.of(source.part(a, b).matrix())
    observed = getattr(source, "observed", None)
    if observed is not None:  # zero elsewhere
        return Zeroed(_sendable(source.source, a, b), np.ascontiguousarray(observed[a:b]))
    stored = getattr(source, "stored", None)
    if stored is None:
        return ArraySource(np.ascontiguousarray(source.rows(a, b)))
    X: Any = getattr(stored, "X", None)
    if type(X).__module__.partition(".")[0] == "dask":
        return DaskRows(X[a:b], source.dtype)
    if not _travels(stored):
        return ArraySource(np.ascontiguousarray(source.rows(a, b)))
    return Stored(stored, a, b, source.dtype)


def _travels(stored: Any) -> bool:
    """Whether a worker can open it for itself; datasets of h5py belong to their process."""
    try:
        pickle.dumps(stored)
    except Exception:
        return False
    return True


def open_parcel(parcel: Parcel) -> tuple[Data, Seen]:
    """The data of a shard, read, and what it looks like."""
    sources = [_in_memory(source) for source in parcel.sources]
    data = Data.of(sources, parcel.observed)
    own = parcel.shard.own
    largest, power, hides = 0.0, [], False
    features = np.zeros(data.N, dtype=bool)
    for segment, (name, first) in zip(data.segments, parcel.names, strict=True):
        a, b = max(0, own.start - segment.start), min(len(segment), own.stop - segment.start)
        seen = segment.observed
        hides |= seen is not None and not seen[a:b].all()
        features |= True if seen is None else seen[a:b].any(axis=0)
        for begin in range(a, b, _ROWS):
            rows = segment.rows(begin, min(begin + _ROWS, b))
            low, high = float(rows.min()), float(rows.max())
            if not (np.isfinite(low) and np.isfinite(high)) or (not parcel.signed and low < 0):
                raise bad_value(rows, name, first + begin, not parcel.signed)
            size = max(high, -low)
            largest = max(largest, size)
            power.append(_power(rows, size))
    return data, Seen(largest, power, features, bool(hides))


def _in_memory(source: Any) -> Source:
    return source if isinstance(source, SparseSource) else ArraySource(_read(source))


def _read(source: Any) -> Array:
    return source.array if isinstance(source, ArraySource) else source.read()


def _power(rows: Array, size: float) -> tuple[float, int]:
    """Σ(x·2^−e)² and e, so that no square overflows or vanishes."""
    if size == 0 or working_scale(size, rows.dtype) == 1.0:
        return float(np.einsum("tn,tn->", rows, rows, dtype=np.float64)), 0
    exponent = int(np.frexp(size)[1])
    rows = np.ldexp(rows.astype(np.float64), -exponent)
    return float(np.einsum("tn,tn->", rows, rows)), exponent


def facts_of(data: Data, seen: list[Seen], scale: float | None = None) -> Facts:
    """The facts of the recording from what its shards have seen, in their order."""
    largest = max(part.largest for part in seen)
    if scale is None:
        scale = working_scale(largest, data.dtype)
    power = 0.0
    for part in seen:
        for total, exponent in part.power:
            power += total * float(np.ldexp(scale, exponent)) ** 2
    return Facts(data.T, data.N, data.dtype, scale, power, data.observed_share)
