"""Where arrays and kernels are: NumPy in a GPU's place, with the calls that a GPU has, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from motifold.engines.cuda.twin import Twin
from motifold.model import Array

# Small arrays that are kept on a device.
_CONSTANTS = 256


class DeviceError(ValueError):
    """The GPU that was asked for cannot be used; the message says why, and what to do."""


class Device:
    """NumPy in place of a GPU: the same calls, the twins of the kernels. Tests run on it.

    Attributes
    ----------
    name : "cuda:twin", or "cuda:0"
    xp : the namespace of the arrays
    memory : bytes that X may take, None: whatever is free
    precision : "auto" or "full": whether products of single precision may ever be by TF32
    """

    name = "cuda:twin"

    def __init__(self, xp: Any = np, memory: int | None = None) -> None:
        self.xp = xp
        self.memory = memory
        self.precision = "auto"
        self._kernels: dict[tuple[int, int, np.dtype], Any] = {}
        self._constants: dict[tuple[Any, ...], Any] = {}

    # --- arrays -----------------------------------------------------------------------------

    def put(self, array: Any, dtype: Any = None) -> Any:
        """An array of the device, contiguous; one that is there already as it is."""
        return self.xp.ascontiguousarray(self.xp.asarray(array, dtype=dtype))

    def constant(self, array: Any, dtype: Any = None) -> Any:
        """A small array of the host on the device, not to be changed; copied once."""
        array = np.ascontiguousarray(array, dtype=dtype)
        key = array.tobytes(), array.shape, array.dtype
        if key not in self._constants:
            if len(self._constants) >= _CONSTANTS:
                self._constants.clear()
            self._constants[key] = self.put(array)
        return self._constants[key]

    def host(self, array: Any) -> Array:
        """The numbers, as NumPy's."""
        return np.asarray(array)

    def fetched(self, array: Any) -> Callable[[], Array]:
        """The numbers as they are now, for whoever asks later: what is launched meanwhile runs."""
        kept = np.array(self.host(array))
        return lambda: kept

    def copy_in(self, target: Any, rows: Array) -> None:
        """Rows of the host into an array of the device (changes ``target``)."""
        target[...] = self.xp.asarray(rows)

    def room(self) -> int | None:
        """Bytes that X may take, None if there is no limit."""
        return self.memory

    # --- blocks that come from the host while the last one is computed ------------------------

    def streamed(
        self,
        ranges: Sequence[tuple[int, int]],
        read: Callable[[int, int, Array], None],
        width: int,
        dtype: np.dtype,
    ) -> Iterator[Any]:
        """Arrays of the device with the rows a to b of every range; each is valid until the next.

        ``read(a, b, out)`` writes rows of the host.
        """
        longest = max(b - a for a, b in ranges)
        buffer, block = np.empty((longest, width), dtype), self.xp.empty((longest, width), dtype)
        for a, b in ranges:
            read(a, b, buffer[: b - a])
            self.copy_in(block[: b - a], buffer[: b - a])
            yield block[: b - a]

    # --- kernels and products -----------------------------------------------------------------

    def kernels(self, K: int, L: int, dtype: Any) -> Any:
        """The kernels for K components and L lags in a precision."""
        key = K, L, np.dtype(dtype)
        if key not in self._kernels:
            self._kernels[key] = self._new_kernels(*key)
        return self._kernels[key]

    def _new_kernels(self, K: int, L: int, dtype: np.dtype) -> Any:
        return Twin(K, L, dtype)

    def product(self, a: Any, b: Any, rough: bool = False) -> Any:
        """A @ b; roughly: of single precision, rounded to TF32's 10 bits where it saves time."""
        if rough and a.dtype == np.float32:
            a, b = (_as_tf32(self.host(part)) for part in (a, b))
        return self.put(a @ b)

    def record(self, work: Callable[[], Any]) -> Callable[[], Any] | None:
        """What does the work again, and gives its result; None where it cannot be recorded."""
        return work

    # --- use ----------------------------------------------------------------------------------

    def here(self) -> AbstractContextManager[object]:
        """In it, this is the device of the thread, with the stream of the thread that entered."""
        return nullcontext()

    @property
    def has_one_stream(self) -> bool:
        """Whether threads follow one another there, unless they ask for something else."""
        return True

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Nothing is held."""


def _as_tf32(array: Array) -> Array:
    """Numbers of single precision rounded to 10 bits, as tensor cores read them."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
