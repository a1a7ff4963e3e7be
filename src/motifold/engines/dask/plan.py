"""How a recording is cut into shards, by its shape alone, and in which order they are summed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from motifold.data import Segments
from motifold.model import Array, Boundary
from motifold.solvers.tiles import Tiles, cut, some_of

# Shards: so many, or as many as have these bytes of data each, up to a limit; none shorter than so
# many rows, or its calls would take longer than its products.
_SHARDS, _BYTES, _MOST, _LEAST_ROWS = 16, 2**26, 1024, 4096

Node = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """Rows a to b of a segment, counted in it; the halo of the shard is among them."""

    segment: int
    a: int
    b: int


@dataclass(frozen=True)
class Shard:
    """A stretch of time: rows a to b of the stacked activations, and what it sees around them.

    Attributes
    ----------
    left, right : rows of the halo before a and after b, in the same segments
    pieces : of segments, with the halo
    ends : for every piece, whether it reaches the end of its segment
    tiles : of its own rows, counted from a
    reach : rows at either end that neighbours are told of
    """

    index: int
    a: int
    b: int
    left: int
    right: int
    pieces: tuple[Piece, ...]
    ends: tuple[bool, ...]
    tiles: Tiles
    reach: int

    @property
    def own(self) -> slice:
        """Its own rows among those with the halo."""
        return slice(self.left, self.left + self.b - self.a)

    @property
    def seen(self) -> slice:
        """Rows of the stacked activations, with the halo."""
        return slice(self.a - self.left, self.b + self.right)


@dataclass(frozen=True)
class Plan:
    """All shards; neighbours that share a segment share a seam of L−1 bins.

    Attributes
    ----------
    joined : for every shard, whether the next one goes on in the same segment
    """

    shards: tuple[Shard, ...]
    joined: tuple[bool, ...]

    @property
    def T(self) -> int:
        """Rows of all together."""
        return self.shards[-1].b


def number_of_shards(T: int, N: int, itemsize: int) -> int:
    """How many shards data of this shape has: never a question of how many workers there are."""
    wanted = min(max(_SHARDS, T * N * itemsize // _BYTES), _MOST)
    return max(1, min(wanted, T // _LEAST_ROWS))


@dataclass(frozen=True)
class Cutting:
    """What the cut depends on beside the shape of the data.

    Attributes
    ----------
    L, K : lags, and motifs that are swept
    wide : whether activations are summed over the bins around before they are multiplied with the
        data: a halo is twice the L−1 rows then that products with motifs need
    n_shards : None: as many as the shape asks for
    """

    L: int
    K: int
    boundary: Boundary
    wide: bool
    n_shards: int | None = None


def plan_of(cutting: Cutting, lengths: list[int], n_shards: int) -> Plan:
    """Shards of whole tiles, about equally long."""
    L, K = cutting.L, cutting.K
    reach = (L - 1) * (2 if cutting.wide else 1)
    layout = Segments(lengths)
    edges = layout.edges
    tiles = cut(layout.bounds_for(L, cutting.boundary), L, K)
    begins, ends = tiles.table[:, 0], tiles.table[:, 2]
    T = int(edges[-1])
    cuts = np.searchsorted(ends, T * np.arange(1, n_shards + 1) // n_shards, side="left") + 1
    cuts = np.unique(np.concatenate([[0], np.minimum(cuts, len(ends))]))
    shards, joined = [], []
    for index, (first, last) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        a, b = int(begins[first]), int(ends[last - 1])
        low = int(np.searchsorted(edges, a, side="right")) - 1
        high = int(np.searchsorted(edges, b, side="left")) - 1
        left, right = min(reach, a - int(edges[low])), min(reach, int(edges[high + 1]) - b)
        pieces, whole = [], []
        for i in range(low, high + 1):
            start, stop = int(edges[i]), int(edges[i + 1])
            piece = Piece(i, max(a - left, start) - start, min(b + right, stop) - start)
            pieces.append(piece)
            whole.append(b >= stop)
        mine = some_of(tiles, first, last, L, K)
        shards.append(Shard(index, a, b, left, right, tuple(pieces), tuple(whole), mine, reach))
        joined.append(b < int(edges[high + 1]))
    return Plan(tuple(shards), tuple(joined))


def merged(nodes: Mapping[Node, tuple[Array, ...]], n: int) -> dict[Node, tuple[Array, ...]]:
    """Sums over shards by a binary tree, as far as its nodes are there.

    Node (level, i) is the sum over shards i·2^level to (i+1)·2^level of n. Whoever adds up what:
    every number is the sum of the same two others, so that no bit depends on who has which shard.
    """
    level, rest, done = 0, dict(nodes), {}
    while rest:
        count = -(-n // 2**level)
        here = {i: arrays for (found, i), arrays in rest.items() if found == level}
        rest = {node: arrays for node, arrays in rest.items() if node[0] > level}
        for i, arrays in sorted(here.items()):
            if count == 1 or (i ^ 1 < count and i ^ 1 not in here):
                done[level, i] = arrays
            elif i ^ 1 >= count:
                rest[level + 1, i // 2] = arrays
            elif i % 2 == 0:
                pairs = zip(arrays, here[i + 1], strict=True)
                rest[level + 1, i // 2] = tuple(first + second for first, second in pairs)
        level += 1
    return done
