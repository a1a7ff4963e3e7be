"""A model and its data together, as the passes see them, and what they keep between iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Block, Data, Facts, Segment, scan
from motifold.model import Array, Boundary, Mask, Model, Penalties
from motifold.model.losses import SQUARED, Loss

# Missing entries of a block are listed up to this share of it; above, they are computed with the
# others, by matrix products.
_FEW = 1 / 6
# A multiplication of a sparse matrix takes as long as so many of a matrix product, about.
_SPARSE_COST = 5.0


@dataclass(frozen=True)
class HiddenBlock:
    """The missing entries of rows a to b of a segment.

    Attributes
    ----------
    first, columns : the missing features of row a + t are columns[first[t] : first[t + 1]];
        columns is None where they are many, and ``segment.observed`` is to be used
    """

    segment: Segment
    a: int
    b: int
    first: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32] | None


@dataclass(frozen=True, eq=False)
class Problem:
    """A model of some data.

    X itself is never scaled: the statistics are.

    Attributes
    ----------
    model, data : what is to be solved, and of what
    facts : of the data
    weights : (N,), of the features, where the problem is that of X·weights; None if it is X's
    support : (T, motifs), where activations may differ from zero; None: everywhere
    kept : what is made of the data once, shared by problems that differ in their penalties only
    """

    model: Model
    data: Data
    facts: Facts
    weights: Array | None = None
    support: Mask | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: Data,
        K: int,
        L: int,
        boundary: Boundary = "zero",
        penalties: Penalties | None = None,
        fixed: Mask | None = None,
        loss: Loss = SQUARED,
        background: bool = False,
        signed: bool = False,
        support: Mask | None = None,
        look: Callable[..., Facts] = scan,
    ) -> Problem:
        """The problem of some data, whose values are checked, and the penalties in its scale.

        With a background it is the last of K components. ``signed``: values may be below zero.
        ``look``: who reads the data once for its facts.
        """
        facts = look(data, L * K, nonnegative=not signed)
        facts.check_room(L)
        penalties = (penalties or Penalties((), K, background)).rescaled(facts.scale, loss.beta)
        settings = boundary, penalties, facts.scale, fixed, loss, background, signed
        model = Model(data.N, K, L, *settings)
        return cls(model, data, facts, support=support)

    def with_model(self, model: Model) -> Problem:
        """Another model of the same sizes; what has been made of the data is shared."""
        return Problem(model, self.data, self.facts, self.weights, self.support, self.kept)

    N = property(lambda self: self.model.N)
    K = property(lambda self: self.model.K)
    L = property(lambda self: self.model.L)
    T = property(lambda self: self.data.T)
    dtype = property(lambda self: self.data.dtype)
    scale = property(lambda self: self.model.scale)
    boundary = property(lambda self: self.model.boundary)
    penalties = property(lambda self: self.model.penalties)
    segments = property(lambda self: self.data.segments)
    squared_norm = property(lambda self: self.facts.squared_norm)
    sparse = property(lambda self: self.data.n_entries is not None)

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        """(segments, 3): start, end of the free activations, end of each segment."""
        return self.data.layout.bounds_for(self.L, self.model.boundary)

    @cached_property
    def allowed(self) -> Mask:
        """(T,): where an activation may differ from zero."""
        edges = np.zeros(self.T + 1, dtype=np.int64)
        start, stop_active, _ = self.bounds.T
        np.add.at(edges, start, 1)
        np.add.at(edges, stop_active, -1)
        return np.cumsum(edges[:-1]) > 0

    @cached_property
    def forbidden(self) -> Mask | None:
        """(T, K): where the support says that there is no activation; None if it says nothing."""
        if self.support is None:
            return None
        background = np.zeros((self.T, self.K - self.model.n_motifs), dtype=bool)
        return np.concatenate([~self.support, background], axis=1)

    def confine(self, H: Array) -> Array:
        """Zero where activations may not differ from it, or cannot be learnt (changes H)."""
        H[~(self.allowed & self.learnable[1])] = 0
        if self.support is not None:
            H[:, : self.model.n_motifs][~self.support] = 0
        return H

    @property
    def multiplications(self) -> float:
        """Of one pass over the data, counted as those of a matrix product."""
        return multiplications(self.T, self.N, self.K, self.L, self.data.n_entries)

    @property
    def block_rows(self) -> int:
        """Rows of a time block, at most."""
        return self.data.block_rows(self.L * self.K)

    def groups(self) -> list[list[Block]]:
        """The blocks of the data, in groups."""
        return self._once("groups", lambda: self.data.groups(self.L * self.K))

    @property
    def hidden(self) -> list[list[HiddenBlock]]:
        """The missing entries in groups of blocks, as the data's; [] if there are none."""
        return self._once("hidden", self._hidden)

    @property
    def learnable(self) -> tuple[Mask, Mask]:
        """Features (N,) with an observed entry, and starts (T,) of a motif that meets one."""
        return self._once("learnable", self._learnable)

    def _once(self, name: str, make: Any) -> Any:
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def scaled_block(self, segment: Segment, a: int, b: int) -> Array:
        """Rows a to b of a segment, in the working scale and weighed (a copy only if need be)."""
        block = segment.rows(a, b)
        if self.scale != 1.0:
            block = block * block.dtype.type(self.scale)
        return block if self.weights is None else block * self.weights

    def _hidden(self) -> list[list[HiddenBlock]]:
        if all(segment.observed is None for segment in self.segments):
            return []
        groups = [[hidden_block(*block) for block in group] for group in self.groups()]
        found = [[block for block in group if block is not None] for group in groups]
        return [group for group in found if group]

    def _learnable(self) -> tuple[Mask, Mask]:
        features, starts = np.zeros(self.N, dtype=bool), np.zeros(self.T, dtype=bool)
        for segment in self.segments:
            if segment.observed is None:
                features[:] = True
                starts[segment.start : segment.stop] = True
                continue
            features |= segment.observed.any(axis=0)
            rows = np.cumsum(np.r_[0, segment.observed.any(axis=1)])
            ends = np.minimum(np.arange(len(rows) - 1) + self.L, len(rows) - 1)
            starts[segment.start : segment.stop] = rows[ends] > rows[:-1]
        return features, starts


def multiplications(T: int, N: int, K: int, L: int, n_entries: int | None = None) -> float:
    """Of one pass over data of this shape; ``n_entries`` where it is sparse."""
    cost = float(T) * N if n_entries is None else _SPARSE_COST * (n_entries + T)
    return cost * K * L


def hidden_block(segment: Segment, a: int, b: int) -> HiddenBlock | None:
    """The missing entries of a block, if there are any."""
    if segment.observed is None:
        return None
    missing = ~segment.observed[a:b]
    first = np.concatenate([[0], np.cumsum(np.count_nonzero(missing, axis=1))])
    if first[-1] == 0:
        return None
    columns = None
    if first[-1] <= _FEW * missing.size:
        columns = np.nonzero(missing)[1].astype(np.int32)
    return HiddenBlock(segment, a, b, first, columns)
