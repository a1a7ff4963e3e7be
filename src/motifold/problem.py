"""What is to be solved: the data, its segments, the boundary and the penalties, all frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Boundary = Literal["zero", "valid"]

# Bytes of one time block of X, of H̃ and of X̂: a few of them fit a core's second-level cache.
_BLOCK_BYTES = 2**21
# Rows of a block: not fewer, for the matrix product's sake; and the data gives several blocks
# where they are not too short, for the threads' sake.
_LEAST_ROWS, _SHORT, _BLOCKS = 128, 512, 16
# Sums over blocks are taken in groups, each in one thread and in the data's precision: at least
# so many groups, and at most so many blocks in one.
_GROUPS, _BLOCKS_OF_A_GROUP = 16, 16


@dataclass(frozen=True)
class Penalties:
    """Weights of the penalties, one per component: l1·ΣF + ½·l2·ΣF² for each factor F, all (K,)."""

    l1_W: Array
    l2_W: Array
    l1_H: Array
    l2_H: Array

    @classmethod
    def from_scalars(
        cls, K: int, l1_W: float = 0, l2_W: float = 0, l1_H: float = 0, l2_H: float = 0
    ) -> Penalties:
        """The same weight for every component."""
        return cls(*(np.full(K, float(weight)) for weight in (l1_W, l2_W, l1_H, l2_H)))

    def rescaled(self, scale: float) -> Penalties:
        """The penalties of scale²·J when H is counted in units of 1/scale (W unchanged)."""
        with np.errstate(over="ignore", invalid="ignore"):
            factors = (scale * scale, scale * scale, scale, 1.0)
            weights = (self.l1_W, self.l2_W, self.l1_H, self.l2_H)
            largest = 1e30  # a weight this large means "zero", and is finite in float32
            return Penalties(
                *(
                    np.where(w > 0, np.minimum(w * f, largest), 0.0)
                    for w, f in zip(weights, factors, strict=True)
                )
            )

    def permuted(self, order: np.ndarray) -> Penalties:
        """The same penalties with the components in another order."""
        weights = (self.l1_W, self.l2_W, self.l1_H, self.l2_H)
        return Penalties(*(weight[order] for weight in weights))

    def value(self, W: Array, H: Array) -> float:
        """The penalties' part of the objective; W (N, L, K), H (T, K)."""
        return _penalty(W, self.l1_W, self.l2_W) + _penalty(H, self.l1_H, self.l2_H)


def _penalty(F: Array, l1: Array, l2: Array) -> float:
    if not (l1.any() or l2.any()):
        return 0.0
    columns = F.reshape(-1, F.shape[-1]).astype(np.float64, copy=False)
    return float(l1 @ columns.sum(axis=0) + 0.5 * l2 @ np.einsum("ik,ik->k", columns, columns))


@dataclass(frozen=True)
class Segment:
    """One unbroken stretch of recording and its place in the stacked activations.

    Attributes
    ----------
    X : (T_i, N) array, in whatever memory order it came
    start, stop : rows of the stacked H that belong to it
    stop_active : activations from this row on are held at zero (boundary "valid")
    """

    X: Array
    start: int
    stop: int
    stop_active: int


@dataclass(frozen=True)
class Problem:
    """One factorisation problem, in the working scale.

    The solvers see ``scale · X``, with ``scale`` a power of two that brings extreme data into
    range. X itself is never scaled: the statistics are. Activations of the working problem are
    ``scale`` times those of the data, motifs are the same.

    Attributes
    ----------
    segments : the data, in order; X of shape (T_i, N) each
    K, L : number of motifs, number of lags
    boundary : "zero" (motifs are cut off at a segment's end) or "valid" (none is)
    penalties : in the working scale
    scale : power of two
    """

    segments: tuple[Segment, ...]
    K: int
    L: int
    boundary: Boundary
    penalties: Penalties
    scale: float = 1.0

    @classmethod
    def from_arrays(
        cls,
        arrays: list[Array],
        K: int,
        L: int,
        boundary: Boundary = "zero",
        penalties: Penalties | None = None,
    ) -> Problem:
        """Build a problem from the checked segments and the penalties in the data's scale."""
        scale = _power_of_two_scale(arrays)
        penalties = penalties or Penalties.from_scalars(K)
        segments = _stacked(arrays, L, boundary)
        return cls(segments, K, L, boundary, penalties.rescaled(scale), scale)

    def of_pieces(self, pieces: list[tuple[Segment, int, int]]) -> Problem:
        """The same problem for stretches (segment, a, b) of the data only, each a segment."""
        arrays = [segment.X[a:b] for segment, a, b in pieces]
        return replace(self, segments=_stacked(arrays, self.L, self.boundary))

    @property
    def N(self) -> int:
        """Number of features."""
        return self.segments[0].X.shape[1]

    @property
    def T(self) -> int:
        """Number of time bins, all segments together."""
        return self.segments[-1].stop

    @property
    def dtype(self) -> np.dtype:
        """Precision of the data, the factors and the statistics."""
        return self.segments[0].X.dtype

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        """(segments, 3): start, end of the free activations, end of each segment."""
        return np.array([(s.start, s.stop_active, s.stop) for s in self.segments], dtype=np.int64)

    @cached_property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """(T,): where an activation may differ from zero."""
        allowed = np.zeros(self.T, dtype=bool)
        for start, stop_active, _ in self.bounds:
            allowed[start:stop_active] = True
        return allowed

    @cached_property
    def kept(self) -> dict[str, Any]:
        """A place for what the data passes keep between iterations."""
        return {}

    @cached_property
    def squared_norm(self) -> float:
        """‖scale·X‖², accumulated in float64."""
        return sum(
            float(np.vdot(block, block))
            for segment, a, b in self.blocks()
            for block in [self.scaled_block(segment, a, b).astype(np.float64, copy=False)]
        )

    def blocks(self) -> Iterator[tuple[Segment, int, int]]:
        """Yield (segment, a, b), time blocks that cover every segment; a and b count in it.

        The blocks depend on the shape of the problem only, so that sums over them, taken in this
        order, are the same bit by bit whatever the number of threads.
        """
        widest = max(self.N, self.L * self.K)
        fitting = _BLOCK_BYTES // (widest * self.dtype.itemsize)
        rows = max(_LEAST_ROWS, min(fitting, max(_SHORT, -(-self.T // _BLOCKS))))
        for segment in self.segments:
            length = segment.stop - segment.start
            for a in range(0, length, rows):
                yield segment, a, min(a + rows, length)

    def groups(self) -> list[list[tuple[Segment, int, int]]]:
        """All blocks, in runs of about equal length."""
        blocks = list(self.blocks())
        n_groups = min(len(blocks), max(_GROUPS, len(blocks) // _BLOCKS_OF_A_GROUP))
        ends = [len(blocks) * (i + 1) // n_groups for i in range(n_groups)]
        return [blocks[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def scaled_block(self, segment: Segment, a: int, b: int) -> Array:
        """Rows a to b of a segment in the working scale (a copy only if the scale is not 1)."""
        block = segment.X[a:b]
        return block if self.scale == 1.0 else block * block.dtype.type(self.scale)


def _stacked(arrays: list[Array], L: int, boundary: Boundary) -> tuple[Segment, ...]:
    """The arrays as segments, one after the other."""
    segments = []
    start = 0
    for X in arrays:
        stop = start + X.shape[0]
        stop_active = stop if boundary == "zero" else max(start, stop - L + 1)
        segments.append(Segment(X, start, stop, stop_active))
        start = stop
    return tuple(segments)


def _power_of_two_scale(arrays: list[Array]) -> float:
    """1 for ordinary data; else the power of two that brings the largest entry near 1.

    Statistics are products of up to four factors of the data's size: outside this range they
    would overflow or lose their precision.
    """
    largest = max((float(X.max()) for X in arrays if X.size), default=0.0)
    ordinary = 2.0**60 if arrays[0].dtype == np.float64 else 2.0**12
    if largest == 0.0 or 1 / ordinary <= largest <= ordinary:
        return 1.0
    finfo = np.finfo(arrays[0].dtype)
    exponent = -int(np.frexp(largest)[1])
    return float(2.0 ** min(exponent, finfo.maxexp - 2))
