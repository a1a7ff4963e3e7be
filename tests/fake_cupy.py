"""A CuPy without a GPU: arrays that never mix with NumPy's unasked, kernels on the CPU's lanes.

As strict as CuPy is: NumPy arrays among its own are refused, nothing becomes a NumPy array but by
``get`` or ``asnumpy``, sums are arrays of no axes. Only what the engine uses is here. With it the
engine runs as it would on a device: ``CudaDevice``, launches, kernels and all.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from lanes import Library
from numpy.lib.mixins import NDArrayOperatorsMixin


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


_of_thread = threading.local()


class _Machine:
    """What of the false machine a test may change."""

    devices = 2
    memory = 2**40  # bytes of one array, at most
    failure: Exception | None = None
    freed = 0
    folder: Path

    @property
    def current(self) -> int:
        """The device of this thread."""
        return getattr(_of_thread, "current", 0)

    @current.setter
    def current(self, number: int) -> None:
        _of_thread.current = number


machine = _Machine()


def _inside(value):
    """NumPy's array of ours, or a number; NumPy's own are refused."""
    if isinstance(value, ndarray):
        there = value.device.id
        if there != machine.current:
            raise ValueError(f"array device = {there} while current = {machine.current}")
        return value.inside
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)):
        return type(value)(_inside(part) for part in value)
    return value


def _ours(value):
    """An array of ours, also for what NumPy gives as a number."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray(np.asarray(value))
    return tuple(map(_ours, value)) if isinstance(value, tuple) else value


class ndarray(NDArrayOperatorsMixin):
    """An array of the false device."""

    __module__ = "cupy"
    __array_priority__ = 100

    def __init__(self, inside: np.ndarray) -> None:
        if inside.nbytes > machine.memory:
            raise OutOfMemoryError(f"Out of memory allocating {inside.nbytes:,} bytes")
        self.inside = inside
        self.device = SimpleNamespace(id=machine.current)

    shape = property(lambda self: self.inside.shape)
    dtype = property(lambda self: self.inside.dtype)
    ndim = property(lambda self: self.inside.ndim)
    size = property(lambda self: self.inside.size)
    nbytes = property(lambda self: self.inside.nbytes)
    T = property(lambda self: ndarray(self.inside.T))

    def __array__(self, *args, **more):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **more):
        arguments = [_inside(part) for part in inputs]
        if out is not None:
            more["out"] = tuple(_inside(part) for part in out)
        result = getattr(ufunc, method)(*arguments, **more)
        return out[0] if out is not None else _ours(result)

    def __array_function__(self, function, types, args, more):
        assert function.__name__ in FUNCTIONS, f"np.{function.__name__} was not looked up in CuPy"
        return _ours(function(*_inside(list(args)), **{k: _inside(v) for k, v in more.items()}))

    def __getitem__(self, key):
        found = ndarray(np.asarray(self.inside[_inside(key)]))
        found.device = self.device  # a view is where the array is
        return found

    def __setitem__(self, key, value):
        self.inside[_inside(key)] = _inside(value)

    def __len__(self):
        return len(self.inside)

    def __float__(self):
        return float(self.inside)

    def __bool__(self):
        return bool(self.inside)

    def get(self, out=None, blocking=True):
        if out is None:
            return self.inside.copy()
        assert type(out) is np.ndarray
        assert (out.shape, out.dtype) == (self.shape, self.dtype)
        out[...] = self.inside
        return out

    def set(self, rows, stream=None):
        assert type(rows) is np.ndarray
        assert rows.flags.c_contiguous
        assert rows.shape == self.shape
        assert rows.dtype == self.dtype
        self.inside[...] = rows


# Methods and functions of NumPy that CuPy 14 has with these arguments: looked up there.
METHODS = "reshape transpose swapaxes astype copy sum mean max min cumsum diagonal any all dot"
FUNCTIONS = {
    "einsum",
    "vdot",
    "where",
    "clip",
    "stack",
    "sum",
    "concatenate",
    "zeros_like",
    "ones_like",
    "mean",
}
for _name in METHODS.split():

    def _method(self, *args, _name=_name, **more):
        return _ours(getattr(_inside(self), _name)(*_inside(list(args)), **more))

    setattr(ndarray, _name, _method)


def _made(function):
    return lambda shape, dtype=np.float64: ndarray(function(shape, dtype))


zeros, ones = _made(np.zeros), _made(np.ones)


def empty(shape, dtype=np.float64):
    """Memory with anything in it."""
    return ndarray(np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 77, dtype))


def asarray(array, dtype=None):
    """A copy of the host's, or ours as it is."""
    if machine.failure is not None:
        raise machine.failure
    if isinstance(array, ndarray):
        return array if dtype in (None, array.dtype) else array.astype(dtype)
    return ndarray(np.array(array, dtype=dtype))


def ascontiguousarray(array):
    """Ours, without gaps."""
    inside = _inside(array)
    return array if inside.flags.c_contiguous else ndarray(np.ascontiguousarray(inside))


def asnumpy(array):
    """A copy for the host."""
    return array.get() if isinstance(array, ndarray) else np.asarray(array)


def concatenate(arrays):
    """As NumPy's."""
    return ndarray(np.concatenate(_inside(list(arrays))))


def stack(arrays, out=None):
    """As NumPy's."""
    made = np.stack(_inside(list(arrays)))
    if out is None:
        return ndarray(made)
    out.inside[...] = made
    return out


def maximum(a, b):
    """As NumPy's."""
    return np.maximum(a, b)


def where(condition, a, b):
    """As NumPy's."""
    return _ours(np.where(*_inside([condition, a, b])))


class RawModule:
    """CUDA C, built for the CPU's lanes."""

    def __init__(self, code: str, options: tuple = ()) -> None:
        self._library = Library(code, machine.folder)

    def compile(self) -> None:
        """It is."""

    def get_function(self, name: str):
        def launch(grid, block, args, shared_mem=0):
            arguments = [part.inside if isinstance(part, ndarray) else part for part in args]
            assert not any(type(part) is np.ndarray for part in args)
            self._library.launch(name, grid, block[0], arguments, shared_mem)

        return launch


class _Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def record(self):
        return SimpleNamespace(synchronize=lambda: None)

    def wait_event(self, event) -> None:
        assert event is not None

    def begin_capture(self) -> None:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")

    def end_capture(self) -> None:
        raise AssertionError("nothing was begun")

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _Device:
    def __init__(self, number: int) -> None:
        self.number = number
        self.before: list[int] = []

    def __enter__(self):
        self.before.append(machine.current)
        machine.current = self.number
        return self

    def __exit__(self, *error):
        machine.current = self.before.pop()


class _Pool:
    def free_all_blocks(self) -> None:
        machine.freed += 1

    def total_bytes(self) -> int:
        return 0

    used_bytes = total_bytes


def _count() -> int:
    if machine.devices < 0:
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
    return machine.devices


get_default_memory_pool = get_default_pinned_memory_pool = _Pool
cuda = SimpleNamespace(
    Device=_Device,
    Stream=_Stream,
    get_current_stream=_Stream,
    alloc_pinned_memory=lambda size: bytearray(size),
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (RuntimeError,), {})),
    compiler=SimpleNamespace(CompileException=type("CompileException", (Exception,), {})),
    MemoryPool=lambda: SimpleNamespace(malloc=None),
    using_allocator=lambda allocator: nullcontext(),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=_count,
        memGetInfo=lambda: (2**33, 2**34),
        getDeviceProperties=lambda i: {"name": b"False GPU", "major": 9, "minor": 0},
    ),
)
__version__ = "14.0"
