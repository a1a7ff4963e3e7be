"""The kernels in CUDA C: their sources, and how each is launched.

A module is compiled for K, L and a precision, so that loops over them are unrolled; CuPy keeps the
machine code on disk. Everything is launched on the current stream, and nothing waits.

Several starts lie side by side: their arrays have one more axis, in front, and the grid of a launch
a second dimension. What they share (rows of the recording, weights) has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from motifold.engines.cuda.tiles import Tiles
from motifold.solvers import Inner

OF_EVERY_FIT = ("passes", "sums", "hals")
SOURCES = (*OF_EVERY_FIT, "direct", "ratios")
# Threads of a block, blocks at most of a loop over entries, entries or rows of a run for sums, and
# bytes of shared memory that every GPU grants without being asked.
_THREADS, _BLOCKS, _RUN, _SHARED = 256, 65535, 512, 48 * 1024
_CUT_OFF_TAPS = 2**22  # numbers of a table at most
# Entries of a run in a loop over an array, in long arrays, and from how many on they are.
_SHORT_RUN, _LONG_RUN, _LONG_ARRAY = 2**14, 2**16, 2**26
_WARPS, _LANES = 4, 32
_ROWS_OF_A_WARP = 8  # as passes.cu has it
# Of direct.cu: registers for the lags of some motifs, warps that keep a large GPU busy, and rows of
# a run at least.
_GROUP, _UNITS, _SHORTEST_RUN = 100, 1584, 64
# Rows below which a gradient in shared memory would keep few blocks busy, and rows from which on
# its threads have several each.
_SMALL, _LONG = 2**15, 2**18
_NULL = np.uint64(0)


def source(name: str, K: int, L: int, dtype: np.dtype) -> str:
    """The text of a module."""
    folder = files("motifold.engines.cuda")
    real = "float" if dtype == np.float32 else "double"
    head = f"#define REAL {real}\n#define K {K}\n#define L {L}\n"
    parts = ("common.cuh", f"{name}.cu")
    return head + "\n".join(folder.joinpath(part).read_text("utf-8") for part in parts)


class Launcher(Protocol):
    """What runs a kernel of the sources above."""

    def __call__(
        self,
        module: str,
        kernel: str,
        blocks: tuple[int, int],
        threads: int,
        args: Sequence[Any],
        shared: int,
    ) -> None:
        """Launch ``kernel`` in blocks × starts; arguments are device arrays and NumPy scalars."""


class Compiled:
    """All kernels for K components and L lags; ``twin.Twin`` says what each does.

    Parameters
    ----------
    K, L, dtype : what they are compiled for
    xp : the namespace of the arrays
    launch : CuPy's, or whatever else runs the sources
    """

    def __init__(self, K: int, L: int, dtype: np.dtype, xp: Any, launch: Launcher) -> None:
        self.K, self.L, self.dtype = K, L, np.dtype(dtype)
        self._xp, self._launch = xp, launch
        self._moved: Any = None  # what sweeps leave behind for the next: kept, so as not to be made
        self._judged: Any = None

    @property
    def buffers(self) -> Any:
        """Memory that launches have been given, and may be given again."""
        return self._moved, self._judged

    def _each(self, module: str, kernel: str, n: int, *args: Any, starts: int = 1) -> None:
        """One thread for each of n entries, or one for several."""
        blocks = max(1, min(_BLOCKS, -(-n // _THREADS)))
        self._launch(module, kernel, (blocks, starts), _THREADS, args, 0)

    def _real(self, value: float) -> Any:
        return self.dtype.type(value)

    # --- passes -----------------------------------------------------------------------------

    def windows(self, H: Any, age: Any, first: int, n: int, out: Any, rows: Any = None) -> None:
        """Windows of H."""
        chosen = _NULL if rows is None else rows
        args = H, age, chosen, np.int64(H.shape[-2]), np.int64(first), np.int64(n), out
        size = _LANES * -(-n // _ROWS_OF_A_WARP)
        self._each("passes", "windows", size, *args, starts=_starts(H, 2))

    def add_lags(self, Y: Any, left: Any, first: int, n: int, C: Any) -> None:
        """Lags put back in their places."""
        size = (n + self.L) * self.K
        args = Y, left, np.int64(C.shape[-2]), np.int64(first), np.int64(n), C
        self._each("passes", "add_lags", size, *args, starts=_starts(C, 2))

    def gradient(
        self, H: Any, C: Any, A: Any, E: Any, age: Any, left: Any, cut_off: Any, out: Any
    ) -> None:
        """A∗H − C, or A∗H."""
        C = _NULL if C is None else C
        K, T = self.K, H.shape[-2]
        most = 4 if K <= 8 else 2 if K <= 16 else 1  # as passes.cu has it
        together = most if T >= _LONG else 1
        threads = _THREADS // 2
        shared = (threads * together + 2 * self.L - 2) * (K | 1) * self.dtype.itemsize
        main, alone, n = -(-T // (threads * together)), cut_off, len(cut_off)
        if shared > _SHARED or T < _SMALL:  # a warp for each entry
            main, shared, alone, n = 0, 0, _NULL, T
        warps = threads // _LANES
        blocks = main + -(-n * K // warps)
        if blocks:
            sizes = alone, np.int64(n), np.int32(main), np.int32(together)
            args = H, C, A, E, age, left, np.int64(T), *sizes, out
            self._launch("passes", "gradient", (blocks, _starts(H, 2)), threads, args, shared)

    def smoothed(self, F: Any, age: Any, left: Any, out: Any) -> None:
        """Q∗F."""
        self._each("passes", "smoothed", F.size, F, age, left, np.int64(len(F)), out)

    def diagonal_sums(self, S: Any) -> None:
        """Sums along diagonals of blocks."""
        self._each("passes", "diagonal_sums", self.L * self.K**2, S, starts=_starts(S, 4))

    def taps_of(self, E: Any, A: Any) -> None:
        """The taps of every motif."""
        self._each("passes", "taps_of", self.L * self.K**2, E, A, starts=_starts(A, 3))

    def extrapolate(self, now: Any, before: Any, beta: float, out: Any) -> None:
        """The point beyond, cut off at zero."""
        args = now, before, self._real(beta), np.int64(now.size), out
        self._each("passes", "extrapolate", now.size, *args)

    # --- passes without cuBLAS --------------------------------------------------------------

    def direct_products(self, X: Any, H: Any, left: Any, first: int, out: Any) -> None:
        """P of rows of X."""
        n, N = X.shape
        group = min(self.K, max(1, _GROUP // self.L))  # as direct.cu has it
        alike = -(-N // _LANES) * -(-self.K // group)
        low = max(0, first - self.L + 1)
        runs, step = self._runs(first + n - low, alike)
        parts = self._xp.empty((runs, self.L * self.K, N), dtype=self.dtype)
        sizes = np.int64(first), np.int64(n), np.int32(N), np.int32(runs), np.int32(step)
        blocks = -(-runs * alike // _WARPS), 1
        self._launch("direct", "lag_products", blocks, 128, (X, H, left, *sizes, parts), 0)
        blocks = self.L * self.K * -(-N // _LANES), 1
        args = parts, np.int32(runs), np.int32(N), out
        self._launch("direct", "sum_runs", blocks, _THREADS, args, 0)

    def direct_correlation(self, X: Any, V: Any, left: Any, first: int, C: Any) -> None:
        """What rows of X add to C."""
        n, N = X.shape
        low = max(0, first - self.L + 1)
        args = X, V, left, np.int64(first), np.int64(n), np.int32(N), C
        self._launch("direct", "correlate", (-(-(first + n - low) // 32), 1), 128, args, 0)

    def direct_residual(
        self, X: Any, observed: Any, V: Any, H: Any, age: Any, first: int, out: Any
    ) -> None:
        """‖X − X̂‖² of rows of X."""
        n, N = X.shape
        chunks = -(-N // _LANES)
        runs, step = self._runs(n, chunks)
        blocks = -(-runs * chunks // _WARPS)
        parts = self._xp.empty((blocks, 1))
        seen = _NULL if observed is None else observed
        sizes = np.int64(first), np.int64(n), np.int32(N), np.int32(runs), np.int32(step)
        args = X, seen, V, H, age, *sizes, parts
        self._launch("direct", "residual", (blocks, 1), 128, args, 0)
        self._columns(parts, out)

    def _runs(self, rows: int, alike: int) -> tuple[int, int]:
        """Into how many runs rows are cut, of which each is for so many warps, and rows of one."""
        step = max(_SHORTEST_RUN, -(-rows // max(1, _UNITS // alike)))
        return -(-rows // step), step

    # --- sums -------------------------------------------------------------------------------

    def _columns(self, parts: Any, out: Any) -> None:
        n, m = parts.shape[-2:]
        args = parts, np.int64(n), np.int32(m), out
        self._launch("sums", "column_sums", (m, _starts(parts, 2)), _THREADS, args, 0)

    def sums_H(
        self,
        H: Any,
        g: Any,
        C: Any,
        A: Any,
        E: Any,
        left: Any,
        l1: Any,
        l2: Any,
        n_free: int,
        valid: bool,
        out: Any,
    ) -> None:
        """Sums of the loss and the certificate of H."""
        *several, T, K = H.shape
        runs = -(-T // _RUN)
        parts = self._xp.empty((*several, runs, 4 + 2 * K))
        numbers = np.int32(n_free), np.int32(valid), np.int64(T), np.int32(_RUN)
        args = H, g, C, A, E, left, l1, l2, *numbers, parts
        self._launch("sums", "sums_H", (runs, _starts(H, 2)), _THREADS, args, 0)
        self._columns(parts, out)

    def lag_gram(self, H: Any, age: Any, out: Any) -> None:
        """Products of activations with those of other lags."""
        *several, T, K = H.shape
        run = _RUN if T >= _LONG else _RUN // 4
        runs = -(-T // run)
        parts = self._xp.empty((*several, runs, K * self.L * K))
        args = H, age, np.int64(T), np.int32(run), parts
        self._launch("sums", "lag_gram", (runs, _starts(H, 2)), _THREADS // 2, args, 0)
        self._columns(parts, out)

    def sums_W(self, W: Any, g: Any, B: Any, l1: Any, l2: Any, out: Any) -> None:
        """Sums of the certificate of W."""
        *several, N, _ = W.shape
        parts = self._xp.empty((*several, N, 2))
        args = W, g, B, l1, l2, parts
        self._launch("sums", "sums_W", (N, _starts(W, 2)), _THREADS, args, 0)
        self._columns(parts, out)

    def inner(self, a: Any, b: Any, out: Any) -> None:
        """⟨a, b⟩."""
        self._by_runs("sums", "inner", a.size, out, a, b)

    def distance(self, X: Any, fit: Any, observed: Any, out: Any) -> None:
        """‖X − fit‖² over what is observed."""
        observed = _NULL if observed is None else observed
        self._by_runs("sums", "distance", X.size, out, X, fit, observed)

    def _by_runs(self, module: str, kernel: str, size: int, out: Any, *args: Any) -> None:
        """A sum over an array: over runs of its entries, one for each block, then over these."""
        run = _LONG_RUN if size >= _LONG_ARRAY else _SHORT_RUN
        runs = max(1, -(-size // run))
        parts = self._xp.empty((runs, 1))
        args = *args, np.int64(size), np.int32(run), parts
        self._launch(module, kernel, (runs, 1), _THREADS, args, 0)
        self._columns(parts, out)

    def drop_rounding(self, W: Any, B: Any, eps: float) -> None:
        """Entries that are rounding become zero."""
        args = W, B, self._real(eps), np.int32(W.shape[-2])
        self._launch("sums", "drop_rounding", (self.K, _starts(W, 2)), 4 * _THREADS, args, 0)

    # --- coordinate descent -----------------------------------------------------------------

    def _memory(self, units: int, size: int) -> tuple[int, int, Any]:
        """Warps of a block, bytes of its shared memory, and memory elsewhere if that is too little.

        ``size``: numbers that one unit needs, a tile or a row of W.
        """
        unit = size * self.dtype.itemsize
        warps = min(_WARPS, _SHARED // unit)
        if warps:
            return warps, warps * unit, _NULL
        return _WARPS, 0, self._xp.empty(units * size, dtype=self.dtype)

    def _judges(self, n: int, starts: int) -> tuple[Any, Any, Any]:
        """How far each of n units moved; the first sweep's sum; flags. A sweep begins them anew.

        Of so many starts: each has its own, and ends when it is done.
        """
        if self._moved is None or len(self._moved) < n * starts:
            self._moved = self._xp.empty(n * starts)
        if self._judged is None or len(self._judged[0]) < starts:
            self._judged = self._xp.zeros(starts), self._xp.zeros(2 * starts, dtype=np.int32)
        return self._moved, *self._judged

    def sweep_W(self, W: Any, g: Any, B: Any, l1: Any, l2: Any, inner: Inner) -> None:
        """All sweeps over rows of W; those that are not worth it return at once."""
        (N, M), starts = W.shape[-2:], _starts(W, 2)
        warps, shared, scratch = self._memory(N * starts, 3 * M)
        judges = self._judges(N, starts)
        blocks = -(-N // warps), starts
        for sweep in range(inner.max_sweeps):
            rule = np.int32(sweep), np.float64(inner.shrink)
            args = W, g, B, l1, l2, np.int32(N), *rule, *judges, scratch
            self._launch("hals", "sweep_W", blocks, warps * _LANES, args, shared)

    def sweep_H(
        self, H: Any, C: Any, A: Any, E: Any, l1: Any, l2: Any, tiles: Tiles, inner: Inner
    ) -> None:
        """All sweeps over H: two launches each."""
        n, rows, T, starts = len(tiles.table), tiles.rows, H.shape[-2], _starts(H, 2)
        size = (rows + 2 * self.L + 1) * self.K + _LANES
        size += size % 2  # the next warp's memory stays aligned
        warps, shared, scratch = self._memory(n * starts, size)
        judges = self._judges(2 * n, starts)
        blocks = -(-n // warps), starts
        cut_off = self._cut_off_taps(A, E)
        for sweep in range(inner.max_sweeps):
            rule = np.int32(sweep), np.float64(inner.shrink)
            for part in range(1 + tiles.has_seams):
                decide = np.int32(part == int(tiles.has_seams))
                cut = tiles.table, np.int64(T), np.int64(n), np.int32(part), decide
                sizes = np.int32(rows), np.int32(size)
                grams = A, E, cut_off
                args = H, C, *grams, l1, l2, *cut, *sizes, *rule, *judges, scratch
                self._launch("hals", "sweep_H", blocks, warps * _LANES, args, shared)

    def _cut_off_taps(self, A: Any, E: Any) -> Any:
        """What a motif meets near a segment's end; null where that would be too much memory."""
        row = -(-(2 * self.L - 1) * self.K // _LANES) * _LANES  # as hals.cu has it: CUT_ROW
        size, starts = (self.L - 1) * self.K * row, _starts(A, 3)
        if not 0 < size <= _CUT_OFF_TAPS:
            return _NULL
        taps = self._xp.empty(size * starts, dtype=self.dtype)
        self._each("hals", "cut_off_taps", size, A, E, taps, starts=starts)
        return taps

    # --- ratios -----------------------------------------------------------------------------

    def ratios(
        self,
        X: Any,
        fit: Any,
        second: Any,
        observed: Any,
        scale: float,
        floor: float,
        beta: float,
        out: Any,
    ) -> None:
        """Both ratios of a block, and its divergence."""
        optional = (_NULL if array is None else array for array in (second, observed))
        numbers = self._real(scale), self._real(floor), self._real(beta)
        self._by_runs("ratios", "ratios", fit.size, out, X, fit, *optional, *numbers)


def _starts(array: Any, axes: int) -> int:
    """How many starts lie side by side in an array that has so many axes for one."""
    return 1 if array.ndim == axes else int(array.shape[0])
