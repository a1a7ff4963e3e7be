"""Numbers that stand for no number: those a file declares, and those that look as if they did."""

from __future__ import annotations

import base64
import contextlib
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_NAMES = ("_FillValue", "missing_value")  # of netCDF, and of what follows its conventions


def declared_fills(attributes: Mapping[str, Any]) -> tuple[float, ...]:
    """The values that the attributes of an array declare to be missing; NaN needs no word."""
    found: list[Any] = []
    for name in _NAMES:
        for value in np.ravel(_decoded(attributes.get(name))):
            with contextlib.suppress(TypeError, ValueError):
                if not np.isnan(value) and value not in found:
                    found.append(value)
    return tuple(found)


def _decoded(value: Any) -> Any:
    """Numbers; xarray writes those of zarr as the base64 of eight bytes, or as a word."""
    if value is None:
        return []
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
        with contextlib.suppress(ValueError, struct.error):
            return struct.unpack("<d", base64.b64decode(value, validate=True))[0]
        return []
    array = np.asarray(value)
    return array if array.dtype.kind in "fiu" else []


def float_type(dtype: Any) -> np.dtype:
    """The type in which such numbers can be NaN: float32 stays, all others are float64."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def as_missing(values: Any, fills: tuple[float, ...]) -> npt.NDArray[Any]:
    """The values in floating point, NaN where they are one of the fills."""
    array = np.asarray(values)
    result = array.astype(float_type(array.dtype))
    for fill in fills:
        # As the file's type has it: 1e20 is another number in float32.
        with np.errstate(all="ignore"):
            stored = np.asarray(fill).astype(array.dtype)
        if array.dtype.kind == "f" or stored == fill:
            result[array == stored] = np.nan
    return result
