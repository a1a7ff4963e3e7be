"""What is to be solved: the data, its segments, the boundary and the penalties, all frozen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Boundary = Literal["zero", "valid"]
Mask = npt.NDArray[np.bool_]
Masks = Sequence[Mask | None] | None

# Bytes of one time block of X, of H̃ and of X̂: a few of them fit a core's second-level cache.
_BLOCK_BYTES = 2**21
# Rows of a block: not fewer, for the matrix product's sake; and the data gives several blocks
# where they are not too short, for the threads' sake.
_LEAST_ROWS, _SHORT, _BLOCKS = 128, 512, 16
# Sums over blocks are taken in groups, each in one thread and in the data's precision: at least
# so many groups, and at most so many blocks in one.
_GROUPS, _BLOCKS_OF_A_GROUP = 16, 16
# Missing entries of a block are listed up to this share of it; above, they are computed with the
# others, by matrix products.
_FEW = 1 / 6


@dataclass(frozen=True)
class Penalties:
    """Weights of the penalties.

    Attributes
    ----------
    l1_W, l2_W, l1_H, l2_H : (K,), one per component: l1·ΣF + ½·l2·ΣF² for each factor F
    x_ortho, ortho_H, ortho_W : of what couples different components, see ``docs/theory``
    """

    l1_W: Array
    l2_W: Array
    l1_H: Array
    l2_H: Array
    x_ortho: float = 0.0
    ortho_H: float = 0.0
    ortho_W: float = 0.0

    @classmethod
    def from_scalars(
        cls,
        K: int,
        l1_W: float = 0,
        l2_W: float = 0,
        l1_H: float = 0,
        l2_H: float = 0,
        *,
        x_ortho: float = 0,
        ortho_H: float = 0,
        ortho_W: float = 0,
    ) -> Penalties:
        """The same weight for every component."""
        on_entries = (np.full(K, float(weight)) for weight in (l1_W, l2_W, l1_H, l2_H))
        W1, W2, H1, H2 = on_entries
        return cls(W1, W2, H1, H2, float(x_ortho), float(ortho_H), float(ortho_W))

    def rescaled(self, scale: float) -> Penalties:
        """The penalties of scale²·J when H is counted in units of 1/scale (W unchanged)."""
        factors = {
            **dict.fromkeys(("l1_W", "l2_W", "ortho_W"), scale * scale),
            "l1_H": scale,
            **dict.fromkeys(("l2_H", "x_ortho", "ortho_H"), 1.0),
        }
        largest = 1e30  # a weight this large means "zero", and is finite in float32
        weights: dict[str, Any] = {}
        with np.errstate(over="ignore", invalid="ignore"):
            for name, factor in factors.items():
                weight = getattr(self, name)
                weights[name] = np.where(weight > 0, np.minimum(weight * factor, largest), 0.0)[()]
        return Penalties(**weights)

    @property
    def couple(self) -> bool:
        """Whether there are penalties on what different components share."""
        return bool(self.x_ortho or self.ortho_H or self.ortho_W)

    def uncoupled(self) -> Penalties:
        """The penalties of each component by itself."""
        return replace(self, x_ortho=0.0, ortho_H=0.0, ortho_W=0.0)

    def permuted(self, order: np.ndarray) -> Penalties:
        """The same penalties with the components in another order, or for some of them only."""
        names = ("l1_W", "l2_W", "l1_H", "l2_H")
        return replace(self, **{name: getattr(self, name)[order] for name in names})

    def value(self, W: Array, H: Array) -> float:
        """The part of the objective that needs the factors alone; W (N, L, K), H (T, K)."""
        value = _penalty(W, self.l1_W, self.l2_W) + _penalty(H, self.l1_H, self.l2_H)
        if self.ortho_W:
            profiles = W.sum(axis=1, dtype=np.float64)
            value += 0.5 * self.ortho_W * float(np.vdot(sum_of_others(profiles), profiles))
        return value


def sum_of_others(F: Array) -> Array:
    """For each component (the last axis) the sum of all others."""
    K = F.shape[-1]
    return F @ (1 - np.eye(K, dtype=F.dtype))


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
    observed : (T_i, N) of bool, or None if nothing is missing; X is zero where it is False
    """

    X: Array
    start: int
    stop: int
    stop_active: int
    observed: npt.NDArray[np.bool_] | None = None


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
    fixed : (K,) of bool, motifs that are not learnt; None if all are
    """

    segments: tuple[Segment, ...]
    K: int
    L: int
    boundary: Boundary
    penalties: Penalties
    scale: float = 1.0
    fixed: npt.NDArray[np.bool_] | None = None

    @classmethod
    def from_arrays(
        cls,
        arrays: list[Array],
        K: int,
        L: int,
        boundary: Boundary = "zero",
        penalties: Penalties | None = None,
        masks: Masks = None,
    ) -> Problem:
        """Build a problem from the checked segments and the penalties in the data's scale.

        ``masks``: for each segment what is observed, or None; arrays are zero elsewhere.
        """
        scale = _power_of_two_scale(arrays)
        penalties = penalties or Penalties.from_scalars(K)
        segments = _stacked(arrays, L, boundary, masks)
        return cls(segments, K, L, boundary, penalties.rescaled(scale), scale)

    def of_pieces(self, pieces: list[tuple[Segment, int, int]]) -> Problem:
        """The same problem for stretches (segment, a, b) of the data only, each a segment."""
        arrays = [segment.X[a:b] for segment, a, b in pieces]
        masks = [s.observed if s.observed is None else s.observed[a:b] for s, a, b in pieces]
        return replace(self, segments=_stacked(arrays, self.L, self.boundary, masks))

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

    @cached_property
    def hidden(self) -> list[list[HiddenBlock]]:
        """The missing entries in groups of blocks, as the data's; [] if there are none."""
        if all(segment.observed is None for segment in self.segments):
            return []
        groups = [[_hidden_block(*block) for block in group] for group in self.groups()]
        found = [[block for block in group if block is not None] for group in groups]
        return [group for group in found if group]

    @cached_property
    def observed_share(self) -> float:
        """Share of the entries that are observed."""
        masks = [segment.observed for segment in self.segments if segment.observed is not None]
        missing = sum(mask.size - int(np.count_nonzero(mask)) for mask in masks)
        return 1.0 - missing / (self.N * self.T)

    @cached_property
    def seen(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Features (N,) with an observed entry, and starts (T,) of a motif that meets one."""
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


def _hidden_block(segment: Segment, a: int, b: int) -> HiddenBlock | None:
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


def _stacked(
    arrays: list[Array], L: int, boundary: Boundary, masks: Masks = None
) -> tuple[Segment, ...]:
    """The arrays as segments, one after the other."""
    segments = []
    start = 0
    for X, observed in zip(arrays, masks or [None] * len(arrays), strict=True):
        stop = start + X.shape[0]
        stop_active = stop if boundary == "zero" else max(start, stop - L + 1)
        segments.append(Segment(X, start, stop, stop_active, observed))
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
