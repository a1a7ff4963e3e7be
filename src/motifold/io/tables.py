"""Tables: CSV and TSV by NumPy, parquet by polars (it needs no second library for it)."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np

from motifold.io.fills import float_type
from motifold.io.frames import from_frame
from motifold.io.guards import RecordingError, check_expansion, guard, require
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording, rate_of_times

OPTIONS = {"orientation", "time"}
_CLOCKS = {"time", "t", "times", "timestamp", "timestamps", "seconds", "time_s"}
_BLOCK_BYTES = 2**25  # of a parquet file, turned into rows at a time
_GAPS = {"", "na", "n/a", "nan", "null", "none"}


def read(path: Path, options: Options) -> Recording:
    """The table; a first line that is not all numbers is taken for the features' names."""
    kind = options.kind or path.suffix.lstrip(".")
    if kind.lower() == "parquet":
        return _from_parquet(path, options)
    with guard(path, "a table of numbers"):
        names, X = _from_text(path, kind.lower(), options.missing == "mask")
    rate = None if options.rate is None else float(options.rate)
    if options.orientation == "features_first":
        if options.time is not None:
            raise RecordingError(f"{path}: a time column needs time in rows: leave time out.")
        return Recording(orient(X, path, options.orientation), str(path), rate)
    if options.time is not None:
        if names is None or options.time not in names:
            listed = ", ".join(names or []) or "no names"
            raise RecordingError(f"{path}: there is no column {options.time!r}; it has {listed}.")
        column = names.index(options.time)
        rate = rate or rate_of_times(X[:, column], str(path))
        X = np.delete(X, column, axis=1)
        names = [*names[:column], *names[column + 1 :]]
    return Recording(
        orient(X, path, None),
        str(path),
        rate,
        None if names is None else tuple(names),
        hints=_clock_hint(names),
    )


def _clock_hint(names: list[str] | None) -> tuple[str, ...]:
    clocks = [name for name in names or [] if name.strip().lower() in _CLOCKS]
    if not clocks:
        return ()
    return (f"The column {clocks[0]!r} is taken for a feature; if it is the clock, set time.",)


def _from_text(path: Path, kind: str, gaps: bool) -> tuple[list[str] | None, np.ndarray]:
    """The names, if there are any, and the numbers; with ``gaps`` empty cells are NaN."""
    delimiter = "\t" if kind == "tsv" else ","
    with open(path, newline="", encoding="utf-8-sig") as file:
        if kind == "txt":
            delimiter = csv.Sniffer().sniff(file.read(4096), delimiters=",;\t ").delimiter
            file.seek(0)
        first = next(csv.reader(file, delimiter=delimiter), [])
        names = None if _are_numbers(first) else [name.strip() for name in first]
        if names is None:
            file.seek(0)
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
                    converters=_number_or_gap if gaps else None,
                )
        except ValueError as error:
            told = str(error).split(";")[0]
            raise RecordingError(
                f"{path}: {told} (rows count from 0, after the line of names). Remove columns "
                'that are no numbers; fill empty cells, or take them as missing: missing="mask".'
            ) from error
    return names, X


def _number_or_gap(cell: str) -> float:
    return np.nan if cell.strip().lower() in _GAPS else float(cell)


def _are_numbers(cells: list[str]) -> bool:
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return False
    return True


def _from_parquet(path: Path, options: Options) -> Recording:
    polars = require("polars", "io")
    with guard(path, "a parquet file"):
        # No glob and no partitions: this file and no other.
        lazy = polars.scan_parquet(path, glob=False, hive_partitioning=False)
        n_rows = lazy.select(polars.len()).collect().item()
        schema = lazy.collect_schema()
        nbytes = 8 * n_rows * len(schema)
        check_expansion(path, nbytes, path.stat().st_size, options.max_bytes)
        if options.orientation == "features_first":
            raise RecordingError(f"{path}: columns of a parquet file are features; transpose it.")
        rate = None if options.rate is None else float(options.rate)
        if options.time is not None:
            if options.time not in schema:
                listed = ", ".join(schema)
                raise RecordingError(
                    f"{path}: there is no column {options.time!r}; it has {listed}."
                )
            clock = lazy.select(options.time).collect().to_series()
            rate = rate or rate_of_times(clock.to_numpy(), str(path))
            lazy = lazy.drop(options.time)
        step = max(1, _BLOCK_BYTES // (8 * max(1, len(schema))))
        head = from_frame(lazy.head(step).collect(), source=str(path))
        X = np.empty((n_rows, head.shape[1]), float_type(head.X.dtype))
        for a in range(0, n_rows, step):
            part = head if a == 0 else from_frame(lazy.slice(a, step).collect(), source=str(path))
            X[a : a + step] = part.X
    names = head.feature_names
    return Recording(X, str(path), rate, names, hints=_clock_hint(list(names or ())))
