"""Waiting for another thread without going to sleep."""

from numba import types
from numba.extending import intrinsic

from motifold.kernels._jit import kernel


@intrinsic
def _load(typing_context, flag):
    """flag[0] as it is in memory now: an ordinary load would be taken out of the loop."""

    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, ordering="acquire", align=8)

    return types.int64(flag), code


@kernel
def spin_while(flag, value, rounds):
    """Wait while flag[0] (int64) is ``value``, for so many looks at it; whether it changed."""
    for _ in range(rounds):  # noqa: SIM110 (any() of a generator does not compile)
        if _load(flag) != value:  # type: ignore[call-arg]
            return True
    return False
