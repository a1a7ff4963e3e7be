"""Events in the formats of other libraries: pynapple's objects, intervals of NWB files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from motifold.files import check_writable, same_file, written_whole
from motifold.io.guards import RecordingError, require

_NAME = "motif_events"
_LEAST_SUPPORT = 1e-3  # seconds: pynapple has no times without a duration
_DESCRIBED = {
    "motif": "number of the motif, from 0",
    "segment": "segment of the recording, from 0",
    "start": "seconds from the start of the segment to the motif's first lag",
    "peak": "seconds of the motif's strongest lag, on the clock of this file",
    "bin": "time bin of the recording, from 0, segments stacked",
    "strength": "activation of the motif",
    "explained": "share of the recording's power there that the event explains alone",
    "observed": "share of the motif's power that was observed",
    "partial": "whether the end of the segment cuts the motif off",
}


def events_to_pynapple(events: Any, *, time_support: Any = None) -> Any:
    """Events as a pynapple ``TsGroup``: of each motif, the times at which it starts.

    Parameters
    ----------
    events : Table
        As from ``motifold.find_events``, with the columns ``motif`` and ``time`` in seconds. The
        times are on the recording's clock if ``starts`` was given there.
    time_support : pynapple.IntervalSet or None
        When the recording was made, so that rates are per second of it; what lies outside is left
        out by pynapple. None means from the first event to the last.

    Returns
    -------
    pynapple.TsGroup
        A ``Ts`` for each motif that has events, by its number: ``group[0]``.

    Examples
    --------
    >>> from motifold.findings import Table
    >>> from motifold.io import events_to_pynapple
    >>> rows = [(0, 12.5), (1, 13.0), (0, 20.25)]
    >>> events = Table([{"motif": motif, "segment": 0, "time": time} for motif, time in rows])
    >>> group = events_to_pynapple(events)
    >>> group[0].t.tolist()
    [12.5, 20.25]
    """
    pynapple = require("pynapple", "pynapple")
    if len(events) == 0:
        raise ValueError("There are no events, of which pynapple could make a TsGroup.")
    motifs, times = events["motif"].astype(int), events["time"].astype(np.float64)
    if time_support is None:
        first, last = float(times.min()), float(times.max())
        time_support = pynapple.IntervalSet(first, max(last, first + _LEAST_SUPPORT))
    members = {
        int(k): pynapple.Ts(np.sort(times[motifs == k]), time_support=time_support)
        for k in np.unique(motifs)
    }
    return pynapple.TsGroup(members, time_support=time_support)


def save_pynapple(events: Any, path: str | os.PathLike[str]) -> None:
    """Write ``events_to_pynapple`` to an npz file, which ``pynapple.load_file`` reads."""
    group = events_to_pynapple(events)
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "events.npz"
        group.save(str(part))
        _put(part, path)


def events_to_nwb(
    events: Any,
    path: str | os.PathLike[str],
    *,
    duration: float | Sequence[float],
    session: str | os.PathLike[str] | None = None,
    name: str = _NAME,
) -> None:
    """Write events as a table of intervals (``TimeIntervals``) to an NWB file.

    Parameters
    ----------
    events : Table
        As from ``motifold.find_events``. ``time``, the start of an interval, is on the recording's
        clock if ``starts`` was given there; all other columns go with it.
    path : str or path
        The file, which appears whole or not at all.
    duration : float or sequence of float
        Seconds of a motif, or of each: the length of the intervals.
    session : str, path or None, default=None
        An NWB file of the session: the new file is a copy of it with the table added, and the
        session's own is not touched. None makes a file with nothing else in it, of an unknown
        session on 1 January 1970.
    name : str, default="motif_events"
        Of the table, in the file's ``intervals``.

    Raises
    ------
    ValueError
        If there are no events, the session has a table of that name, or ``path`` is the session's
        file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from motifold.findings import Table
    >>> from motifold.io import events_to_nwb
    >>> events = Table([{"motif": 0, "segment": 0, "time": 12.5, "strength": 1.0}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "events.nwb"
    ...     events_to_nwb(events, path, duration=0.5)
    ...     path.exists()
    True
    """
    pynwb = _pynwb()
    if len(events) == 0:
        raise ValueError("There are no events: NWB has no table without rows.")
    if session is not None and same_file(session, path):
        raise ValueError(f"{os.fspath(path)} is the session's own file: give another name.")
    check_writable(path)
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "events.nwb"
        if session is None:
            file = pynwb.NWBFile(
                session_description="events of motifs, by motifold; the session is not known",
                identifier=f"motifold {name}",
                session_start_time=datetime(1970, 1, 1, tzinfo=UTC),
            )
            file.add_time_intervals(_intervals(pynwb, events, duration, name))
            with pynwb.NWBHDF5IO(str(part), "w") as io:
                io.write(file)
        else:
            shutil.copyfile(session, part)
            _add(pynwb, part, session, _intervals(pynwb, events, duration, name))
        _put(part, path)


def _pynwb() -> Any:
    try:
        return import_module("pynwb")
    except ImportError as error:
        raise ImportError(
            "Writing NWB files needs pynwb, which is not installed: pip install pynwb. (Reading "
            "them does not.)"
        ) from error


def _add(pynwb: Any, part: Path, session: Any, table: Any) -> None:
    """Add the table to a copy of the session's file."""
    try:
        io = pynwb.NWBHDF5IO(str(part), "r+")
        file = io.read()
    except Exception as error:  # whatever pynwb finds wrong with it
        raise RecordingError(f"{os.fspath(session)}: it is no NWB file ({error}).") from error
    with io:
        if table.name in (file.intervals or {}):
            raise ValueError(
                f"{os.fspath(session)} has intervals {table.name!r} already: give another name."
            )
        file.add_time_intervals(table)
        io.write(file)


def _intervals(pynwb: Any, events: Any, duration: Any, name: str) -> Any:
    table = pynwb.epoch.TimeIntervals(name=name, description="When motifs occur, by motifold.")
    columns = [column for column in events.columns if column != "time"]
    for column in columns:
        table.add_column(name=column, description=_DESCRIBED.get(column, column))
    for record in events:
        seconds = duration if np.ndim(duration) == 0 else duration[int(record["motif"])]
        more = {column: record[column] for column in columns}
        start = float(record["time"])
        table.add_row(start_time=start, stop_time=start + float(seconds), **more)
    return table


def _put(part: Path, path: str | os.PathLike[str]) -> None:
    """What was made elsewhere, whole or not at all in its place."""
    with open(part, "rb") as made, written_whole(path) as file:
        shutil.copyfileobj(made, file)
