"""A GPU, by CuPy, which is imported here and nowhere else.

Whatever CuPy raises becomes an error that says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from typing import Any

import numpy as np

from motifold.engines.cuda.blas import Blas, BlasError
from motifold.engines.cuda.compiled import OF_EVERY_FIT, SOURCES, Compiled, source
from motifold.engines.cuda.device import Device, DeviceError
from motifold.engines.cuda.together import seat
from motifold.model import Array

_INSTALL = (
    'pip install "motifold[cuda12]" (or "motifold[cuda13]": the first number of the CUDA version '
    "that nvidia-smi shows)"
)
# Share of the memory that is free which X may take: factors and statistics need some, too.
_SHARE = 0.7
# Sets of kernels that a process keeps, each for one K, L and precision.
_KEPT = 128


class CudaDevice(Device):
    """A GPU, by CuPy. Inside its ``with`` block it is the current one."""

    def __init__(self, number: int, memory: int | None = None) -> None:
        cupy = imported()
        devices = count(cupy)
        if number >= devices:
            there = ", ".join(f'"cuda:{i}"' for i in range(devices))
            raise DeviceError(f'device="cuda:{number}": this machine has {there} only.')
        super().__init__(cupy, memory)
        self.name = f"cuda:{number}"
        self._number = number
        self._entered: list[Any] = []
        self._stream: Any = None
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

    def fetched(self, array: Any) -> Callable[[], Array]:
        """By a copy on the current stream, and an event behind it."""
        kept = self._pinned(array.shape, array.dtype)
        array.get(out=kept, blocking=False)
        copied = self.xp.cuda.get_current_stream().record()

        def numbers() -> Array:
            copied.synchronize()
            return kept

        return numbers

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
        functions = _functions(self.xp, self._number, K, L, dtype)

        def launch(
            module: str,
            kernel: str,
            blocks: tuple[int, int],
            threads: int,
            args: Sequence[Any],
            shared: int,
        ) -> None:
            functions[module, kernel](blocks, (threads,), tuple(args), shared_mem=shared)

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

    @contextmanager
    def here(self) -> Iterator[None]:
        """By CuPy, which knows of its thread."""
        with self.xp.cuda.Device(self._number), self._stream or nullcontext():
            yield

    @property
    def has_one_stream(self) -> bool:
        """Unless each thread was to have one of its own."""
        return os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0") in ("", "0")

    def __enter__(self) -> CudaDevice:
        """It may be entered within itself."""
        current = self.xp.cuda.Device(self._number)
        current.__enter__()
        if not self._entered:
            self._stream = self.xp.cuda.get_current_stream()
        self._entered.append(current)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Give memory back, and say what an error of the device means."""
        current = self._entered.pop()
        if self._entered:
            current.__exit__(None, None, None)
            return
        self._stream = None
        self._kernels.clear()
        self._constants.clear()
        try:
            told = None if error is None else self.told(error)
            if told is not None and error is not None:
                # Frames of the error hold arrays: without them their memory can go.
                error.__traceback__ = None
                raise told from error
        finally:
            mine = seat()
            if mine is None:
                self._give_back()
            else:  # the next fit beside this one would ask for it again
                mine.meeting.at_the_end(self.name, self._give_back)
            current.__exit__(None, None, None)

    def _give_back(self) -> None:
        """Memory that nobody uses."""
        with self.here():
            self.xp.get_default_memory_pool().free_all_blocks()
            self.xp.get_default_pinned_memory_pool().free_all_blocks()

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

    def __init__(self, cupy: Any, number: int, K: int, L: int, dtype: np.dtype) -> None:
        super().__init__()
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
def _functions(cupy: Any, number: int, K: int, L: int, dtype: np.dtype) -> _Functions:
    """The kernels of a device, kept from fit to fit: a sweep makes many of the same shape."""
    return _Functions(cupy, number, K, L, dtype)


@cache
def imported() -> Any:
    """CuPy, or an error that says how to get it."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"A GPU needs CuPy, which cannot be imported ({error}): {_INSTALL}."
        ) from error
    return cupy


def count(cupy: Any) -> int:
    """How many GPUs there are, at least one."""
    try:
        devices = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(_no_device(str(error))) from error
    if not devices:
        raise DeviceError('This machine has no GPU that CUDA can see. Use device="cpu".')
    return devices


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
