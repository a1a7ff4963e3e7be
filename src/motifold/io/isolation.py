"""Files from elsewhere, read in a child process: what crashes, hangs or swells there ends there.

The child is believed plain data alone: shapes, names and numbers, which are checked as those of
any file are, and the values, as many bytes as were asked for.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from motifold.io.guards import RecordingError, allowed_bytes, check_numbers, size_of
from motifold.io.matrices import LazyMatrix
from motifold.io.recording import Recording

_START = 120.0  # seconds until the child runs
_PATIENCE = 30.0  # seconds without a sign of life, for a small file
_BYTES_PER_SECOND = 2**20  # a large one has a second more for each
_MAX_LINE = 2**24
_PIECE = 2**20
_TRUSTED = 8  # times what the file may unpack to, from a child that has checked it
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from motifold.io.worker import main; main()"
_KINDS: tuple[type[Exception], ...] = (
    RecordingError,
    ImportError,
    FileNotFoundError,
    PermissionError,
    OSError,
    TypeError,
    ValueError,
)
_ERRORS: dict[str, type[Exception]] = {
    "ModuleNotFoundError": ImportError,
    **{kind.__name__: kind for kind in _KINDS},
}


def read_isolated(path: Path, options: dict[str, Any]) -> Recording:
    """The recording, read by a child; where it is read lazily the child lives as long as it."""
    child = _Child(path, options.get("max_bytes"))
    try:
        told, stamps = child.ask({"path": str(path), "options": options})
        recording = _believed(path, told, stamps, child)
    except BaseException:
        child.end()
        raise
    for message in told.get("warnings", []):
        warnings.warn(str(message), UserWarning, stacklevel=3)
    return recording


def _believed(path: Path, told: dict[str, Any], stamps: bytearray, child: _Child) -> Recording:
    """What the child tells, if it is of the kinds that it should be."""
    try:
        T, N = (int(size) for size in told["shape"])
        dtype = np.dtype(str(told["dtype"]))
        check_numbers(dtype, path)
        known = _known(told)
        axis = None if told["feature_axis"] is None else np.array(told["feature_axis"], float)
        clock = np.frombuffer(stamps, "<f8") if told["timestamps"] else None
        chunks = tuple(int(n) for n in told["chunks"]) if told["chunks"] else None
        fills = tuple(float(fill) for fill in told["fills"])
        mapped = told["mapped"]
        offset = 0 if mapped is None else int(mapped["offset"])
        order: Any = "C" if mapped is None else {"C": "C", "F": "F"}[mapped["order"]]
        if min(T, N, *(chunks or [1])) < 1 or (clock is not None and len(clock) != T):
            raise ValueError(f"shape {(T, N)}")
    except (KeyError, TypeError, ValueError) as error:
        raise child.damaged(f"what it told makes no sense: {error}") from error
    nbytes = T * N * dtype.itemsize
    X: Any
    if told.get("entries") is not None:
        X = _sparse(child, T, N, told["entries"])
        child.end()
    elif mapped is not None:
        if offset < 0 or offset + nbytes > path.stat().st_size:
            raise child.damaged("its data lies beyond its end")
        X = np.memmap(path, dtype, "r", offset, (T, N), order)
        child.end()
    else:
        if nbytes > child.most:
            raise child.damaged(f"it claims {nbytes} bytes of data")
        X = LazyMatrix(_Values(child, (T, N), dtype, chunks), path, transposed=False, fills=fills)
        if not told["lazy"]:
            X = X.load(dtype)
            child.end()
    return Recording(X, str(path), feature_axis=axis, timestamps=clock, **known)


def _sparse(child: _Child, T: int, N: int, n_entries: Any) -> Any:
    """A sparse matrix, by its three arrays; what they say is checked."""
    if not isinstance(n_entries, int) or not 0 <= n_entries <= T * N:
        raise child.damaged(f"it claims {n_entries} entries")
    if 8 * (T + 1) + 12 * n_entries > child.most:
        raise child.damaged(f"it claims {T} rows and {n_entries} entries")
    starts, columns, values = (
        np.frombuffer(child.ask(name, expected=n * np.dtype(kind).itemsize)[1], kind)
        for name, n, kind in (
            ("starts", T + 1, "<i8"),
            ("columns", n_entries, "<i8"),
            ("values", n_entries, "<f4"),
        )
    )
    try:
        X = csr_array((values, columns, starts), shape=(T, N))
        X.check_format(full_check=True)
    except ValueError as error:
        raise child.damaged(f"its sparse matrix is none: {error}") from error
    return X


def _known(told: dict[str, Any]) -> dict[str, Any]:
    """What goes into the recording as it is."""
    rate, names, lengths = (told[name] for name in ("rate", "feature_names", "lengths"))
    starts = told.get("starts")
    missing: Any = {"error": "error", "mask": "mask"}[told["missing"]]
    return {
        "rate": None if rate is None else float(rate),
        "feature_names": None if names is None else tuple(str(name) for name in names),
        "lengths": None if lengths is None else tuple(int(length) for length in lengths),
        "hints": tuple(str(hint) for hint in told["hints"]),
        "options": {str(name): value for name, value in told.get("options", {}).items()},
        "missing": missing,
        "starts": None if starts is None else tuple(float(start) for start in starts),
    }


class _Values:
    """The values that a child has, (time, features), by slices."""

    ndim = 2

    def __init__(self, child: _Child, shape: tuple[int, int], dtype: np.dtype, chunks: Any) -> None:
        self._child = child
        self.shape, self.dtype, self.chunks = shape, dtype, chunks
        self._turn = threading.Lock()  # one question at a time, whoever asks

    def __getitem__(self, tile: tuple[slice, slice]) -> npt.NDArray[Any]:
        bounds = [s.indices(n)[:2] for s, n in zip(tile, self.shape, strict=True)]
        shape = tuple(max(0, b - a) for a, b in bounds)
        request = [number for pair in bounds for number in pair]
        with self._turn:
            _, values = self._child.ask(request, expected=math.prod(shape) * self.dtype.itemsize)
        return np.frombuffer(values, self.dtype).reshape(shape)


class _Child:
    """A process that reads a file and answers questions about it."""

    def __init__(self, path: Path, max_bytes: int | None) -> None:
        self._path = path
        # It looks at what the file unpacks to itself, more strictly; but it may lose its senses.
        self.most = _TRUSTED * allowed_bytes(size_of(path), max_bytes)
        self._seconds = _PATIENCE + size_of(path) / _BYTES_PER_SECOND
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._held = bytearray()  # what it said and nobody has taken yet
        self._lock = threading.Lock()
        self._ready = False
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, request: Any, expected: int | None = None) -> tuple[dict[str, Any], bytearray]:
        """The answer, and the bytes after it; ``expected``: how many there must be."""
        with self._lock:
            if not self.end.alive:
                raise RecordingError(
                    f"{self._path}: the process that read it has ended. Read it again."
                )
            self._send(request)
            if not self._ready:
                self._line(_START)
                self._ready = True
            told = self._line(self._seconds)
            if "error" in told:
                raise self._error(*map(str, told["error"]))
            nbytes = told.get("nbytes")
            limits = (0, self.most) if expected is None else (expected, expected)
            if not isinstance(nbytes, int) or not limits[0] <= nbytes <= limits[1]:
                raise self.damaged(f"it gave {nbytes} bytes of {limits[1]}")
            return told, self._take(nbytes)

    def _send(self, request: Any) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead: why is told where the answer is missed
            text = json.dumps(request, default=lambda number: number.item())
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()

    def _line(self, seconds: float) -> dict[str, Any]:
        while b"\n" not in self._held:
            if len(self._held) > _MAX_LINE:
                raise self.damaged("it did not say what it is")
            self._held += self._next(seconds)
        line = self._take(self._held.index(b"\n") + 1)
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise self.damaged("it did not say what it is")
        return told

    def _take(self, nbytes: int) -> bytearray:
        """So many bytes; they are held once, however many."""
        taken = bytearray(nbytes)
        n = min(nbytes, len(self._held))
        taken[:n] = self._held[:n]
        del self._held[:n]
        while n < nbytes:
            piece = self._next(self._seconds)
            fitting = piece[: nbytes - n]
            taken[n : n + len(fitting)] = fitting
            self._held += piece[len(fitting) :]
            n += len(fitting)
        return taken

    def _next(self, seconds: float) -> bytes:
        """What it says next, waited for so long."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        if os.name == "posix":  # elsewhere a pipe cannot be waited for, and a child may hang
            with selectors.DefaultSelector() as selector:
                selector.register(fd, selectors.EVENT_READ)
                if not selector.select(seconds):
                    raise self._late(seconds)
        piece = os.read(fd, _PIECE)
        if not piece:
            raise self.damaged(_how_it_ended(self._process.wait()))
        return piece

    def _late(self, seconds: float) -> RecordingError:
        """The error for a child that says nothing; before it is ready the file is not to blame."""
        self.end()
        if self._ready:
            return RecordingError(
                f"{self._path}: reading it gave no sign of life for {seconds:.0f} seconds, "
                "and was ended. The file is damaged, or of another kind: copy it again."
            )
        return RecordingError(
            f"{self._path}: the process that was to read it had not started after {seconds:.0f} "
            "seconds, and was ended. The file was not opened: try again when the machine is less "
            "busy, or read it without isolation."
        )

    def damaged(self, what: str) -> RecordingError:
        """The error for a child that cannot go on, or that is not to be believed."""
        self.end()
        return RecordingError(
            f"{self._path}: the process that read it failed ({what}). The file is damaged, or made "
            "to do harm: copy it again, or do not use it."
        )

    def _error(self, kind: str, message: str) -> Exception:
        self.end()
        if kind == "MemoryError":
            return RecordingError(
                f"{self._path}: reading it takes more memory than a file of {size_of(self._path)} "
                "bytes should. If that is right, set max_bytes, or read it without isolation."
            )
        known = _ERRORS.get(kind)
        return known(message) if known is not None else self.damaged(f"{kind}: {message}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # what it was not told cannot be told any more
            if pipe is not None:
                pipe.close()


def _how_it_ended(status: int) -> str:
    names = {int(number): number.name for number in signal.Signals}
    return f"it died of {names.get(-status, -status)}" if status < 0 else f"exit {status}"
