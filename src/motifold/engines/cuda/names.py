"""Devices by their names, and what there is of them on this machine."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from motifold.engines.cuda.device import Device, DeviceError
from motifold.engines.cuda.gpu import CudaDevice, count, imported

_NAME = re.compile(r"cuda(?::(\d+|twin))?")


def is_name(name: Any) -> bool:
    """Whether it names a device: "cpu", "cuda", "cuda:1"."""
    return isinstance(name, str) and (name == "cpu" or _NAME.fullmatch(name) is not None)


def device_of(name: str, memory: float | None = None) -> Device | None:
    """The device of that name, None for "cpu"; an error where there is none.

    ``memory``: bytes that X may take there.
    """
    if name == "cpu":
        return None
    found = _NAME.fullmatch(name)
    assert found is not None
    granted = None if memory is None else int(memory)
    if found[1] == "twin":
        return Device(memory=granted)
    return CudaDevice(int(found[1] or 0), granted)


class Census:
    """What GPUs there are, for ``motifold doctor``: it never raises."""

    @cached_property
    def facts(self) -> dict[str, str]:
        """A line for each GPU, or one that says why there is none."""
        try:
            cupy = imported()
            number = count(cupy)
        except DeviceError as error:
            return {"none": str(error)}
        runtime = cupy.cuda.runtime
        told = {"cupy": cupy.__version__}
        for i in range(number):
            with cupy.cuda.Device(i):
                free, total = runtime.memGetInfo()
                properties = runtime.getDeviceProperties(i)
            name = properties["name"].decode()
            version = f"{properties['major']}.{properties['minor']}"
            told[f"cuda:{i}"] = (
                f"{name}, compute capability {version}, {free / 2**30:.1f} of "
                f"{total / 2**30:.1f} GiB free"
            )
        return told
