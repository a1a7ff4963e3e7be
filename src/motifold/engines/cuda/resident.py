"""The recording as a device sees it: in its memory, or streamed from the host in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from motifold.data.recording import Segment
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import free_cores
from motifold.engines.cuda import tiles as cuts
from motifold.engines.cuda.device import Device
from motifold.engines.cuda.sources import DeviceSource
from motifold.model import Array

# Bytes of a block's windows, or of its X. Products of a few long blocks are faster than those of
# many that would stay in the GPU's second-level cache. Those that are streamed wait for a copy.
_BLOCK_BYTES, _STREAMED_BYTES, _LEAST_ROWS = 2**28, 2**26, 1024
# Of a block of X on its way to stay there: pinned memory takes time to make.
_CARRIED_BYTES = 2**24
# Bytes that a thread reads of an array at once, and threads at most: on an H200's host one of them
# fills 7 GB/s of pinned memory, eight 47, and the GPU takes 55.
_READ_BYTES, _READERS = 2**22, 8


@dataclass(frozen=True)
class Block:
    """Rows a to b of the recording.

    Attributes
    ----------
    X : (b − a, N), in the working scale
    observed : (b − a, N), or None
    """

    a: int
    b: int
    X: Any
    observed: Any = None


class Resident:
    """A problem's data on a device.

    Attributes
    ----------
    device : where it is
    problem : whose data
    streamed : whether X stays on the host, and comes in blocks
    """

    def __init__(self, device: Device, problem: Problem, X: Any = None) -> None:
        self.device, self.problem = device, problem
        L = problem.L
        if np.iinfo(np.uint16).max < L:
            raise ValueError(f"n_lags={L} is too long for a GPU, whose limit is 65535.")
        self._hides = any(segment.observed is not None for segment in problem.segments)
        self._X = X
        self.streamed = X is None and not self._fits()
        if self._X is None and not self.streamed:
            self._X = self._carried()

    T = property(lambda self: self.problem.T)
    N = property(lambda self: self.problem.N)
    dtype = property(lambda self: self.problem.dtype)

    def _fits(self) -> bool:
        """Whether X (and what is observed of it) may stay on the device."""
        room = self.device.room()
        per_entry = self.dtype.itemsize + self._hides
        return room is None or self.T * self.N * per_entry <= room or self._there is not None

    @cached_property
    def _there(self) -> Any:
        """X itself, where all of it is one array of the device already."""
        sources = [segment.source for segment in self.problem.segments]
        if not all(isinstance(source, DeviceSource) for source in sources):
            return None
        if len(sources) == 1:
            return sources[0].array
        whole = sources[0].whole
        cut = whole is not None and all(source.whole is whole for source in sources)
        return whole if cut and len(whole) == self.T else None

    def _carried(self) -> Any:
        """X on the device, segments stacked, in the working scale."""
        device, scale = self.device, self.problem.scale
        if self._there is not None and scale == 1:
            return self._there
        X = device.xp.empty((self.T, self.N), dtype=self.dtype)
        segments = self.problem.segments
        if not any(isinstance(segment.source, DeviceSource) for segment in segments):
            rows = max(1, _CARRIED_BYTES // (self.N * self.dtype.itemsize))
            ranges = [(a, min(a + rows, self.T)) for a in range(0, self.T, rows)]
            blocks = device.streamed(ranges, self._read, self.N, self.dtype)
            for (a, b), block in zip(ranges, blocks, strict=True):
                X[a:b] = block
            return X
        for segment in segments:
            target = X[segment.start : segment.stop]
            if isinstance(segment.source, DeviceSource):
                target[...] = segment.source.array
            else:
                device.copy_in(target, segment.rows(0, len(segment)))
        if scale != 1:
            X *= self.dtype.type(scale)
        return X

    # --- rows and their segments --------------------------------------------------------------

    @cached_property
    def age(self) -> Any:
        """(T,): bins since the start of each row's segment, at most L−1."""
        return self.device.put(self._age.astype(np.uint16))

    @property
    def _age(self) -> Array:
        edges, ids = self.problem.data.layout.edges, self.problem.data.layout.ids
        return np.minimum(np.arange(self.T) - edges[ids], self.problem.L - 1)

    @cached_property
    def cut_off(self) -> Any:
        """Rows less than L bins from the start or the end of their segment."""
        L, left = self.problem.L, self.problem.data.layout.left
        return self.device.put(np.flatnonzero((self._age < L - 1) | (left < L)), np.int64)

    @cached_property
    def left(self) -> Any:
        """(T,): bins to its end, at most L."""
        left = np.minimum(self.problem.data.layout.left, self.problem.L)
        return self.device.put(left.astype(np.uint16))

    @cached_property
    def ends(self) -> Any:
        """(segments,): the last row of each."""
        return self.device.put(self.problem.bounds[:, 2] - 1, np.int64)

    @cached_property
    def allowed(self) -> Any:
        """(T, 1), one where a motif may start, else zero."""
        return self.device.put(self.problem.allowed[:, None], self.dtype)

    @cached_property
    def learnable(self) -> Any:
        """(T, 1), one where a motif meets anything that is observed."""
        return self.device.put(self.problem.learnable[1][:, None], self.dtype)

    @cached_property
    def free(self) -> Any:
        """(T, K), one where an activation may differ from zero and can be learnt."""
        problem = self.problem
        free = problem.confine(np.ones((problem.T, problem.K), dtype=self.dtype))
        return self.device.put(free)

    @cached_property
    def forbidden(self) -> Any:
        """(T, K) of bool: where there is to be no activation; None: nowhere."""
        forbidden = self.problem.forbidden
        return None if forbidden is None else self.device.put(forbidden)

    @cached_property
    def weights(self) -> Any:
        """(N, 1), of the features; None where they are one."""
        weights = self.problem.weights
        return None if weights is None else self.device.put(weights[:, None], self.dtype)

    @cached_property
    def tiles(self) -> cuts.Tiles:
        """The cut of time that all warps work on at once."""
        return self._cut(cuts.tile_length(self.T, self.problem.L))

    @cached_property
    def segments(self) -> cuts.Tiles:
        """One tile for each segment: the published order."""
        return self._cut(self.T)

    def _cut(self, length: int) -> cuts.Tiles:
        problem = self.problem
        return cuts.cut(problem.bounds, problem.L, problem.K, length, self.device.put)

    # --- blocks ---------------------------------------------------------------------------------

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """The rows of every block, which depend on the shape of the problem only."""
        problem = self.problem
        width = max(problem.N, problem.L * problem.K) * self.dtype.itemsize
        size = _STREAMED_BYTES if self.streamed else _BLOCK_BYTES
        if self.streamed:
            size = min(size, max(1, (self.device.room() or size) // 4))
        rows = max(1 if self.streamed else _LEAST_ROWS, size // width)
        return [(a, min(a + rows, self.T)) for a in range(0, self.T, rows)]

    def blocks(self, *, whole: bool = False) -> Iterator[Block]:
        """All of X, block by block; one is valid until the next is asked for.

        ``whole``: as one, if all of it is there.
        """
        if whole and not self.streamed:
            yield Block(0, self.T, self._X, self._observed)
            return
        if not self.streamed:
            for a, b in self.ranges:
                yield Block(a, b, self._X[a:b], self._observed_rows(a, b))
            return
        blocks = self.device.streamed(self.ranges, self._read, self.N, self.dtype)
        masks = None
        if self._hides:
            kind = np.dtype(np.bool_)
            masks = self.device.streamed(self.ranges, self._read_mask, self.N, kind)
        for (a, b), X in zip(self.ranges, blocks, strict=True):
            yield Block(a, b, X, None if masks is None else next(masks))

    def observed_blocks(self) -> Iterator[tuple[int, int, Any]]:
        """What is observed, block by block, without X."""
        if not self.streamed:
            yield from ((a, b, self._observed_rows(a, b)) for a, b in self.ranges)
            return
        kind = np.dtype(np.bool_)
        masks = self.device.streamed(self.ranges, self._read_mask, self.N, kind)
        yield from ((a, b, mask) for (a, b), mask in zip(self.ranges, masks, strict=True))

    def _observed_rows(self, a: int, b: int) -> Any:
        return None if self._observed is None else self._observed[a:b]

    @cached_property
    def _observed(self) -> Any:
        """(T, N), on the device; None if nothing is missing."""
        if not self._hides:
            return None
        observed = self.device.xp.empty((self.T, self.N), dtype=np.bool_)
        for segment in self.problem.segments:
            target = observed[segment.start : segment.stop]
            if segment.observed is None:
                target[...] = True
            else:
                self.device.copy_in(target, segment.observed)
        return observed

    def _read(self, a: int, b: int, out: Array) -> None:
        """Rows of X on the host, in the working scale (changes out)."""
        for segment in self.problem.segments:
            low, high = max(a, segment.start), min(b, segment.stop)
            if low < high:
                self._read_of(segment, low - segment.start, out[low - a : high - a])

    def _read_of(self, segment: Segment, a: int, out: Array) -> None:
        """Rows of a segment from a on; of an array by several threads (changes out)."""

        def part(first: int, last: int) -> None:
            rows = segment.rows(a + first, a + last)
            np.multiply(rows, self.dtype.type(self.problem.scale), out=out[first:last])

        step = max(1, _READ_BYTES // max(1, out[:1].nbytes))
        if segment.array is None or len(out) <= step:
            part(0, len(out))
            return
        firsts = range(0, len(out), step)
        lasts = [min(first + step, len(out)) for first in firsts]
        for _ in self._readers.map(part, firsts, lasts):
            pass  # an error is raised here

    @cached_property
    def _readers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(free_cores(), _READERS), "motifold-reader")

    def _read_mask(self, a: int, b: int, out: Array) -> None:
        for segment in self.problem.segments:
            low, high = max(a, segment.start), min(b, segment.stop)
            if low < high:
                seen = segment.observed
                rows = True if seen is None else seen[low - segment.start : high - segment.start]
                out[low - a : high - a] = rows

    def weighed(self, problem: Problem) -> Resident:
        """The same data for a problem that weighs features."""
        return Resident(self.device, problem, self._X)

    def part(self, problem: Problem, rows: list[tuple[int, int]]) -> Resident:
        """Another problem's data, which is these rows."""
        X = None
        if not self.streamed:
            X = self.device.xp.concatenate([self._X[a:b] for a, b in rows])
        return Resident(self.device, problem, X)
