"""What any signal does around the events of motifs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.data.given import takes_recordings
from motifold.data.masked import with_nan
from motifold.data.validation import check_recording, is_list_of_segments, is_sparse
from motifold.findings.events import checked_starts
from motifold.findings.formerly import rate_by_place
from motifold.findings.overlap import Floats
from motifold.findings.rows import RowsOnDemand
from motifold.findings.table import Table


@dataclass(frozen=True)
class EventAverage:
    """What a signal does around the events of each motif.

    Attributes
    ----------
    motifs : ndarray of shape (M,)
        The motifs that have events, in rising order.
    times : ndarray of shape (n_times,)
        Seconds from the event (the motif's lag 0).
    mean : ndarray of shape (M, n_times, n_channels)
        Average over events; NaN where no event has a sample.
    standard_error : ndarray of shape (M, n_times, n_channels)
        Of that average; NaN for fewer than two samples.
    counts : ndarray of shape (M, n_times)
        Number of events that have a sample at that time.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import Table, event_triggered_average
    >>> events = Table([{"motif": 3, "segment": 0, "time": t} for t in (2.0, 5.0)])
    >>> average = event_triggered_average(np.ones((100, 2)), events, (-0.5, 0.5), rate=10)
    >>> average.motifs.tolist(), average.mean.shape, average.counts.max().tolist()
    ([3], (1, 11, 2), 2)
    """

    motifs: npt.NDArray[np.intp]
    times: Floats
    mean: Floats
    standard_error: Floats
    counts: npt.NDArray[np.intp]


@rate_by_place
@takes_recordings
def event_triggered_average(
    signal: Any,
    events: Table,
    window: tuple[float, float],
    *,
    rate: float,
    lengths: Any = None,
    segments: Any = None,
    starts: Any = None,
) -> EventAverage:
    """Average a signal around the events of each motif.

    The signal may be X itself or anything recorded at the same time, at its own sampling rate.
    Without ``starts``, both start at time 0 of their segment. Samples are taken at the nearest
    time, and what lies beyond the ends of a segment is left out.

    Parameters
    ----------
    signal : array-like of shape (n_samples,) or (n_samples, n_channels), or a list of 2-D arrays
        Real numbers, which may be negative; NaN is left out. 2-D ones may be sparse.
    events : Table
        As from ``find_events``, with the columns ``motif``, ``segment`` and ``time`` in seconds.
    window : (float, float)
        Seconds before (negative) and after the event.
    rate : float
        Samples of the signal per second.
    lengths, segments
        Of the signal, as in ``CNMF.fit``; segments are those of the events, in the same order.
    starts : sequence of float or None, default=None
        Seconds, on the clock of the events, of the first sample of each segment of the signal.
        With it the signal need not be cut as the recording is: an event is looked for in the
        segment of its own number or, where its time is not in there, in the one that has it.

    Returns
    -------
    EventAverage

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import Table, event_triggered_average
    >>> signal = np.zeros(1000)  # at 100 samples per second
    >>> signal[[210, 510]] = 1.0
    >>> events = Table([{"motif": 0, "segment": 0, "time": t} for t in (2.0, 5.0)])
    >>> average = event_triggered_average(signal, events, (-0.5, 0.5), rate=100)
    >>> float(average.times[average.mean[0, :, 0].argmax()])
    0.1
    """
    parts = _signal_parts(signal, lengths, segments)
    if not rate > 0:
        raise ValueError(f"rate must be positive (samples of the signal per second), not {rate}.")
    first, last = (int(np.round(edge * rate)) for edge in window)
    if first >= last:
        raise ValueError(f"window must be (start, end) in seconds with start < end, not {window}.")
    offsets = np.arange(first, last + 1)
    motifs = np.unique(events["motif"]).astype(np.intp)
    if len(motifs) == 0:
        raise ValueError("events is empty: there is nothing to average around.")
    shape = (len(motifs), len(offsets), parts[0].shape[1])
    sums, squares, counts = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.intp)
    ends = np.array([len(part) for part in parts]) / rate
    clock = None if starts is None else checked_starts(starts, len(parts), "the signal")
    for record in events:
        m = int(np.searchsorted(motifs, record["motif"]))
        segment, time = _place_of(record, ends, clock)
        part = parts[segment]
        places = int(np.round(time * rate)) + offsets
        inside = np.flatnonzero((places >= 0) & (places < len(part)))
        samples = part[places[inside]]
        observed = ~np.isnan(samples)
        samples = np.where(observed, samples, 0.0)
        sums[m, inside] += samples
        squares[m, inside] += samples**2
        counts[m, inside] += observed
    return _averaged(motifs, offsets / rate, sums, squares, counts)


def _place_of(record: dict[str, Any], ends: Floats, clock: Floats | None) -> tuple[int, float]:
    """Segment of the signal that an event is in, and seconds from its start."""
    segment, time = int(record["segment"]), float(record["time"])
    if clock is None:
        if not 0 <= segment < len(ends):
            raise ValueError(
                f"An event is in segment {segment}, but the signal has {len(ends)} segments: give "
                "those of the recording, or starts."
            )
        return segment, time
    inside = np.flatnonzero((clock <= time) & (time < clock + ends))
    if segment not in inside:
        before = np.flatnonzero(clock <= time)
        segment = int([*before, *inside][-1]) if len(before) else int(clock.argmin())
    return segment, time - float(clock[segment])


def _averaged(
    motifs: npt.NDArray[np.intp], times: Floats, sums: Floats, squares: Floats, counts: Any
) -> EventAverage:
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums / counts
        variance = np.maximum(squares - counts * mean**2, 0) / (counts - 1)
        error = np.sqrt(np.where(counts > 1, variance, np.nan) / counts)
    return EventAverage(motifs, times, mean, error, counts.max(axis=2))


def _signal_parts(signal: Any, lengths: Any, segments: Any) -> list[Any]:
    """The signal as a list of segments (n, channels)."""
    if is_sparse(signal):
        options: dict[str, Any] = {"name": "signal", "check_values": False, "sparse": True}
        return [
            RowsOnDemand(part) for part in check_recording(signal, lengths, segments, **options)
        ]
    if is_list_of_segments(signal):
        return [with_nan(part).astype(np.float64, copy=False) for part in signal]
    array = with_nan(signal).astype(np.float64, copy=False)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "signal must have shape (n_samples,) or (n_samples, n_channels) and samples; it has "
            f"{np.shape(signal)}."
        )
    return Segments.of(len(array), lengths, segments).split(array)
