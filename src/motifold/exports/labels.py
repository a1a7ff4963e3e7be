"""Events as labels of sound editors and annotations of MNE: text that those programs open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from motifold.files import write_whole


def write_labels(
    events: Any,
    path: str | PathLike[str],
    to: str,
    *,
    duration: float,
    names: Mapping[int, str] | None = None,
) -> None:
    r"""Write events as labels of another program.

    Parameters
    ----------
    events : Table
        As from ``motifold.find_events``, with times in seconds.
    path : str or path
        The file, which is replaced only when it has been written whole.
    to : {"audacity", "raven", "mne"}
        A label track of Audacity (txt), a selection table of Raven (txt), or annotations that
        ``mne.read_annotations`` reads (txt).
    duration : float
        Seconds from an event's start to its end: the length of a motif.
    names : mapping of int to str, or None
        What to call each motif; "motif 0" where nothing is said.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from motifold.exports import write_labels
    >>> from motifold.findings import Table
    >>> events = Table([{"motif": 0, "time": 1.5, "strength": 2.0}])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.txt"
    ...     write_labels(events, path, "audacity", duration=0.25)
    ...     path.read_text()
    '1.500000\t1.750000\tmotif 0\n'
    """
    if to not in LABELS:
        raise ValueError(f"to must be one of {', '.join(LABELS)}, not {to!r}.")
    called = names or {}
    rows = [
        (
            float(event["time"]),
            float(event["time"]) + duration,
            _one_line(called.get(int(event["motif"]), f"motif {int(event['motif'])}")),
            float(event["strength"]),
        )
        for event in events.records
    ]
    rows.sort(key=lambda row: row[:2])
    write_whole(Path(path), LABELS[to](rows))


_Row = tuple[float, float, str, float]


def _audacity(rows: list[_Row]) -> str:
    return "".join(f"{start:.6f}\t{end:.6f}\t{name}\n" for start, end, name, _ in rows)


def _raven(rows: list[_Row]) -> str:
    """One selection a row; Raven numbers them from 1, and finds the rest by the heads."""
    head = ["Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Annotation"]
    lines = ["\t".join([*head, "Strength"])]
    for number, (start, end, name, strength) in enumerate(rows, 1):
        times = f"{start:.6f}\t{end:.6f}"
        lines.append(f"{number}\tSpectrogram 1\t1\t{times}\t{name}\t{strength:.6g}")
    return "\n".join(lines) + "\n"


def _mne(rows: list[_Row]) -> str:
    """MNE's own text format; a comma would end a description there."""
    head = "# MNE-Annotations\n# onset, duration, description\n"
    lines = [
        f"{start:.6f},{end - start:.6f},{name.replace(',', ';')}\n" for start, end, name, _ in rows
    ]
    return head + "".join(lines)


LABELS: dict[str, Callable[[list[_Row]], str]] = {
    "audacity": _audacity,
    "raven": _raven,
    "mne": _mne,
}


def _one_line(name: str) -> str:
    """Tabs and line ends would be read as other fields."""
    return " ".join(name.split())
