"""Where arrays and kernels are: a GPU by CuPy, or NumPy in its place.

CuPy is imported here and nowhere else. Whatever it raises becomes an error that says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, lru_cache
from types import TracebackType
from typing import Any

import numpy as np

from motifold.engines.cuda.blas import Blas, BlasError
from motifold.engines.cuda.compiled import OF_EVERY_FIT, SOURCES, Compiled, source
from motifold.engines.cuda.twin import Twin
from motifold.model import Array

_INSTALL = (
    'pip install "motifold[cuda12]" (or "motifold[cuda13]": the first number of the CUDA version '
    "that nvidia-smi shows)"
)
# Share of the memory that is free which X may take: factors and statistics need some, too.
_SHARE = 0.7
# Small arrays that are kept on a device.
_CONSTANTS = 256
# Sets of kernels that a process keeps, each for one K, L and precision.
_KEPT = 128


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

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is held."""


class CudaDevice(Device):
    """A GPU, by CuPy. Inside its ``with`` block it is the current one."""

    def __init__(self, number: int, memory: int | None = None) -> None:
        cupy = _cupy()
        count = _count(cupy)
        if number >= count:
            there = ", ".join(f'"cuda:{i}"' for i in range(count))
            raise DeviceError(f'device="cuda:{number}": this machine has {there} only.')
        super().__init__(cupy, memory)
        self.name = f"cuda:{number}"
        self._number = number
        self._entered: list[Any] = []
        self._blas = Blas.of_cupy(cupy)

    def put(self, array: Any, dtype: Any = None) -> Any:
        """A copy on the device, or the array itself where it is there already."""
        there = getattr(getattr(array, "device", None), "id", self._number)
        if isinstance(array, self.xp.ndarray) and there != self._number:
            raise DeviceError(
                f"An array is on cuda:{there}, the fit on {self.name}: move it there, or give "
                f'device="cuda:{there}".'
            )
        return super().put(array, dtype)

    def host(self, array: Any) -> Array:
        """A copy; it waits for the device."""
        return self.xp.asnumpy(array)

    def copy_in(self, target: Any, rows: Array) -> None:
        """By one copy."""
        target.set(np.ascontiguousarray(rows, dtype=target.dtype))

    def room(self) -> int | None:
        """What was granted, or most of what is free."""
        if self.memory is not None:
            return self.memory
        free = self.xp.cuda.runtime.memGetInfo()[0]
        held = self.xp.get_default_memory_pool()
        return int(_SHARE * (free + held.total_bytes() - held.used_bytes()))

    def streamed(
        self,
        ranges: Sequence[tuple[int, int]],
        read: Callable[[int, int, Array], None],
        width: int,
        dtype: np.dtype,
    ) -> Iterator[Any]:
        """Two buffers: the next block is read and copied while this one is computed."""
        cupy = self.xp
        longest = max(b - a for a, b in ranges)
        pinned = [self._pinned((longest, width), dtype) for _ in range(2)]
        blocks = [cupy.empty((longest, width), dtype) for _ in range(2)]
        copies, here = cupy.cuda.Stream(non_blocking=True), cupy.cuda.get_current_stream()
        copied: list[Any] = [None, None]
        used: list[Any] = [None, None]

        def start(i: int) -> None:
            slot, (a, b) = i % 2, ranges[i]
            if copied[slot] is not None:
                copied[slot].synchronize()  # its pinned memory is being read
            read(a, b, pinned[slot][: b - a])
            if used[slot] is not None:
                copies.wait_event(used[slot])
            blocks[slot][: b - a].set(pinned[slot][: b - a], stream=copies)
            copied[slot] = copies.record()

        start(0)
        for i, (a, b) in enumerate(ranges):
            if i + 1 < len(ranges):
                start(i + 1)
            here.wait_event(copied[i % 2])
            yield blocks[i % 2][: b - a]
            used[i % 2] = here.record()
        copies.synchronize()

    def _pinned(self, shape: tuple[int, int], dtype: np.dtype) -> Array:
        size = int(np.prod(shape))
        memory = self.xp.cuda.alloc_pinned_memory(size * dtype.itemsize)
        return np.frombuffer(memory, dtype, size).reshape(shape)

    def _new_kernels(self, K: int, L: int, dtype: np.dtype) -> Any:
        functions = _functions(self._number, K, L, dtype)

        def launch(
            module: str, kernel: str, blocks: int, threads: int, args: Sequence[Any], shared: int
        ) -> None:
            functions[module, kernel]((blocks,), (threads,), tuple(args), shared_mem=shared)

        return Compiled(K, L, dtype, self.xp, launch)

    def product(self, a: Any, b: Any, rough: bool = False) -> Any:
        """By cuBLAS, where it takes such matrices; roughly there only."""
        found = None if self._blas is None else self._blas.product(a, b, rough)
        return a @ b if found is None else found

    def record(self, work: Callable[[], Any]) -> Callable[[], Any] | None:
        """A CUDA graph: it replays the same kernels over the same memory, which stays its own.

        The result is the same arrays every time.
        """
        cupy = self.xp
        stream, pool = cupy.cuda.Stream(non_blocking=True), cupy.cuda.MemoryPool()
        cupy.cuda.get_current_stream().synchronize()
        try:
            with cupy.cuda.using_allocator(pool.malloc), stream:
                work()  # what is made once, compiled or copied from the host, is made now
                stream.synchronize()  # other streams use the same memory next
                stream.begin_capture()
                try:
                    result = work()
                finally:
                    graph = stream.end_capture()
        except (cupy.cuda.runtime.CUDARuntimeError, BlasError, NotImplementedError):
            return None  # CuPy refuses to record products of its own
        buffers = [kernels.buffers for kernels in self._kernels.values()]
        kept = pool, list(self._constants.values()), buffers

        def replay(kept: Any = kept) -> Any:
            graph.launch(cupy.cuda.get_current_stream())
            return result

        return replay

    def __enter__(self) -> CudaDevice:
        """It may be entered within itself."""
        current = self.xp.cuda.Device(self._number)
        current.__enter__()
        self._entered.append(current)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give memory back, and say what an error of the device means."""
        current = self._entered.pop()
        if self._entered:
            current.__exit__(None, None, None)
            return
        self._kernels.clear()
        self._constants.clear()
        try:
            told = None if error is None else self.told(error)
            if told is not None and error is not None:
                # Frames of the error hold arrays: without them their memory can go.
                error.__traceback__ = None
                raise told from error
        finally:
            self.xp.get_default_memory_pool().free_all_blocks()
            self.xp.get_default_pinned_memory_pool().free_all_blocks()
            current.__exit__(None, None, None)

    def told(self, error: BaseException) -> Exception | None:
        """What an error of CuPy means to a user; None if it is none of CuPy's."""
        cuda = self.xp.cuda
        if isinstance(error, cuda.memory.OutOfMemoryError):
            return MemoryError(
                f"{self.name} has too little free memory: {error}. Nothing was changed, and what "
                "was taken is given back. Let X be streamed from the host (device_memory=1e9, in "
                'bytes), give it as float32, or use device="cpu".'
            )
        failures = (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError, BlasError)
        if isinstance(error, (*failures, cuda.compiler.CompileException)):
            return DeviceError(
                f"{self.name} failed: {error}. Nothing was changed. If it was lost (reset, or "
                "taken by another process), start Python anew; `motifold doctor` tells its state."
            )
        return None


class _Functions(dict[tuple[str, str], Any]):
    """Kernels by module and name, compiled when the first of a module is asked for.

    Those of every fit are compiled together: NVRTC does not hold Python's lock.
    """

    def __init__(self, number: int, K: int, L: int, dtype: np.dtype) -> None:
        super().__init__()
        cupy = _cupy()
        self._device = cupy.cuda.Device(number)
        self._modules = {
            name: cupy.RawModule(code=source(name, K, L, dtype), options=("--std=c++17",))
            for name in SOURCES
        }
        with ThreadPoolExecutor(len(OF_EVERY_FIT)) as pool:
            for _ in pool.map(self._compile, OF_EVERY_FIT):
                pass  # an error is raised here

    def _compile(self, name: str) -> None:
        with self._device:
            self._modules[name].compile()

    def __missing__(self, key: tuple[str, str]) -> Any:
        module, kernel = key
        self[key] = self._modules[module].get_function(kernel)
        return self[key]


@lru_cache(maxsize=_KEPT)
def _functions(number: int, K: int, L: int, dtype: np.dtype) -> _Functions:
    """The kernels of a device, kept from fit to fit: a sweep makes many of the same shape."""
    return _Functions(number, K, L, dtype)


def _as_tf32(array: Array) -> Array:
    """Numbers of single precision rounded to 10 bits, as tensor cores read them."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@cache
def _cupy() -> Any:
    """CuPy, or an error that says how to get it."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"A GPU needs CuPy, which cannot be imported ({error}): {_INSTALL}."
        ) from error
    return cupy


def _count(cupy: Any) -> int:
    """How many GPUs there are, at least one."""
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(_no_device(str(error))) from error
    if not count:
        raise DeviceError('This machine has no GPU that CUDA can see. Use device="cpu".')
    return count


def _no_device(told: str) -> str:
    """Why there is none, in words: there is no driver, or it is too old."""
    if "InsufficientDriver" in told:
        why = (
            "there is no NVIDIA driver, or it is too old for this CuPy: see what nvidia-smi says, "
            f"and {_INSTALL}"
        )
    elif "NoDevice" in told:
        why = "CUDA sees none: look at nvidia-smi and CUDA_VISIBLE_DEVICES"
    else:
        why = "`motifold doctor` tells more"
    return f'No GPU can be used ({told}): {why}. Or use device="cpu".'


_NAME = re.compile(r"cuda(?::(\d+|twin))?")


def is_name(name: Any) -> bool:
    """Whether it names a device: "cpu", "cuda", "cuda:1"."""
    return isinstance(name, str) and (name == "cpu" or _NAME.fullmatch(name) is not None)


def device_of(name: str, memory: float | None = None) -> Device | None:
    """The device of that name, None for "cpu"; an error where there is none.

    ``memory``: bytes that X may take there.
    """
    if name == "cpu":
        return None
    found = _NAME.fullmatch(name)
    assert found is not None
    granted = None if memory is None else int(memory)
    if found[1] == "twin":
        return Device(memory=granted)
    return CudaDevice(int(found[1] or 0), granted)


class Census:
    """What GPUs there are, for ``motifold doctor``: it never raises."""

    @cached_property
    def facts(self) -> dict[str, str]:
        """A line for each GPU, or one that says why there is none."""
        try:
            cupy = _cupy()
            count = _count(cupy)
        except DeviceError as error:
            return {"none": str(error)}
        runtime = cupy.cuda.runtime
        told = {"cupy": cupy.__version__}
        for i in range(count):
            with cupy.cuda.Device(i):
                free, total = runtime.memGetInfo()
                properties = runtime.getDeviceProperties(i)
            name = properties["name"].decode()
            version = f"{properties['major']}.{properties['minor']}"
            told[f"cuda:{i}"] = (
                f"{name}, compute capability {version}, {free / 2**30:.1f} of "
                f"{total / 2**30:.1f} GiB free"
            )
        return told
