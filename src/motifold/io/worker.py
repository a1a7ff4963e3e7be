"""The child that reads a file for another process; ``isolation`` starts it and asks it.

It gets JSON lines and answers with JSON lines, each followed by as many bytes as it says.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import issparse

from motifold.io.guards import allowed_bytes, size_of
from motifold.io.matrices import LazyMatrix
from motifold.io.reading import Options, reader_of
from motifold.io.recording import Recording

_BESIDE = 2**30  # bytes for libraries and their threads, beside the data
# Of a sparse matrix by rows: what is asked for, the attribute, the type in which it is sent.
PARTS = {"starts": ("indptr", "<i8"), "columns": ("indices", "<i8"), "values": ("data", "<f4")}
_COPIES = 3  # of the data, at most, while it is read


def main() -> None:
    """Read the file that the first line names, tell what it is, then serve parts of it."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries that print do not answer
    requests = sys.stdin.buffer
    wanted = json.loads(requests.readline())
    _answer(answers, {"ready": True})
    path, options = Path(wanted["path"]), Options(**wanted["options"])
    try:
        _limit_memory(path, options.max_bytes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recording = reader_of(path, options).read(path, options)
        told = {**_told(recording), "warnings": [str(each.message) for each in caught]}
        stamps = recording.timestamps
        _answer(answers, told, b"" if stamps is None else stamps.astype("<f8").tobytes())
        for line in requests:
            asked = json.loads(line)
            if isinstance(asked, str):  # a part of a sparse matrix
                _answer(answers, {}, _bytes(getattr(recording.X, PARTS[asked][0]), PARTS[asked][1]))
                continue
            a, b, c, d = asked
            _answer(answers, {}, _tile(recording.X, slice(a, b), slice(c, d)))
    except BaseException as error:  # panics and exhausted memory as well
        with contextlib.suppress(OSError):
            _answer(answers, {"error": [type(error).__name__, str(error)]})


def _answer(answers: BinaryIO, told: dict[str, Any], payload: bytes | memoryview = b"") -> None:
    answers.write(json.dumps({**told, "nbytes": len(payload)}).encode() + b"\n")
    answers.write(payload)
    answers.flush()


def _told(recording: Recording) -> dict[str, Any]:
    """All but the values, as plain data."""
    X = recording.X
    mapped = None
    if isinstance(X, np.memmap):
        mapped = {"offset": int(X.offset), "order": "C" if X.flags.c_contiguous else "F"}
    axis = recording.feature_axis
    return {
        "shape": list(recording.shape),
        "dtype": np.dtype(X.dtype).newbyteorder("=").str if mapped is None else X.dtype.str,
        "chunks": X.chunks if isinstance(X, LazyMatrix) else None,
        "lazy": isinstance(X, LazyMatrix),
        "fills": [float(fill) for fill in getattr(X, "fills", ())],
        "mapped": mapped,
        "entries": int(X.nnz) if issparse(X) else None,
        "starts": recording.starts,
        "rate": recording.rate,
        "feature_names": recording.feature_names,
        "lengths": recording.lengths,
        "feature_axis": None if axis is None else [float(value) for value in axis],
        "timestamps": recording.timestamps is not None,
        "missing": recording.missing,
        "hints": recording.hints,
        "options": recording.options,
    }


def _bytes(array: Any, kind: str) -> memoryview:
    return np.ascontiguousarray(array, kind).reshape(-1).view(np.uint8).data


def _tile(X: Any, rows: slice, columns: slice) -> memoryview:
    part = X.tile(rows, columns) if isinstance(X, LazyMatrix) else np.asarray(X[rows, columns])
    return np.ascontiguousarray(part, part.dtype.newbyteorder("=")).reshape(-1).view(np.uint8).data


def _limit_memory(path: Path, max_bytes: int | None) -> None:
    """Memory for what the file may unpack to, and no more; where the system has such limits."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text("ascii").split()[5]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    limit = used + _COPIES * allowed_bytes(size_of(path), max_bytes) + _BESIDE
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or limit < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
