"""A logarithm that a compiler can do several of at once."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from motifold.kernels._jit import kernel

intrinsic: Any = extending.intrinsic  # whose annotation counts the context as an argument

# √½ as bits of a float32: mantissas are taken from there to √2, so that the polynomial is short.
_ROOT_HALF, _MANTISSA = np.int32(0x3F3504F3), np.int32(0x007FFFFF)


@intrinsic
def _bits(typing_context, value):
    """The bits of a float32 as an int32."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), code


@intrinsic
def _number(typing_context, bits):
    """The float32 of these bits."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), code


@kernel
def log32(x):
    """The logarithm of a float32 to its precision; for x = 0 some number below −80.

    The library's is called for one number at a time and takes as long as a matrix product.
    Polynomial of Cephes' logf (Moshier).
    """
    shifted = _bits(x) - _ROOT_HALF
    exponent = np.float32(shifted >> np.int32(23))
    m = _number((shifted & _MANTISSA) + _ROOT_HALF) - np.float32(1)
    square = m * m
    p = np.float32(7.0376836292e-2)
    p = p * m - np.float32(1.1514610310e-1)
    p = p * m + np.float32(1.1676998740e-1)
    p = p * m - np.float32(1.2420140846e-1)
    p = p * m + np.float32(1.4249322787e-1)
    p = p * m - np.float32(1.6668057665e-1)
    p = p * m + np.float32(2.0000714765e-1)
    p = p * m - np.float32(2.4999993993e-1)
    p = p * m + np.float32(3.3333331174e-1)
    return exponent * np.float32(0.6931471805599453) + (
        m + (p * m * square - np.float32(0.5) * square)
    )


def log(x):  # numbers of either precision, within kernels
    """The logarithm: of a float32 by ``log32``, of a float64 by the library's, never of zero."""


@extending.overload(log)
def _log(x):
    if x == types.float32:
        return lambda x: log32(x)
    return lambda x: np.log(max(x, 1e-300))
