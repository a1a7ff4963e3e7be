"""What solvers see of the data on a device: as ``solvers.base`` says, with arrays of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from motifold.engines.cuda.passes import Passes
from motifold.engines.cuda.resident import Resident

Map = Callable[[Any], Any]


@dataclass(frozen=True)
class DeviceStatistics:
    """What H depends on when W is fixed; ``engines.cpu.statistics.HStatistics`` has the words."""

    C: Any
    A: Any
    E: Any
    data: Resident
    slope: Any = None
    C_data: Any = None
    fill: Fill | None = None
    fill_power: float = 0.0

    @property
    def kernels(self) -> Any:
        """Those for as many components, in this precision."""
        L, K = self.E.shape[-2:]
        return self.data.device.kernels(K, L, self.C.dtype)

    def correlate(self, H: Any) -> Any:
        """A∗H (T, K)."""
        return self._product(H, None)

    def gradient(self, H: Any) -> Any:
        """∇_H J (T, K), l1 and l2 left out."""
        return self._product(H, self.C)

    def _product(self, H: Any, C: Any) -> Any:
        out = self.data.device.xp.empty(H.shape, dtype=H.dtype)
        rows = self.data.age, self.data.left, self.data.cut_off
        self.kernels.gradient(H, C, self.A, self.E, *rows, out)
        return out

    def smoothed(self, F: Any) -> Any:
        """Q∗F (T, K)."""
        out = self.data.device.xp.empty(F.shape, dtype=F.dtype)
        self.kernels.smoothed(F, self.data.age, self.data.left, out)
        return out

    def refilled(self, H: Any) -> DeviceStatistics:
        """The same statistics with the missing entries replaced by X̂ of this H."""
        if self.fill is None:
            return self
        fill, C, power = self.fill.at(H)
        changes = {"C": C} if self.slope is None else {"C": C - self.slope, "C_data": C}
        return replace(self, fill=fill, fill_power=power, **changes)

    def rescaled(self, factor: Any) -> DeviceStatistics:
        """The statistics of the motifs times a factor; of the data alone."""
        return replace(self, C=factor * self.C, A=factor**2 * self.A, E=factor**2 * self.E)

    def without_last(self, explained: Any) -> DeviceStatistics:
        """The statistics of all motifs but the last, which explains (T, K) of their products."""
        whole = self.data.device.xp.ascontiguousarray
        data = self.C if self.C_data is None else self.C_data
        slope = explained if self.slope is None else explained + self.slope
        return DeviceStatistics(
            whole(self.C[:, :-1] - explained[:, :-1]),
            whole(self.A[:-1, :, :-1]),
            whole(self.E[:, :-1, :, :-1]),
            self.data,
            slope=whole(slope[:, :-1]),
            C_data=whole(data[:, :-1]),
        )

    def exactly(self, order: np.ndarray) -> DeviceStatistics:
        """The same in float64, with the components in another order."""
        xp = self.data.device.xp
        index = self.data.device.constant(order)

        def columns(part: Any) -> Any:
            return xp.ascontiguousarray(part[..., index].astype(np.float64))

        changes: dict[str, Any] = {
            name: None if getattr(self, name) is None else columns(getattr(self, name))
            for name in ("C", "slope", "C_data")
        }
        A, E = columns(self.A[index]), columns(self.E[:, index])
        fill = None
        if self.fill is not None:
            fill = Fill(self.fill.passes, columns(self.fill.W), columns(self.fill.C))
        return replace(self, A=A, E=E, fill=fill, **changes)


@dataclass(frozen=True)
class Fill:
    """How missing entries enter C.

    Attributes
    ----------
    W : the motifs that make X̂
    C : the part of it that is observed
    H : the activations whose missing entries have been entered, if any
    """

    passes: Passes
    W: Any
    C: Any
    H: Any = None

    def at(self, H: Any) -> tuple[Fill, Any, float]:
        """The fill with the entries of W∗H; C (T, K) with them; and the sum of their squares."""
        C, power = self.passes.hidden_correlation(self.W, H)
        data = self.passes.data
        if data.problem.boundary == "valid":
            C = C * data.allowed.astype(C.dtype)
        return replace(self, H=H), C + self.C, power

    def moved(self, H: Any) -> float:
        """The squared distance of the entries of W∗H from those entered: X̂ is linear in H."""
        return self.passes.hidden_power(self.W, H - self.H)
