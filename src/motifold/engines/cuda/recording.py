"""A step that is recorded once and then replayed: on a GPU one launch in place of fifty.

Small problems are bound by what it takes to launch kernels. A step is the same kernels with the
same shapes every time, so it is recorded as a CUDA graph over arrays of its own; a replay copies
the factors in, and the new ones out. Where a step depends on what it finds (missing entries,
couplings, a solver that looks at numbers), nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from motifold.engines.cuda.device import Device

# One step: motifs, activations → the new ones, and the numbers that are told of them.
Body = Callable[[Any, Any], tuple[Any, Any, Any]]


class Recording:
    """A step over its own arrays.

    Parameters
    ----------
    device : where
    body : the step; it may keep nothing that it made of its arguments
    W, H : factors of the right shapes
    """

    def __init__(self, device: Device, body: Body, W: Any, H: Any) -> None:
        self._device = device
        self._W, self._H = W.copy(), H.copy()
        self._replay = device.record(lambda: body(self._W, self._H))

    @property
    def works(self) -> bool:
        """Whether the device could record it."""
        return self._replay is not None

    def step(self, W: Any, H: Any) -> tuple[Any, Any, Any]:
        """New arrays of motifs and activations, and the numbers, on the host."""
        assert self._replay is not None
        self._W[...], self._H[...] = W, H
        W, H, told = self._replay()
        return W.copy(), H.copy(), self._device.host(told)
