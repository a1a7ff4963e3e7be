"""MATLAB ``.mat`` files: v5 by scipy, v7.3 (which are HDF5) by h5py."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from motifold.io import hdf5
from motifold.io.guards import RecordingError, allowed_bytes, check_expansion, guard
from motifold.io.matrices import Orientation, orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES

OPTIONS = {"key", "orientation", *SPIKES}
_WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMBERS = {"double", "single", "logical", *_WHOLE}
_V73 = b"MATLAB 7.3"
_HEAD = 128  # bytes before the variables of v5; the last two tell the order of bytes
_COMPRESSED = 15  # the type of a variable that is packed with deflate
_MOST_OF_DEFLATE = 1032  # times its size, what a byte of it can be
_PIECE = 2**16


def read(path: Path, options: Options) -> Recording:
    """The variable that ``key`` names, or the only matrix; rows and columns are MATLAB's."""
    with open(path, "rb") as file:
        is_hdf5 = file.read(len(_V73)) == _V73
    with guard(path, "a MATLAB file"):
        X, rate = (_from_v73 if is_hdf5 else _from_v5)(path, options)
        return Recording(X, str(path), rate)


def _from_v73(path: Path, options: Options) -> tuple[Any, float | None]:
    with hdf5.open_file(path) as file:
        key = options.key
        if key is None:
            key = _only(path, _matrices(hdf5.list_tables(file)))
        dataset = hdf5.find_dataset(path, file, key, options.max_bytes)
        stated = _stated(path, tuple(dataset.shape)[::-1], options)
        # Such a file has the transpose of what MATLAB shows.
        X = orient(
            hdf5.values_of(path, dataset),
            path,
            "features_first" if stated == "time_first" else "time_first",
            hdf5.fills_of(dataset),
        )
        rate = options.rate
        if isinstance(rate, str):
            rate = _scalar(path, rate, hdf5.find_dataset(path, file, rate))
    return X, rate


def _stated(path: Path, shape: tuple[int, ...], options: Options) -> Orientation:
    """The orientation; MATLAB's users have both, so it must be said."""
    if len(shape) == 2 and options.orientation is None:
        raise RecordingError(
            f"{path}: the variable has {shape[0]} rows and {shape[1]} columns; say which are time "
            'bins: orientation="time_first" (rows) or "features_first" (columns).'
        )
    return options.orientation or "time_first"


def _from_v5(path: Path, options: Options) -> tuple[Any, float | None]:
    from scipy.io import loadmat, whosmat

    _check_elements(path, options.max_bytes)
    variables = {name: (shape, kind) for name, shape, kind in whosmat(path)}
    tables = [(n, s) for n, (s, kind) in variables.items() if len(s) == 2 and kind in _NUMBERS]
    key = options.key if options.key is not None else _only(path, _matrices(tables))
    wanted = [key, *([options.rate] if isinstance(options.rate, str) else [])]
    for name in wanted:
        if name not in variables:
            listed = ", ".join(f"{n} {s}" for n, (s, _) in variables.items())
            raise RecordingError(f"{path}: there is no variable {name!r}. It has: {listed}.")
    shape, kind = variables[key]
    if kind not in _NUMBERS:
        raise RecordingError(
            f"{path}: {key} is of MATLAB's class {kind}, not a matrix of numbers. Save it as one, "
            "full(double(x)), or name another variable with key."
        )
    check_expansion(path, 8 * math.prod(shape), path.stat().st_size, options.max_bytes)
    content = loadmat(path, variable_names=wanted)
    rate = options.rate
    if isinstance(rate, str):
        rate = _scalar(path, rate, content[rate])
    X = np.asarray(content[key])
    return orient(X, path, _stated(path, X.shape, options)), rate


def _check_elements(path: Path, max_bytes: int | None) -> None:
    """Refuse a v5 file whose variables unpack to more than they may, whatever they say they are."""
    size = path.stat().st_size
    limit = allowed_bytes(size, max_bytes)
    with open(path, "rb") as file:
        marks = {b"IM": "<u4", b"MI": ">u4"}
        kind = marks.get(file.read(_HEAD)[-2:])
        if kind is None or size * _MOST_OF_DEFLATE <= limit:
            return  # v4, which packs nothing; or it cannot be too much
        total = 0
        while len(tag := file.read(8)) == 8:
            what, length = np.frombuffer(tag, kind).tolist()
            end = file.tell() + length
            if what == _COMPRESSED:
                total += _unpacked(file, length, limit - total)
                check_expansion(path, total, size, max_bytes)
            file.seek(end)


def _unpacked(file: BinaryIO, length: int, limit: int) -> int:
    """How many bytes the next ones unpack to; it stops counting beyond the limit."""
    unpack, total = zlib.decompressobj(), 0
    while length > 0 and not unpack.eof and total <= limit:
        packed = file.read(min(length, _PIECE))
        length = length - len(packed) if packed else 0
        while packed and not unpack.eof and total <= limit:
            total += len(unpack.decompress(packed, _PIECE))
            packed = unpack.unconsumed_tail
    return total


def _matrices(tables: list[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    """Without scalars and vectors, which MATLAB holds as matrices."""
    return [(name, shape) for name, shape in tables if min(shape) > 1]


def _only(path: Path, matrices: list[tuple[str, tuple[int, ...]]]) -> str:
    if len(matrices) != 1:
        named = ", ".join(f"{name} {shape}" for name, shape in matrices)
        raise RecordingError(
            f"{path}: it has {len(matrices)} matrices, name one with key: {named}."
        )
    return matrices[0][0]


def _scalar(path: Path, name: str, value: Any) -> float:
    if math.prod(value.shape) != 1 or value.dtype.kind not in "fiu":
        raise RecordingError(f"{path}: the rate {name!r} is not one number.")
    return float(np.asarray(value).reshape(-1)[0])
