"""Rows as they come, from a pipe or a file that is still being written."""

from __future__ import annotations

import io
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from motifold.io.guards import RecordingError, check_numbers

_BYTES = 2**16  # read at a time
_POLL = 0.2  # seconds between two looks at a file that may grow
_LONGEST_LINE = 2**24  # bytes; a line without end is no table


class Rows(NamedTuple):
    """Some rows, and the number of the first: the line of a table, from 1, or the row, from 0."""

    values: npt.NDArray[np.float64]
    first: int


class RowReader:
    """Rows of numbers from a pipe, or from a file that grows: text (csv, tsv), or npy.

    Rows come as soon as they are whole. A bad one is an error that names its line; the rows before
    it have come by then. A first line without a number has the names of the features.

    Parameters
    ----------
    file : an open binary file
    name : for errors
    idle : seconds without a new byte after which a file that has ended ends the rows: 0 for a
        pipe, whose end is one; None to wait for ever
    signed : whether numbers may be below zero
    tick : seconds without a new row after which none are given, so that whoever waits can do
        something else; None: wait
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        *,
        idle: float | None = 0.0,
        signed: bool = True,
        tick: float | None = None,
    ) -> None:
        self._file, self._name, self._idle, self._signed = file, name, idle, signed
        self._tick = tick
        self._own = False
        self.feature_names: tuple[str, ...] | None = None
        self.n_features: int | None = None

    @classmethod
    def open(cls, path: Path, *, idle: float | None = None, **settings: Any) -> RowReader:
        """Of a file that grows."""
        reader = cls(path.open("rb", buffering=0), str(path), idle=idle, **settings)
        reader._own = True  # to be closed
        return reader

    def __iter__(self) -> Iterator[Rows]:
        start = self._more(len(npy.MAGIC_PREFIX))
        if start.startswith(npy.MAGIC_PREFIX):
            yield from self._rows_of_npy(start)
        else:
            yield from self._rows_of_text(start)

    def __enter__(self) -> RowReader:
        return self

    def __exit__(self, *error: object) -> None:
        if self._own:
            self._file.close()

    # --- bytes ------------------------------------------------------------------------------

    def _read(self) -> bytes | None:
        """What there is, at least a byte; nothing at the end; None when it is time for a tick."""
        if not _is_real(self._file):
            return self._file.read(_BYTES)
        waited = 0.0
        while True:
            if self._tick is not None:
                ready, _, _ = select.select([self._file], [], [], self._tick)
                if not ready:
                    return None
            # Not ``read``, which would wait until a block is full.
            found = os.read(self._file.fileno(), _BYTES)
            if found:
                return found
            if self._idle is not None and waited >= self._idle:
                return b""
            threading.Event().wait(_POLL)  # Ctrl-C ends it
            waited += _POLL
            if self._tick is not None and waited % self._tick < _POLL:
                self._idle = None if self._idle is None else self._idle - waited
                return None

    def _more(self, n: int) -> bytes:
        """At least so many bytes, unless it ends before."""
        found = b""
        while len(found) < n:
            part = self._read()
            if part == b"":
                break
            found += part or b""
        return found

    # --- text -------------------------------------------------------------------------------

    def _rows_of_text(self, rest: bytes) -> Iterator[Rows]:
        line = 1
        ended = False
        while not ended:
            *lines, rest = rest.split(b"\n")
            if lines:
                yield from self._parsed(lines, line)
                line += len(lines)
            if len(rest) > _LONGEST_LINE:
                raise self._error(line, "it does not end: this is no table of numbers")
            part = self._read()
            ended = part == b""
            if part is None:
                yield Rows(np.empty((0, self.n_features or 0)), line)
            rest += part or b""
        if rest.strip():
            yield from self._parsed([rest], line)

    def _parsed(self, lines: list[bytes], first: int) -> Iterator[Rows]:
        """The rows of some lines, those before a bad one first."""
        good: list[list[float]] = []
        begin = first
        for number, raw in enumerate(lines, start=first):
            try:
                row = self._row(raw, number)
            except RecordingError:
                if good:
                    yield Rows(np.array(good), begin)
                raise
            if row is None:
                continue
            if not good:
                begin = number
            good.append(row)
        if good:
            yield Rows(np.array(good), begin)

    def _row(self, raw: bytes, number: int) -> list[float] | None:
        """The numbers of a line; None if it has none to give."""
        text = raw.decode("utf-8", "replace").strip()
        if not text:
            return None
        cells = text.replace("\t", ",").replace(";", ",")
        parts = cells.split(",") if "," in cells else cells.split()
        row = [_number(part) for part in parts]
        if self.n_features is None and all(value is None for value in row):
            if self.feature_names is not None:
                raise self._error(number, f"{parts[0].strip()[:40]!r} is no number")
            self.feature_names = tuple(part.strip() for part in parts)
            return None
        width = self.n_features or (len(self.feature_names) if self.feature_names else len(row))
        if len(row) != width:
            raise self._error(number, f"it has {len(row)} numbers; the others have {width}")
        self.n_features = width
        for column, (value, part) in enumerate(zip(row, parts, strict=True)):
            below = value is not None and value < 0 and not self._signed
            if value is None or not np.isfinite(value) or below:
                what = "is no number" if value is None else "is missing or infinite"
                what = "is below zero (a model of --negatives keep takes it)" if below else what
                told = f"{part.strip()[:40]!r}, column {column}, {what}"
                raise self._error(number, told)
        return row  # type: ignore[return-value]

    def _error(self, line: int, told: str) -> RecordingError:
        return RecordingError(
            f"{self._name}: line {line}: {told}. What came before it has been taken; mend the line "
            "and go on from there."
        )

    # --- npy --------------------------------------------------------------------------------

    def _rows_of_npy(self, start: bytes) -> Iterator[Rows]:
        head = start + self._more(10 - len(start)) if len(start) < 10 else start
        size = int.from_bytes(head[8:10], "little") if head[6:7] == b"\x01" else 0
        if len(head) < 10 + size:
            head += self._more(10 + size - len(head))
        try:
            memory = io.BytesIO(head)
            npy.read_magic(memory)
            shape, fortran, dtype = npy.read_array_header_1_0(memory)
        except ValueError as error:
            raise RecordingError(
                f"{self._name}: no npy file that can be followed ({error})."
            ) from error
        check_numbers(dtype, Path(self._name))
        if len(shape) != 2 or fortran:
            raise RecordingError(
                f"{self._name}: an npy file that is followed must have rows of time bins one after "
                f"another (C order, two axes); it has shape {shape}."
            )
        self.n_features = width = int(shape[1])
        rest, row = head[memory.tell() :], 0
        while True:  # the rows that the header says, and those that are written behind them
            n = len(rest) // (width * dtype.itemsize)
            if n:
                taken = n * width * dtype.itemsize
                values = np.frombuffer(rest[:taken], dtype).reshape(n, width).astype(np.float64)
                rest = rest[taken:]
                yield from self._finite(values, row)
                row += n
            part = self._read()
            if part == b"":
                return
            if part is None:
                yield Rows(np.empty((0, width)), row)
            rest += part or b""

    def _finite(self, values: npt.NDArray[np.float64], first: int) -> Iterator[Rows]:
        fine = np.isfinite(values) & (self._signed | (values >= 0))
        bad = ~fine.all(axis=1)
        good = int(np.argmax(bad)) if bad.any() else len(values)
        if good:
            yield Rows(values[:good], first)
        if good < len(values):
            raise RecordingError(
                f"{self._name}: row {first + good} has a value that is missing, infinite or, "
                "without --negatives keep, below zero. What came before it has been taken."
            )


def _is_real(file: Any) -> bool:
    """Whether the system knows the file; one in memory, as in tests, it does not."""
    try:
        file.fileno()
    except (OSError, AttributeError, ValueError):
        return False
    return True


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
