"""NWB files: spikes of the units, counted in bins, or a time series.

Read by h5py, not by pynwb: the few places we need (units, intervals, a series' data, rate and
timestamps) have fixed names in the standard, whatever extensions a file has; pynwb would bring
four more libraries, load the specifications that the file itself carries, and follow links into
other files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import hdf5
from motifold.io.clocks import Clock, clock_of
from motifold.io.fills import as_missing
from motifold.io.guards import RecordingError, guard, require
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spikes import Spikes, Stretch
from motifold.io.unit_filters import Condition, chosen_units, conditions_of

OPTIONS = {"key", "bin_size", "epochs", "units", "t_start", "t_stop"}
_LISTED = 20


def read(path: Path, options: Options) -> Recording:
    """The series that ``key`` names; without it, the units' spikes in bins of ``bin_size``."""
    with guard(path, "an NWB file"), hdf5.open_file(path) as file:
        series = _list_series(file)
        if options.key is not None:
            return _from_series(path, file, _series_path(path, options.key, series), options)
        if file.get("units", getlink=True) is None:
            raise RecordingError(
                f"{path}: it has no units; name a time series with key: {_named(series)}."
            )
        return _from_units(path, file, options, series)


def _named(series: list[str]) -> str:
    return ", ".join(series[:_LISTED]) or "it has none"


# --- spikes ---------------------------------------------------------------------------------


def _from_units(path: Path, file: Any, options: Options, series: list[str]) -> Recording:
    """Counts of spikes from time 0 of the session to the last spike, or in the epochs."""
    spikes = _spikes(path, file, options)
    if options.bin_size is None:
        found = spikes.suggested()
        raise RecordingError(
            f"{path}: spikes are counted in bins: set bin_size, in seconds (from the data: "
            f"bin_size={found.seconds:g}; {found.reason}). Or name a time series with key: "
            f"{_named(series)}."
        )
    bin_size, hints = options.bin_size, spikes.hints
    if options.epochs is None:
        first = min(0.0, spikes.ends[0]) if options.t_start is None else options.t_start
        stretches = [spikes.stretch(bin_size, first, options.t_stop)]
        hints += () if options.t_start is not None else ("Bins begin at 0 s of the session.",)
    else:
        stretches = [
            Stretch(start, int((stop - start) / bin_size + 1e-6))
            for start, stop in _intervals(path, file, options)
        ]
    recording = replace(spikes, hints=hints).counted(
        bin_size, stretches, max_bytes=options.max_bytes
    )
    # Bins of one stretch from zero on need no times of their own.
    plain = len(stretches) == 1 and stretches[0].start == 0
    return recording if plain else replace(recording, timestamps=recording.times)


def _spikes(path: Path, file: Any, options: Options) -> Spikes:
    """Spike times of the units: one ragged column and where each unit's part ends."""
    times, ends, names = (
        _column(path, file, f"units/{name}", options.max_bytes)
        for name in ("spike_times", "spike_times_index", "id")
    )
    ends = ends.astype(np.int64)
    if len(names) != len(ends) or np.any(np.diff(ends) < 0) or max(ends, default=0) > len(times):
        raise RecordingError(f"{path}: the units' index does not fit their spike times: damaged.")
    starts = np.r_[0, ends[:-1]].astype(np.intp)
    parts = [times[a:b].astype(np.float64) for a, b in zip(starts, ends, strict=True)]
    kept: list[int] = list(range(len(parts)))
    hints: tuple[str, ...] = ()
    if options.units is not None:
        conditions = conditions_of(path, options.units)
        columns = _columns_of_units(path, file, conditions, len(parts), options.max_bytes)
        kept = chosen_units(path, conditions, columns, len(parts)).tolist()
        hints = (f"{len(kept)} of {len(parts)} units are taken: {options.units}.",)
    labels = tuple(f"unit {names[i]}" for i in kept)
    return Spikes(labels, tuple(parts[i] for i in kept), str(path), hints)


def _columns_of_units(
    path: Path, file: Any, conditions: list[Condition], n: int, max_bytes: int | None
) -> dict[str, Any]:
    """The columns that conditions are about, all others by their names alone."""
    columns: dict[str, Any] = {name: [] for name in file["units"] if not name.endswith("_index")}
    for condition in conditions:
        if condition.column in columns:
            cells = _column(path, file, f"units/{condition.column}", max_bytes, texts=True)
            if len(cells) != n:
                raise RecordingError(
                    f"{path}: units/{condition.column} has {len(cells)} cells for {n} units."
                )
            columns[condition.column] = cells
    return columns


def _column(
    path: Path, file: Any, name: str, max_bytes: int | None, *, texts: bool = False
) -> npt.NDArray[Any]:
    """All values of a column of a table."""
    dataset = hdf5.find_dataset(path, file, name, max_bytes, texts=texts)
    if dataset.ndim != 1:
        raise RecordingError(f"{path}: {name} has shape {dataset.shape}; it must be a column.")
    values = dataset if dataset.dtype.kind in "OS" else hdf5.values_of(path, dataset)
    return np.asarray(values[:])


def _intervals(path: Path, file: Any, options: Options) -> list[tuple[float, float]]:
    """Starts and ends of the epochs, at least one bin long."""
    name, bin_size = options.epochs, options.bin_size
    assert bin_size is not None
    columns = [
        _column(path, file, f"intervals/{name}/{part}", options.max_bytes).astype(np.float64)
        for part in ("start_time", "stop_time")
    ]
    found = [(float(a), float(b)) for a, b in zip(*columns, strict=True) if b - a >= bin_size]
    if not found:
        raise RecordingError(f"{path}: no interval of {name!r} is as long as one bin.")
    return found


# --- time series ----------------------------------------------------------------------------


def _list_series(file: Any) -> list[str]:
    """Paths of the groups that have a dataset ``data`` and a clock; links are not followed."""
    h5py = require("h5py", "nwb")
    found: list[str] = []

    def note(name: str, item: Any) -> None:
        # As links: what "in" would tell, HDF5 goes to another file for.
        there = {
            part
            for part in ("starting_time", "timestamps", "data")
            if isinstance(item, h5py.Group) and item.get(part, getlink=True) is not None
        }
        if "data" in there and len(there) > 1:
            found.append(name)

    file.visititems(note)
    return found


def _series_path(path: Path, key: str, series: list[str]) -> str:
    key = key.strip("/")
    matches = [name for name in series if name == key or name.endswith(f"/{key}")]
    if len(matches) != 1:
        what = "no time series" if not matches else f"{len(matches)} time series"
        raise RecordingError(f"{path}: {what} {key!r}. It has: {_named(series)}.")
    return matches[0]


def _from_series(path: Path, file: Any, name: str, options: Options) -> Recording:
    if any(getattr(options, name) is not None for name in OPTIONS - {"key"}):
        raise RecordingError(
            f"{path}: bin_size, epochs, units, t_start and t_stop are for units; leave them out or "
            "key."
        )
    data = hdf5.find_dataset(path, file, f"{name}/data", options.max_bytes)
    clock = _clock(path, file, name, options)
    factor = float(data.attrs.get("conversion", 1.0))
    offset = float(data.attrs.get("offset", 0.0))
    X, fills = hdf5.values_of(path, data), hdf5.fills_of(data)
    if data.ndim == 1 or factor != 1 or offset != 0:
        X = as_missing(X, fills)
        X *= factor
        X += offset
        X, fills = (X[:, None] if X.ndim == 1 else X), ()
    X = orient(X, path, None, fills)  # the standard: time first
    more: dict[str, Any] = {"starts": clock.starts, "hints": clock.hints}
    return Recording(X, str(path), clock.rate, None, clock.lengths, **more)


def _clock(path: Path, file: Any, name: str, options: Options) -> Clock:
    """By the start and the rate of a series, or by its timestamps."""
    rate = None if options.rate is None else float(options.rate)
    if file[name].get("starting_time", getlink=True) is None:
        stamps = hdf5.find_dataset(path, file, f"{name}/timestamps", options.max_bytes)
        return clock_of(np.asarray(hdf5.values_of(path, stamps)), f"{path}: {name}", rate)
    start = hdf5.find_dataset(path, file, f"{name}/starting_time")
    first = float(np.ravel(np.asarray(hdf5.values_of(path, start)))[0])
    return Clock(rate or float(start.attrs["rate"]), (first,))
