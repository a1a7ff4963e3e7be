"""NumPy's ``.npy`` and ``.npz``: memory-mapped, unless a member is compressed."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy

from motifold.io.guards import RecordingError, check_expansion, check_numbers, guard
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES

OPTIONS = {"key", "orientation", *SPIKES}
_LOCAL_HEADER = 30  # bytes of a zip member's own header, before its name


def read(path: Path, options: Options) -> Recording:
    """The array of an npy file, or the one that ``key`` names in an npz file."""
    with guard(path, "a NumPy file"), open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            X = _from_npz(path, file, options)
        else:
            if options.key is not None:
                raise RecordingError(f"{path}: an npy file has one array; leave key out.")
            X = mapped(path)
    rate = None if options.rate is None else float(options.rate)
    return Recording(orient(X, path, options.orientation), str(path), rate)


def mapped(path: Path) -> Any:
    """The array of an npy file, mapped into memory."""
    with open(path, "rb") as file:
        return _mapped(path, file, 0, os.path.getsize(path))


def _from_npz(path: Path, file: BinaryIO, options: Options) -> Any:
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
        key = options.key if options.key is not None else _only(path, names)
        if key not in names:
            raise RecordingError(f"{path}: there is no array {key!r}; it has {', '.join(names)}.")
        info = members[f"{key}.npy"]
        if info.flag_bits & 1:
            raise RecordingError(f"{path}: {key} is encrypted; unzip it first.")
        if info.compress_type == zipfile.ZIP_STORED:
            return _mapped(path, file, _data_offset(file, info), info.file_size)
        check_expansion(path, info.file_size, info.compress_size, options.max_bytes)
        with archive.open(info) as member:
            shape, _, dtype = _header(member)
            check_numbers(dtype, path)
            _check_size(path, shape, dtype, member.tell(), info.file_size)
        with archive.open(info) as member:
            return npy.read_array(member, allow_pickle=False)


def _only(path: Path, names: list[str]) -> str:
    if len(names) != 1:
        raise RecordingError(
            f"{path}: it has {len(names)} arrays ({', '.join(names[:20])}); name one with key."
        )
    return names[0]


def _data_offset(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    file.seek(info.header_offset)
    head = file.read(_LOCAL_HEADER)
    return info.header_offset + _LOCAL_HEADER + sum(np.frombuffer(head[26:30], "<u2").tolist())


def _mapped(path: Path, file: BinaryIO, offset: int, size: int) -> Any:
    """A memory map of the npy data that stands at ``offset`` and has ``size`` bytes in all."""
    file.seek(offset)
    shape, fortran, dtype = _header(file)
    check_numbers(dtype, path)
    start = file.tell()
    _check_size(path, shape, dtype, start - offset, size)
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    order: Literal["F", "C"] = "F" if fortran else "C"
    return np.memmap(path, dtype, mode="r", offset=start, shape=shape, order=order)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = reader(file)
    if dtype.hasobject:
        raise ValueError(
            "it holds pickled Python objects, which could run code and are not read: save a plain "
            "array of numbers, np.save(path, array.astype(float))"
        )
    return shape, fortran, dtype


def _check_size(path: Path, shape: tuple[int, ...], dtype: np.dtype, head: int, size: int) -> None:
    claimed = head + math.prod(shape) * dtype.itemsize
    if claimed > size:
        raise RecordingError(
            f"{path}: the array claims shape {shape} of {dtype}, {claimed} bytes, but there are "
            f"{size}: the file is cut short or damaged. Copy or save it again."
        )
