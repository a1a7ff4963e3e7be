"""Tables of text, CSV and TSV, by NumPy."""

from __future__ import annotations

import csv
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from motifold.io.clocks import clock_hint, clock_of
from motifold.io.guards import RecordingError, guard
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES, columns_of_spikes, counted, grouped, has_spikes
from motifold.io.spikes import Spikes

OPTIONS = {"orientation", *SPIKES}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GAPS = {"", "na", "n/a", "nan", "null", "none"}


def read(path: Path, options: Options) -> Recording:
    """The table; a first line that is not all numbers is taken for the features' names."""
    kind = (options.kind or path.suffix.lstrip(".")).lower()
    if has_spikes(options):
        with guard(path, "a table of spikes"):
            return counted(_spikes_of_text(path, options), options)
    with guard(path, "a table of numbers"):
        names, X, dates = _from_text(path, kind, options)
    rate = None if options.rate is None else float(options.rate)
    if options.orientation == "features_first":
        if options.time is not None:
            raise RecordingError(f"{path}: a time column needs time in rows: leave time out.")
        return Recording(orient(X, path, options.orientation), str(path), rate)
    more: dict[str, Any] = {}
    if options.time is not None:
        column = _column(path, names, options.time)
        times = X[:, column].astype("datetime64[us]") if dates else X[:, column]
        clock = clock_of(times, str(path), rate)
        rate, more = clock.rate, {"lengths": clock.lengths, "starts": clock.starts}
        X = np.delete(X, column, axis=1)
        names = [*names[:column], *names[column + 1 :]] if names else None
        more["hints"] = clock.hints
    more["hints"] = (*more.get("hints", ()), *clock_hint(names))
    named = None if names is None else tuple(names)
    return Recording(orient(X, path, None), str(path), rate, named, **more)


def _column(path: Path, names: list[str] | None, wanted: str) -> int:
    if names is None or wanted not in names:
        listed = ", ".join(names or []) or "no names"
        raise RecordingError(f"{path}: there is no column {wanted!r}; it has {listed}.")
    return names.index(wanted)


# --- spikes ---------------------------------------------------------------------------------


def _spikes_of_text(path: Path, options: Options) -> Spikes:
    kind = (options.kind or path.suffix.lstrip(".")).lower()
    with open(path, newline="", encoding="utf-8-sig") as file:
        delimiter = _delimiter(file, kind)
        first = next(csv.reader(file, delimiter=delimiter), [])
        if len(first) < 2:
            raise RecordingError(
                f"{path}: it has {len(first)} column; spikes have two, unit and time."
            )
        names = None if _are_numbers(first[-2:]) else [name.strip() for name in first]
        columns = columns_of_spikes(path, names, len(first), options.unit, options.time)
        unit, time, hints = columns
        start = 0 if names is None else 1
        units, times = (
            _loaded(path, file, start, delimiter, which, kind_of)
            for which, kind_of in ((unit, str), (time, float))
        )
    return grouped(path, np.char.strip(units), times, hints)


def _loaded(path: Path, file: Any, skip: int, delimiter: str, column: int, kind: type) -> Any:
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's on a table without rows: refused later
            return np.loadtxt(
                file, kind, delimiter=delimiter, ndmin=1, comments=None, quotechar='"',
                usecols=column, skiprows=skip, encoding=None,
            )  # fmt: skip
    except ValueError as error:
        told = str(error).split("; use ")[0]
        raise RecordingError(
            f"{path}: {told} (rows count from 0, after the line of names). The column of times "
            "must be numbers, in seconds: name another one with time, or mend the row."
        ) from error


# --- recordings -----------------------------------------------------------------------------


def _delimiter(file: Any, kind: str) -> str:
    """What separates columns; of a .txt file as it looks."""
    if kind == "csv":  # with semicolons where a comma is the decimal mark
        first = file.readline()
        file.seek(0)
        return ";" if ";" in first and "," not in first else ","
    if kind == "tsv":
        return "\t"
    found = csv.Sniffer().sniff(file.read(4096), delimiters=",;\t ").delimiter
    file.seek(0)
    return found


def _from_text(
    path: Path, kind: str, options: Options
) -> tuple[list[str] | None, np.ndarray, bool]:
    """The names, if there are any, the numbers, and whether the times are dates.

    With missing="mask" empty cells are NaN. Dates are microseconds since 1970.
    """
    dates: list[str] = []

    def date_or_number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            found = datetime.fromisoformat(cell.strip())
        dates.append(cell) if not dates else None
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return float((found - _EPOCH) // timedelta(microseconds=1))

    with open(path, newline="", encoding="utf-8-sig") as file:
        delimiter = _delimiter(file, kind)
        first = next(csv.reader(file, delimiter=delimiter), [])
        names = None if _are_numbers(first) else [name.strip() for name in first]
        if names is None:
            file.seek(0)
        gaps = options.missing == "mask"
        converters: Any = _number_or_gap if gaps else None
        if options.time is not None and options.orientation != "features_first":
            column = _column(path, names, options.time)
            others = range(len(first)) if gaps else ()
            converters = dict.fromkeys(others, _number_or_gap) | {column: date_or_number}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy's on a table without rows: refused later
                X = np.loadtxt(
                    file,
                    delimiter=delimiter,
                    ndmin=2,
                    comments=None,
                    quotechar='"',
                    encoding=None,  # numpy 1 would hand bytes to the converter
                    converters=converters,
                )
        except ValueError as error:
            told = str(error).split("; use ")[0]
            raise RecordingError(
                f"{path}: {told} (rows count from 0, after the line of names). Remove columns "
                'that are no numbers; fill empty cells, or take them as missing: missing="mask".'
            ) from error
    return names, X, bool(dates)


def _number_or_gap(cell: str) -> float:
    return np.nan if cell.strip().lower() in _GAPS else float(cell)


def _are_numbers(cells: list[str]) -> bool:
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return False
    return True
