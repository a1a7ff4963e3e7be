"""Long tables of spikes, a row for each (unit, time): what they look like, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from motifold.data.spike_lists import FEWEST
from motifold.io.guards import RecordingError
from motifold.io.recording import Recording
from motifold.io.spikes import Spikes, ends_told

if TYPE_CHECKING:
    from motifold.io.reading import Options

_UNITS = {"unit", "neuron", "cell", "cluster", "id", "channel", "electrode", "train"}
_SECONDS = {"time", "t", "times", "timestamp", "timestamps", "seconds", "time_s", "sec"}
SPIKES = frozenset({"unit", "time", "bin_size", "t_start", "t_stop"})  # options of such tables
Texts = npt.NDArray[Any]


def told_of_spikes(
    source: str, X: Any, names: Sequence[str] | None, columns: tuple[int, int]
) -> str:
    """What such a table looks like, and the options that count the spikes."""
    from motifold.io.binning import suggest_bin_size

    table = np.asarray(X, np.float64)
    unit, time = columns
    ids = np.unique(table[:, unit])
    found = suggest_bin_size([table[table[:, unit] == i, time] for i in ids])
    called = names or ("0", "1")
    return (
        f"{source}: this looks like a list of spikes, not like a recording: column "
        f"{called[unit]!r} has {len(ids)} ids, column {called[time]!r} times from "
        f"{table[:, time].min():g} to {table[:, time].max():g} s. Count the spikes in bins: "
        f'unit="{called[unit]}" time="{called[time]}" bin_size={found.seconds:g} ({found.reason}). '
        'If its rows are time bins all the same, say so: orientation="time_first".'
    )


def columns_of_spikes(
    path: Any, names: list[str] | None, width: int, unit: str | None, time: str | None
) -> tuple[int, int, tuple[str, ...]]:
    """The columns of units and of times, as named (or numbered), or as their names say."""
    found = [_column(path, names, width, wanted) for wanted in (unit, time)]
    hints = []
    for i, (known, what) in enumerate([(_UNITS, "unit"), (_SECONDS, "time")]):
        if found[i] is None:
            found[i] = _guessed(path, names, width, known, what, found[1 - i])
            called = found[i] if names is None else names[found[i] or 0]
            hints.append(f"Column {called!r} is taken for the {what} of each spike.")
    which, when = (int(column or 0) for column in found)
    if which == when:
        raise RecordingError(f"{path}: unit and time are the same column; give two.")
    return which, when, tuple(hints)


def _column(path: Any, names: list[str] | None, width: int, wanted: str | None) -> int | None:
    if wanted is None:
        return None
    if names is not None and wanted in names:
        return names.index(wanted)
    if names is None and wanted.isdecimal() and int(wanted) < width:
        return int(wanted)
    has = ", ".join(names) if names else f"no names: give numbers from 0 to {width - 1}"
    raise RecordingError(f"{path}: there is no column {wanted!r}; it has {has}.")


def _guessed(
    path: Any, names: list[str] | None, width: int, known: set[str], what: str, other: int | None
) -> int:
    """By its name, or as the only one that is left."""
    words = [set(name.strip().lower().replace("_", " ").split()) for name in names or []]
    likely = [i for i, parts in enumerate(words) if parts & known and i != other]
    if len(likely) == 1:
        return likely[0]
    if width == 2 and other is not None:
        return 1 - other
    listed = ", ".join(names) if names else f"{width} columns without names, numbered from 0"
    raise RecordingError(
        f"{path}: bin_size is for spikes, and it is not clear which column has the {what} of each: "
        f"name it with {what}. It has {listed}."
    )


def grouped(
    path: Any, units: Texts, times: npt.NDArray[np.float64], hints: tuple[str, ...] = ()
) -> Spikes:
    """Spikes of a table, by units in their order; rows count from 0."""
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise RecordingError(
            f"{path}: row {bad[0]} (from 0, after the line of names) has no time, of unit "
            f"{units[bad[0]]}. Remove such rows."
        )
    names, which = np.unique(units, return_inverse=True)
    labels, order = _ordered([str(name) for name in names])
    by_unit = np.argsort(which, kind="stable")
    parts = np.split(times[by_unit], np.cumsum(np.bincount(which, minlength=len(names)))[:-1])
    if len(times) and not (times % 1).any() and len(times) > FEWEST:
        hints += (
            "All times are whole numbers: if they are samples or milliseconds, make them seconds "
            "first.",
        )
    if len(times) and times.min() < 0:
        hints += (f"Times are negative, from {times.min():g} s on; the bins begin there.",)
    return Spikes(tuple(labels[i] for i in order), tuple(parts[i] for i in order), str(path), hints)


def _ordered(names: list[str]) -> tuple[list[str], list[int]]:
    """Names, whole numbers as such, and their order: that of numbers if all are."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return names, list(range(len(names)))
    labels = [
        str(int(number)) if number.is_integer() else name
        for name, number in zip(names, numbers, strict=True)
    ]
    return labels, sorted(range(len(names)), key=numbers.__getitem__)


# --- counts ---------------------------------------------------------------------------------


def has_spikes(options: Options) -> bool:
    """Whether the options say that a table has a row for each spike."""
    return options.unit is not None or options.bin_size is not None


def counted(spikes: Spikes, options: Options) -> Recording:
    """The recording of counts, as the options say."""
    if options.rate is not None:
        raise RecordingError(
            f"{spikes.source}: the rate of counts follows from bin_size; leave rate out."
        )
    bin_size = spikes.needed_bin_size(options.bin_size)
    stretch = spikes.stretch(bin_size, options.t_start, options.t_stop)
    found = spikes.counted(bin_size, [stretch], max_bytes=options.max_bytes)
    told = ends_told(found, options.t_start, options.t_stop)
    return replace(found, hints=(*found.hints, *told))


def counted_rows(recording: Recording, options: Options) -> Recording:
    """The same of a matrix, each row of which is a spike; columns are numbered from 0."""
    table = np.asarray(recording.X)
    width = table.shape[1]
    unit, time, hints = columns_of_spikes(recording.source, None, width, options.unit, options.time)
    ids, times = table[:, unit], table[:, time].astype(np.float64)
    if not np.isfinite(ids).all():
        raise RecordingError(f"{recording.source}: column {unit} has rows without a unit.")
    return counted(grouped(recording.source, ids, times, hints), options)
