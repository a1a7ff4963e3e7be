"""The kernels in CUDA C: their sources, and how each is launched.

A module is compiled for K, L and a precision, so that loops over them are unrolled; CuPy keeps the
machine code on disk. Everything is launched on the current stream, and nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from motifold.engines.cuda.tiles import Tiles
from motifold.solvers import Inner

OF_EVERY_FIT = ("passes", "sums", "hals")
SOURCES = (*OF_EVERY_FIT, "ratios")
# Threads of a block, blocks at most of a loop over entries, entries or rows of a run for sums, and
# bytes of shared memory that every GPU grants without being asked.
_THREADS, _BLOCKS, _RUN, _SHARED = 256, 65535, 512, 48 * 1024
_CUT_OFF_TAPS = 2**22  # numbers of a table at most
# Entries of a run in a loop over an array, in long arrays, and from how many on they are.
_SHORT_RUN, _LONG_RUN, _LONG_ARRAY = 2**14, 2**16, 2**26
_WARPS, _LANES = 4, 32
_ROWS_OF_A_WARP = 8  # as passes.cu has it
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
        self, module: str, kernel: str, blocks: int, threads: int, args: Sequence[Any], shared: int
    ) -> None:
        """Launch ``kernel``; arguments are device arrays and NumPy scalars."""


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

    def _each(self, module: str, kernel: str, n: int, *args: Any) -> None:
        """One thread for each of n entries, or one for several."""
        blocks = max(1, min(_BLOCKS, -(-n // _THREADS)))
        self._launch(module, kernel, blocks, _THREADS, args, 0)

    def _real(self, value: float) -> Any:
        return self.dtype.type(value)

    # --- passes -----------------------------------------------------------------------------

    def windows(self, H: Any, age: Any, first: int, n: int, out: Any, rows: Any = None) -> None:
        """Windows of H."""
        chosen = _NULL if rows is None else rows
        args = H, age, chosen, np.int64(first), np.int64(n), out
        self._each("passes", "windows", _LANES * -(-n // _ROWS_OF_A_WARP), *args)

    def add_lags(self, Y: Any, left: Any, first: int, n: int, C: Any) -> None:
        """Lags put back in their places."""
        size = (n + self.L) * self.K
        self._each("passes", "add_lags", size, Y, left, np.int64(first), np.int64(n), C)

    def gradient(
        self, H: Any, C: Any, A: Any, E: Any, age: Any, left: Any, cut_off: Any, out: Any
    ) -> None:
        """A∗H − C, or A∗H."""
        C = _NULL if C is None else C
        K, T = self.K, len(H)
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
            self._launch("passes", "gradient", blocks, threads, args, shared)

    def smoothed(self, F: Any, age: Any, left: Any, out: Any) -> None:
        """Q∗F."""
        self._each("passes", "smoothed", F.size, F, age, left, np.int64(len(F)), out)

    def diagonal_sums(self, S: Any) -> None:
        """Sums along diagonals of blocks."""
        self._each("passes", "diagonal_sums", self.L * self.K**2, S)

    def taps_of(self, E: Any, A: Any) -> None:
        """The taps of every motif."""
        self._each("passes", "taps_of", self.L * self.K**2, E, A)

    def extrapolate(self, now: Any, before: Any, beta: float, out: Any) -> None:
        """The point beyond, cut off at zero."""
        args = now, before, self._real(beta), np.int64(now.size), out
        self._each("passes", "extrapolate", now.size, *args)

    # --- sums -------------------------------------------------------------------------------

    def _columns(self, parts: Any, out: Any) -> None:
        n, m = parts.shape
        args = parts, np.int64(n), np.int32(m), out
        self._launch("sums", "column_sums", m, _THREADS, args, 0)

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
        runs = -(-len(H) // _RUN)
        parts = self._xp.empty((runs, 4 + 2 * self.K))
        numbers = np.int32(n_free), np.int32(valid), np.int64(len(H)), np.int32(_RUN)
        args = H, g, C, A, E, left, l1, l2, *numbers, parts
        self._launch("sums", "sums_H", runs, _THREADS, args, 0)
        self._columns(parts, out)

    def lag_gram(self, H: Any, age: Any, out: Any) -> None:
        """Products of activations with those of other lags."""
        T = len(H)
        run = _RUN if T >= _LONG else _RUN // 4
        parts = self._xp.empty((-(-T // run), out.size))
        args = H, age, np.int64(T), np.int32(run), parts
        self._launch("sums", "lag_gram", len(parts), _THREADS // 2, args, 0)
        self._columns(parts, out)

    def sums_W(self, W: Any, g: Any, B: Any, l1: Any, l2: Any, out: Any) -> None:
        """Sums of the certificate of W."""
        N = len(W)
        parts = self._xp.empty((N, 2))
        self._launch("sums", "sums_W", N, _THREADS, (W, g, B, l1, l2, parts), 0)
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
        self._launch(module, kernel, runs, _THREADS, args, 0)
        self._columns(parts, out)

    def drop_rounding(self, W: Any, B: Any, eps: float) -> None:
        """Entries that are rounding become zero."""
        args = W, B, self._real(eps), np.int32(len(W))
        self._launch("sums", "drop_rounding", self.K, 4 * _THREADS, args, 0)

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

    def _judges(self, n: int) -> tuple[Any, Any, Any]:
        """How far each of n units moved; the first sweep's sum; flags. A sweep begins them anew."""
        if self._moved is None or len(self._moved) < n:
            self._moved = self._xp.empty(n)
        if self._judged is None:
            self._judged = self._xp.zeros(1), self._xp.zeros(2, dtype=np.int32)
        return self._moved, *self._judged

    def sweep_W(self, W: Any, g: Any, B: Any, l1: Any, l2: Any, inner: Inner) -> None:
        """All sweeps over rows of W; those that are not worth it return at once."""
        N, M = W.shape
        warps, shared, scratch = self._memory(N, 3 * M)
        judges = self._judges(N)
        for sweep in range(inner.max_sweeps):
            rule = np.int32(sweep), np.float64(inner.shrink)
            args = W, g, B, l1, l2, np.int32(N), *rule, *judges, scratch
            self._launch("hals", "sweep_W", -(-N // warps), warps * _LANES, args, shared)

    def sweep_H(
        self, H: Any, C: Any, A: Any, E: Any, l1: Any, l2: Any, tiles: Tiles, inner: Inner
    ) -> None:
        """All sweeps over H: two launches each."""
        n, rows = len(tiles.table), tiles.rows
        size = (rows + 2 * self.L + 1) * self.K + _LANES
        size += size % 2  # the next warp's memory stays aligned
        warps, shared, scratch = self._memory(n, size)
        judges = self._judges(2 * n)
        cut_off = self._cut_off_taps(A, E)
        for sweep in range(inner.max_sweeps):
            rule = np.int32(sweep), np.float64(inner.shrink)
            for part in range(1 + tiles.has_seams):
                decide = np.int32(part == int(tiles.has_seams))
                cut = tiles.table, np.int64(n), np.int32(part), decide
                sizes = np.int32(rows), np.int32(size)
                grams = A, E, cut_off
                args = H, C, *grams, l1, l2, *cut, *sizes, *rule, *judges, scratch
                self._launch("hals", "sweep_H", -(-n // warps), warps * _LANES, args, shared)

    def _cut_off_taps(self, A: Any, E: Any) -> Any:
        """What a motif meets near a segment's end; null where that would be too much memory."""
        row = -(-(2 * self.L - 1) * self.K // _LANES) * _LANES  # as hals.cu has it: CUT_ROW
        size = (self.L - 1) * self.K * row
        if not 0 < size <= _CUT_OFF_TAPS:
            return _NULL
        taps = self._xp.empty(size, dtype=self.dtype)
        self._each("hals", "cut_off_taps", size, A, E, taps)
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
