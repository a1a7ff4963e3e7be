"""Arrays at an address: any number of them in one call, whatever their layout, and uncounted."""

from typing import Any

from numba import carray, extending, types

from motifold.kernels._jit import kernel

intrinsic: Any = extending.intrinsic  # whose annotation counts the context as an argument


@intrinsic
def _pointer(typing_context, address):
    """An address as a pointer."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), code


@kernel
def copy_rows(address, across, along, out):
    """Numbers at an address into ``out`` (rows, N); strides in bytes (changes out)."""
    rows, N = out.shape
    for t in range(rows):
        begin = address + t * across
        if along == out.itemsize:
            out[t] = carray(_pointer(begin), N, out.dtype)
        else:
            for n in range(N):
                out[t, n] = carray(_pointer(begin + n * along), 1, out.dtype)[0]


@kernel
def rows_at(address, rows, N, like):
    """Rows of N consecutive numbers, one row after the other, as an array (rows, N)."""
    return carray(_pointer(address), (rows, N), like.dtype)


@kernel
def numbers_at(address, n, like):
    """So many consecutive numbers as an array (n,)."""
    return carray(_pointer(address), (n,), like.dtype)


@kernel
def bare(array):
    """The same array, contiguous, without a count of references.

    numba counts references to slices. Where threads work on one array, they would all wait for its
    one count, and each count waits for all that the thread has stored before.
    """
    return carray(_pointer(array.ctypes.data), array.shape, array.dtype)
