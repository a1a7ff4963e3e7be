"""Files that lie: errors that name the file and the fix, before memory is taken or code is run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_ALWAYS_FINE = 2**28  # bytes that any file may unpack to
_EXPANSION = 200  # beyond that: as many times its size on disk; a sparse raster has about 100
_PANIC = "PanicException"  # of libraries in Rust, such as polars: no Exception to Python
_CHUNK = 2**26  # bytes of a chunk, which is unpacked whole; ordinary ones have a megabyte


class RecordingError(ValueError):
    """A file that cannot be used as it is; the message names the file and the fix.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.io import Recording, RecordingError
    >>> try:
    ...     Recording(np.array([[1.0, -2.0]]), "counts.npy").checked()
    ... except RecordingError as error:
    ...     print(str(error).split(" ")[0])
    counts.npy:
    """


def check_numbers(dtype: Any, path: Path) -> None:
    """Refuse what are no real numbers."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "fiub":
        raise RecordingError(
            f"{path}: the data is of type {dtype}, not real numbers. Name another variable or "
            "dataset with key, or convert it first (of complex numbers, take the magnitude)."
        )


def size_of(path: Path) -> int:
    """Bytes on disk, of a folder those of all that is in it."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def allowed_bytes(stored: int, max_bytes: int | None = None) -> int:
    """What a file of that size may unpack to."""
    return max(_ALWAYS_FINE, _EXPANSION * stored) if max_bytes is None else max_bytes


def check_expansion(path: Path, nbytes: int, stored: int, max_bytes: int | None) -> None:
    """Refuse a file that unpacks to far more than it is long, before memory is taken for it."""
    limit = allowed_bytes(stored, max_bytes)
    if nbytes > limit:
        raise RecordingError(
            f"{path}: {stored} bytes on disk claim to be {nbytes} bytes ({nbytes / 2**30:.1f} GiB) "
            f"of data, more than the {limit} allowed. If that is right, set max_bytes to "
            f"{nbytes} or more."
        )


def check_chunk(path: Path, nbytes: int, stored: int, max_bytes: int | None) -> None:
    """Refuse chunks that are large beside what is stored of all of them: each is unpacked whole."""
    limit = max(_CHUNK, _EXPANSION * stored if max_bytes is None else max_bytes)
    if nbytes > limit:
        raise RecordingError(
            f"{path}: its chunks unpack to {nbytes} bytes ({nbytes / 2**30:.1f} GiB) each, more "
            f"than the {limit} allowed for {stored} bytes on disk. If that is right, set max_bytes "
            f"to {nbytes} or more; better, write it with chunks of about a megabyte."
        )


@contextlib.contextmanager
def guard(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever goes wrong inside is told as a fault of the file, but for what is not."""
    try:
        yield
    except (RecordingError, ImportError, MemoryError, FileNotFoundError, PermissionError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordingError(
            f"{os.fspath(path)}: cannot be read as {what} ({told}). It may be cut short, damaged "
            "or of another kind: copy it again, or say what it is with kind."
        ) from error


def require(module: str, extra: str) -> Any:
    """An optional library, or an error that says how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs {module.partition('.')[0]}, which is not installed: "
            f'pip install "motifold[{extra}]"'
        ) from error
