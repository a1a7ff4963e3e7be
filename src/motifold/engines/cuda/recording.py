"""A step that is recorded once and then replayed: on a GPU one launch in place of fifty.

Small problems are bound by what it takes to launch kernels. A step is the same kernels with the
same shapes every time, so it is recorded as a CUDA graph over arrays of its own; a replay copies
the factors in, and the new ones out. Where a step depends on what it finds (missing entries,
couplings, a solver that looks at numbers), nothing is recorded.

While the loop looks at the numbers of one step, the device already takes the next, from where the
loop said that it will go on. Mostly it does; else that step was for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from motifold.engines.cuda.device import Device
from motifold.model import Array

# One step: motifs, activations → the new ones, and the numbers that are told of them.
Body = Callable[[Any, Any], tuple[Any, Any, Any]]


@dataclass(frozen=True)
class Begun:
    """A step that is under way.

    Attributes
    ----------
    W, H : the new factors, for what is launched behind it
    numbers : waits for it, and gives what it tells
    """

    W: Any
    H: Any
    numbers: Callable[[], Array]


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
        self._body = lambda: body(self._W, self._H)
        self._replay = device.record(self._body)

    @classmethod
    def of_several(cls, device: Device, body: Body, W: Any, H: Any, starts: int) -> Recording:
        """Of so many starts side by side, whose factors are like these of one."""
        many = (device.xp.stack([factor] * starts) for factor in (W, H))
        return cls(device, body, *many)

    @property
    def works(self) -> bool:
        """Whether the device could record it."""
        return self._replay is not None

    def begin(self, W: Any, H: Any) -> Begun:
        """Launch it; the factors that it gives are new arrays."""
        self._W[...], self._H[...] = W, H
        begun = self._begun()
        return replace(begun, W=begun.W.copy(), H=begun.H.copy())

    def begin_all(self, W: Sequence[Any], H: Sequence[Any]) -> Begun:
        """The same of several starts, each with its own factors; valid until the next is begun."""
        self._device.xp.stack(W, out=self._W)
        self._device.xp.stack(H, out=self._H)
        return self._begun()

    def _begun(self) -> Begun:
        # What a device cannot record is launched as it is.
        W, H, told = self._body() if self._replay is None else self._replay()
        return Begun(W, H, self._device.fetched(told))


@dataclass(frozen=True)
class Point:
    """Where a step begins: β beyond ``now``, as seen from ``before``."""

    ahead: Any
    now: Any
    before: Any


@dataclass(frozen=True)
class Foreseen:
    """A step that was begun before anyone asked for it.

    Attributes
    ----------
    recording : which
    beta, W, H : where it began
    step : what it makes of that
    """

    recording: Recording
    beta: float
    W: Point
    H: Point
    step: Begun

    def ahead(self, now: Any, before: Any, beta: float) -> Any:
        """The point beyond, if it is where this step began, else None."""
        for point in (self.W, self.H):
            if beta == self.beta and point.now is now and point.before is before:
                return point.ahead
        return None

    def is_of(self, recording: Recording, W: Any, H: Any) -> bool:
        """Whether it is the step that is asked for now."""
        return self.recording is recording and self.W.ahead is W and self.H.ahead is H
