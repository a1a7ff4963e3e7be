"""Threads that share work in compiled code: claiming pieces of it, and waiting without sleep.

Flags are arrays of int64. Nobody waits for a thread, only for work: a piece is done by whoever
claims it first, so that a thread that comes late, or never, holds up nobody.
"""

import os
from typing import Any

from llvmlite import binding
from numba import extending, types
from numba.core import cgutils

from motifold.kernels._jit import kernel

intrinsic: Any = extending.intrinsic  # whose annotation counts the context as an argument

# Looks at a flag before a waiting thread lets others run, and times it does that before it naps:
# about ten microseconds, and about a millisecond where nobody else wants the core.
_LOOKS, _YIELDS, _NAP = 5_000, 2_000, 50


def _pointer(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.gep(builder, array.data, arguments[1])


@intrinsic
def load(typing_context, flags, i):
    """flags[i] as it is in memory now: an ordinary load would be taken out of the loop."""

    def code(context, builder, signature, arguments):
        place = _pointer(context, builder, signature, arguments)
        return builder.load_atomic(place, ordering="acquire", align=8)

    return types.int64(flags, types.intp), code


@intrinsic
def add(typing_context, flags, i, value):
    """flags[i] += value, seen by all threads with everything written before; what it was."""

    def code(context, builder, signature, arguments):
        place = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("add", place, arguments[2], ordering="acq_rel")

    return types.int64(flags, types.intp, types.int64), code


@intrinsic
def claim(typing_context, flags, i, old, new):
    """Make flags[i] ``new`` if it is ``old``; whether it was: among threads, one is told so."""

    def code(context, builder, signature, arguments):
        place = _pointer(context, builder, signature, arguments)
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(flags, types.intp, types.int64, types.int64), code


if os.name == "posix" and all(map(binding.address_of_symbol, ("sched_yield", "usleep"))):
    # By name, not by address, so that compiled code can be kept on disk.
    external: Any = types.ExternalFunction
    _yield = external("sched_yield", types.int32())
    _sleep = external("usleep", types.int32(types.uint32))

    @kernel
    def rest(looks):
        """What a thread does between two looks at a flag, having looked so often."""
        if looks > _LOOKS + _YIELDS:
            _sleep(_NAP)
        elif looks > _LOOKS:
            _yield()

else:  # pragma: no cover (other systems: spinning only)

    @kernel
    def rest(looks):
        """Nothing."""


@kernel
def wait_until(flags, i, goal):
    """Wait until flags[i] is ``goal`` or more, letting others run if it takes long."""
    looks = 0
    while load(flags, i) < goal:
        looks += 1
        rest(looks)


@kernel
def spin_while(flag, value, rounds):
    """Wait while flag[0] is ``value``, for so many looks at it; whether it changed."""
    for looks in range(rounds):
        if load(flag, 0) != value:
            return True
        if looks % _LOOKS == _LOOKS - 1:
            rest(_LOOKS + 1)
    return False
