"""NWB files: spikes of the units, counted in bins, or a time series.

Read by h5py, not by pynwb: the few places we need (units, intervals, a series' data, rate and
timestamps) have fixed names in the standard, whatever extensions a file has; pynwb would bring
four more libraries, load the specifications that the file itself carries, and follow links into
other files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import hdf5
from motifold.io.fills import as_missing
from motifold.io.guards import RecordingError, check_expansion, guard, require
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording, rate_of_times

OPTIONS = {"key", "bin_size", "epochs"}
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
        if options.bin_size is None:
            raise RecordingError(
                f"{path}: spikes are counted in bins: set bin_size, in seconds. Or name a time "
                f"series with key: {_named(series)}."
            )
        return _from_units(path, file, options)


def _named(series: list[str]) -> str:
    return ", ".join(series[:_LISTED]) or "it has none"


# --- spikes ---------------------------------------------------------------------------------


def _from_units(path: Path, file: Any, options: Options) -> Recording:
    """Counts of spikes from time 0 of the session to the last spike, or in the epochs."""
    assert options.bin_size is not None
    spikes = _spikes(path, file, options.max_bytes)
    stamps = np.concatenate([times for _, times in spikes]) if spikes else np.empty(0)
    if stamps.size == 0 or not np.isfinite(stamps).all():
        raise RecordingError(f"{path}: the units have no spikes, or spikes without a time.")
    if options.epochs is None:
        first = min(0.0, float(stamps.min()))
        intervals = [(first, float(stamps.max()) + options.bin_size)]
    else:
        intervals = _intervals(path, file, options)
    lengths = [int((stop - start) / options.bin_size + 1e-6) for start, stop in intervals]
    # Bins of one stretch from zero on need no clock of their own.
    has_clock = len(intervals) > 1 or intervals[0][0] != 0
    n_bytes = sum(lengths) * (4 * len(spikes) + 8 * has_clock)
    check_expansion(path, n_bytes, 8 * stamps.size, options.max_bytes)
    X = np.zeros((sum(lengths), len(spikes)), np.float32)
    starts = np.r_[0, np.cumsum(lengths)]
    for i, (begin, _) in enumerate(intervals):
        for unit, (_, times) in enumerate(spikes):
            bins = np.floor((times - begin) / options.bin_size + 1e-9)
            inside = bins[(bins >= 0) & (bins < lengths[i])].astype(np.intp)
            np.add.at(X[:, unit], starts[i] + inside, 1)
    clock = None
    if has_clock:
        parts = zip([begin for begin, _ in intervals], lengths, strict=True)
        clock = np.concatenate([b + options.bin_size * np.arange(n) for b, n in parts])
    return Recording(
        X,
        str(path),
        1 / options.bin_size,
        tuple(f"unit {name}" for name, _ in spikes),
        tuple(lengths) if len(lengths) > 1 else None,
        timestamps=clock,
    )


def _spikes(path: Path, file: Any, max_bytes: int | None) -> list[tuple[str, npt.NDArray[Any]]]:
    """Names and spike times of the units: one ragged column and where each unit's part ends."""
    times, ends, names = (
        _column(path, file, f"units/{name}", max_bytes)
        for name in ("spike_times", "spike_times_index", "id")
    )
    ends = ends.astype(np.int64)
    if len(names) != len(ends) or np.any(np.diff(ends) < 0) or max(ends, default=0) > len(times):
        raise RecordingError(f"{path}: the units' index does not fit their spike times: damaged.")
    starts = np.r_[0, ends[:-1]].astype(np.intp)
    parts = [times[a:b].astype(np.float64) for a, b in zip(starts, ends, strict=True)]
    return [(str(name), part) for name, part in zip(names, parts, strict=True)]


def _column(path: Path, file: Any, name: str, max_bytes: int | None) -> npt.NDArray[Any]:
    """All values of a column of a table."""
    dataset = hdf5.find_dataset(path, file, name, max_bytes)
    if dataset.ndim != 1:
        raise RecordingError(f"{path}: {name} has shape {dataset.shape}; it must be a column.")
    return np.asarray(hdf5.values_of(path, dataset))


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
    if options.bin_size is not None or options.epochs is not None:
        raise RecordingError(f"{path}: bin_size and epochs are for units; leave them out or key.")
    data = hdf5.find_dataset(path, file, f"{name}/data", options.max_bytes)
    rate = None if options.rate is None else float(options.rate)
    if rate is None and file[name].get("starting_time", getlink=True) is not None:
        rate = float(hdf5.find_dataset(path, file, f"{name}/starting_time").attrs["rate"])
    elif rate is None:
        stamps = hdf5.find_dataset(path, file, f"{name}/timestamps", options.max_bytes)
        rate = rate_of_times(np.asarray(hdf5.values_of(path, stamps)), f"{path}: {name}")
    factor = float(data.attrs.get("conversion", 1.0))
    offset = float(data.attrs.get("offset", 0.0))
    X, fills = hdf5.values_of(path, data), hdf5.fills_of(data)
    if data.ndim == 1 or factor != 1 or offset != 0:
        X = as_missing(X, fills)
        X *= factor
        X += offset
        X, fills = (X[:, None] if X.ndim == 1 else X), ()
    return Recording(orient(X, path, None, fills), str(path), rate)  # the standard: time first
