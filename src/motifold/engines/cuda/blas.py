"""Products by cuBLAS itself: CuPy takes .1 ms to begin one, and does not let it be recorded.

The functions are those of the library that CuPy has loaded, on its current stream.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

_NO, _TRANSPOSED = 0, 1
# Math modes: of the precision of the numbers, and TF32, for which CuPy has no name.
_PLAIN, _TF32 = 0, 3
_MOST = 2**31 - 1
_FUNCTIONS: dict[np.dtype, tuple[str, str, Any]] = {
    np.dtype(np.float32): ("cublasSgemm_v2", "cublasSgemmStridedBatched", ctypes.c_float),
    np.dtype(np.float64): ("cublasDgemm_v2", "cublasDgemmStridedBatched", ctypes.c_double),
}


# A handle has 32 MB of its own on large GPUs: one for each device, which threads share. It is one's
# from the choice of a stream until the product has begun.
_handles: dict[int, int] = {}
_turn = threading.Lock()


class BlasError(RuntimeError):
    """cuBLAS refused; the number is its status."""


class Blas:
    """Products of matrices in row order, or views of such that are transposed; also of several.

    One of two may be the same matrix for all of the other's.

    Parameters
    ----------
    library : cuBLAS, by ctypes
    handle, stream : give what to work with, as numbers
    pointer : gives where an array is
    empty : makes one, of a shape and a dtype
    """

    def __init__(
        self,
        library: Any,
        handle: Callable[[], int],
        stream: Callable[[], int],
        pointer: Callable[[Any], int],
        empty: Callable[[tuple[int, ...], Any], Any],
    ) -> None:
        self._library = library
        self._handle, self._stream, self._pointer, self._empty = handle, stream, pointer, empty
        self._products: dict[np.dtype, Any] = {}
        integer, address, far = ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong
        sizes = [address, integer, integer, integer, integer, integer]
        for dtype, (name, name_of_several, kind) in _FUNCTIONS.items():
            number = ctypes.POINTER(kind)
            one, several = getattr(library, name), getattr(library, name_of_several)
            matrix, matrices = [address, integer], [address, integer, far]
            one.argtypes = [*sizes, number, *matrix, *matrix, number, *matrix]
            several.argtypes = [*sizes, number, *matrices, *matrices, number, *matrices, integer]
            self._products[dtype] = one, several, ctypes.byref(kind(1)), ctypes.byref(kind(0))
        library.cublasSetStream_v2.argtypes = [address, address]
        library.cublasSetMathMode.argtypes = [address, integer]

    @classmethod
    def of_cupy(cls, cupy: Any) -> Blas | None:
        """That of CuPy, None where it cannot be found."""
        library = _loaded()
        if library is None:
            return None
        return cls(
            library,
            lambda: _handle_of(library, cupy.cuda.runtime.getDevice()),
            lambda: cupy.cuda.get_current_stream().ptr,
            lambda array: array.data.ptr,
            cupy.empty,
        )

    def product(self, a: Any, b: Any, rough: bool = False) -> Any:
        """A @ b, None where it is not for cuBLAS; roughly: of single precision, by TF32."""
        ours, theirs = _layout(a), _layout(b)
        (m, k), n = a.shape[-2:], b.shape[-1]
        if a.dtype != b.dtype or a.dtype not in self._products or ours is None or theirs is None:
            return None
        if not min(m, n, k) or max(m, n, k, ours[1], theirs[1]) > _MOST:
            return None
        several = max(a.shape[:-2], b.shape[:-2])
        if len(several) > 1 or (a.ndim == b.ndim and a.shape[:-2] != b.shape[:-2]):
            return None
        out = self._empty((*several, m, n), a.dtype)
        function, of_several, one, zero = self._products[a.dtype]
        # In its order, by columns, everything is transposed: (A B)' = B' A'.
        right: tuple[int, ...] = self._pointer(b), theirs[1]
        left: tuple[int, ...] = self._pointer(a), ours[1]
        end: tuple[Any, ...] = self._pointer(out), n
        if several:
            function, end = of_several, (*end, m * n, *several)
            right, left = (*right, _apart(b)), (*left, _apart(a))
        sizes = theirs[0], ours[0], n, m, k
        with _turn:
            handle = self._handle()
            self._check(self._library.cublasSetStream_v2(handle, self._stream()))
            if rough:
                self._check(self._library.cublasSetMathMode(handle, _TF32))
            status = function(handle, *sizes, one, *right, *left, zero, *end)
            if rough:
                self._check(self._library.cublasSetMathMode(handle, _PLAIN))
        self._check(status)
        return out

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise BlasError(f"cuBLAS returned status {status}")


def _handle_of(library: Any, device: int) -> int:
    """The handle of a device, which must be the current one; made once."""
    if device not in _handles:
        made = ctypes.c_void_p()
        Blas._check(library.cublasCreate_v2(ctypes.byref(made)))
        assert made.value is not None
        _handles[device] = made.value
    return _handles[device]


def _apart(matrices: Any) -> int:
    """The numbers from one of several matrices to the next; none from one that is alone."""
    return 0 if matrices.ndim == 2 else matrices.strides[0] // matrices.itemsize


def _layout(array: Any) -> tuple[int, int] | None:
    """Whether a matrix is transposed, and the numbers from one row to the next; None: neither."""
    (rows, columns), (down, along) = array.shape[-2:], array.strides[-2:]
    size = array.itemsize
    if (along == size or columns == 1) and down % size == 0 and down >= columns * size:
        return _NO, down // size
    if (down == size or rows == 1) and along % size == 0 and along >= rows * size:
        return _TRANSPOSED, along // size
    return None


def _loaded() -> Any:
    """The cuBLAS that CuPy has loaded, None where it has another name."""
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError:
        return None
    names = [cublas.__file__, "libcublas.so.13", "libcublas.so.12"]
    names += ["cublas64_13.dll", "cublas64_12.dll"]
    for name in names:
        try:
            library = ctypes.CDLL(name)
            library.cublasSgemm_v2  # noqa: B018
        except (OSError, AttributeError):
            continue
        return library
    return None
