"""Recordings that are on a device already: arrays of CuPy, tensors of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.model import Array


@dataclass(frozen=True)
class DeviceSource:
    """An array (T, N) of a device; whoever asks for rows gets a copy of them on the host.

    Attributes
    ----------
    array : of the device's namespace
    host : carries an array to the host
    whole : what it is rows of
    """

    array: Any
    host: Any
    whole: Any = None
    chunk: int = 1
    slow: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        T, N = self.array.shape
        return T, N

    @property
    def dtype(self) -> np.dtype:
        """That of the array."""
        return np.dtype(self.array.dtype)

    def rows(self, a: int, b: int) -> Array:
        """Rows a to b, on the host."""
        return self.host(self.array[a:b])

    def glance(self, a: int, b: int) -> Any:
        """Rows a to b where they are, for one look at their values."""
        return self.array[a:b]

    def part(self, a: int, b: int) -> DeviceSource:
        """Rows a to b as a source, a view."""
        whole = self.array if self.whole is None else self.whole
        return DeviceSource(self.array[a:b], self.host, whole)
