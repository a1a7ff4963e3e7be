"""Parquet files by polars (it needs no second library for it): columns are features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.clocks import clock_hint, clock_of
from motifold.io.fills import float_type
from motifold.io.frames import from_frame
from motifold.io.guards import RecordingError, check_expansion, guard, require
from motifold.io.matrices import LazyMatrix
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES, columns_of_spikes, counted, grouped, has_spikes
from motifold.io.spikes import Spikes

OPTIONS = {"orientation", *SPIKES}


def read(path: Path, options: Options) -> Recording:
    """The table, which stays in its file until its rows are asked for."""
    if has_spikes(options):
        with guard(path, "a table of spikes"):
            return counted(_spikes(path, options), options)
    with guard(path, "a parquet file"):
        lazy = _scan(path)
        n_rows = lazy.select(require("polars", "io").len()).collect().item()
        schema = lazy.collect_schema()
        nbytes = 8 * n_rows * len(schema)
        check_expansion(path, nbytes, path.stat().st_size, options.max_bytes)
        if options.orientation == "features_first":
            raise RecordingError(f"{path}: columns of a parquet file are features; transpose it.")
        rate = None if options.rate is None else float(options.rate)
        more: dict[str, Any] = {"hints": ()}
        if options.time is not None:
            if options.time not in schema:
                raise RecordingError(
                    f"{path}: there is no column {options.time!r}; it has {', '.join(schema)}."
                )
            times = lazy.select(options.time).collect().to_series()
            clock = clock_of(times.to_numpy(), str(path), rate)
            rate = clock.rate
            more = {"lengths": clock.lengths, "starts": clock.starts, "hints": clock.hints}
            lazy = lazy.drop(options.time)
        head = from_frame(lazy.head(1).collect(), source=str(path))
        table = _Table(lazy, path, (n_rows, head.shape[1]), float_type(head.X.dtype))
    names = head.feature_names
    more["hints"] += clock_hint(list(names or ()))
    return Recording(LazyMatrix(table, path, transposed=False), str(path), rate, names, **more)


def _scan(path: Path) -> Any:
    """The file as polars reads it, lazily: no glob and no partitions, this file and no other."""
    return require("polars", "io").scan_parquet(path, glob=False, hive_partitioning=False)


def _spikes(path: Path, options: Options) -> Spikes:
    polars = require("polars", "io")
    lazy = _scan(path)
    names = list(lazy.collect_schema())
    n_rows = lazy.select(polars.len()).collect().item()
    check_expansion(path, 16 * n_rows, path.stat().st_size, options.max_bytes)
    columns = columns_of_spikes(path, names, len(names), options.unit, options.time)
    unit, time, hints = columns
    frame = lazy.select(names[unit], names[time]).collect()
    units, times = (frame[names[i]] for i in (unit, time))
    if not times.dtype.is_numeric():
        raise RecordingError(f"{path}: column {names[time]!r} is no number of seconds.")
    if units.null_count():
        raise RecordingError(f"{path}: column {names[unit]!r} has empty cells: remove such rows.")
    seconds = times.cast(polars.Float64).fill_null(float("nan")).to_numpy()
    return grouped(path, units.cast(polars.String).to_numpy().astype(str), seconds, hints)


class _Table:
    """A parquet file that is read by slices of rows; polars leaves out the groups before them."""

    def __init__(self, lazy: Any, path: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._lazy, self._path = lazy, path
        self.shape, self.dtype, self.ndim = shape, dtype, 2

    def __getitem__(self, tile: tuple[slice, slice]) -> npt.NDArray[Any]:
        (a, b, _), (left, right, _) = (
            part.indices(size) for part, size in zip(tile, self.shape, strict=True)
        )
        lazy = self._lazy
        if (left, right) != (0, self.shape[1]):
            lazy = lazy.select(list(lazy.collect_schema())[left:right])
        found = from_frame(lazy.slice(a, b - a).collect(), source=str(self._path))
        return np.ascontiguousarray(found.X, self.dtype)
