"""When motifs occur: peaks of the activations as a table, and what any signal does around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import find_peaks
from sklearn.utils.validation import check_is_fitted

from motifold.data import Segments
from motifold.data.masked import with_nan
from motifold.data.validation import check_recording, is_list_of_segments, is_sparse
from motifold.estimator import CNMF
from motifold.findings.overlap import Floats
from motifold.findings.rows import RowsOnDemand
from motifold.findings.table import Table
from motifold.model import Array

_COLUMNS = ("motif", "segment", "time", "bin", "strength")


def find_events(
    model: CNMF,
    activations: Any = None,
    *,
    lengths: Any = None,
    segments: Any = None,
    rate: float = 1.0,
    threshold: float = 0.3,
    refractory: float | None = None,
) -> Table:
    """List when each motif occurs: the peaks of its activations.

    A bin is an event of motif k if its activation is (1) a local maximum, (2) the largest within
    ``refractory`` seconds of it, where stronger peaks come first, and (3) at least ``threshold``
    times the motif's typical strength. The typical strength is Σh²/Σh over the peaks of (1) and
    (2): their mean weighted by themselves, which small peaks hardly change. Activations so near
    the end of a segment that the motif is cut off do not count towards it, since they rest on a
    few lags only.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    activations : array-like of shape (n_samples, n_components), list of such arrays, or None
        Those of any recording; None means those of the training data, with their segments.
    lengths, segments
        Of ``activations``, as in ``CNMF.fit``.
    rate : float, default=1
        Time bins per second; with 1, seconds are bins.
    threshold : float, default=0.3
        Least strength, in units of the typical one.
    refractory : float or None, default=None
        Least distance of two events of a motif, in seconds; None means half the motif's length.

    Returns
    -------
    Table
        In the order of time, with the columns ``motif`` (position in ``components_``),
        ``segment``, ``time`` (seconds from the start of the segment to the motif's lag 0), ``bin``
        (row of the stacked activations) and ``strength`` (the activation at the peak).

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.findings import find_events
    >>> X = np.zeros((60, 3))
    >>> for start in (5, 20, 43):
    ...     X[start, 0] = X[start + 1, 1] = X[start + 3, 2] = 1.0
    >>> model = CNMF(1, 4, n_init=10, random_state=0).fit(X)
    >>> find_events(model, rate=10)["time"].tolist()
    [0.5, 2.0, 4.3]
    """
    check_is_fitted(model)
    if not rate > 0:
        raise ValueError(f"rate must be positive (time bins per second), not {rate}.")
    if not threshold >= 0:
        raise ValueError(f"threshold must be 0 or greater, not {threshold}.")
    K, L, _ = model.components_.shape
    if activations is None:
        activations, lengths = model.activations_, model.lengths_
    parts = check_recording(activations, lengths, segments, name="activations")
    if parts[0].shape[1] != K:
        raise ValueError(f"activations must have one column per motif, {K}, not {parts[0].shape}.")
    records = [
        {"motif": k, "segment": i, "time": t / rate, "bin": start + t, "strength": strength}
        for k in range(K)
        for i, start, t, strength in _events(
            parts, k, L, spacing_of(model, k, refractory, rate)[0], threshold
        )
    ]
    records.sort(key=lambda record: (record["bin"], record["motif"]))
    return Table(records, _COLUMNS)


def spacing_of(model: CNMF, k: int, refractory: float | None, rate: float) -> tuple[int, int]:
    """Least distance of two events of motif k, in bins, and the lags it needs to be whole.

    Of live events (``motifold.streaming``), too.
    """
    L = model.components_.shape[1]
    gap = L / 2 if refractory is None else refractory * rate
    if not gap >= 0:
        raise ValueError(f"refractory must be 0 or greater, not {refractory}.")
    return max(1, int(np.ceil(gap))), L


def _events(
    parts: list[Array], k: int, L: int, distance: int, threshold: float
) -> Iterator[tuple[int, int, int, float]]:
    """Segment, its first row, bin in it and strength of each event of motif k."""
    segments = Segments([len(part) for part in parts])
    is_whole = segments.whole(L)
    peaks = []
    whole: list[float] = []  # strengths of motifs that no end cuts off
    for i, (part, (start, _)) in enumerate(zip(parts, segments, strict=True)):
        h = np.concatenate([[0.0], part[:, k].astype(np.float64), [0.0]])  # the ends may be peaks
        bins = find_peaks(h, distance=distance)[0] - 1
        peaks += [(i, start, int(t), float(h[t + 1])) for t in bins]
        whole += [float(h[t + 1]) for t in bins if is_whole[start + t]]
    strengths = np.array(whole or [strength for *_, strength in peaks])
    total = strengths.sum()
    typical = float(strengths @ strengths / total) if total > 0 else 0.0
    return (peak for peak in peaks if peak[3] > 0 and peak[3] >= threshold * typical)


# --- averages around events -----------------------------------------------------------------


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


def event_triggered_average(
    signal: Any,
    events: Table,
    window: tuple[float, float],
    rate: float,
    *,
    lengths: Any = None,
    segments: Any = None,
) -> EventAverage:
    """Average a signal around the events of each motif.

    The signal may be X itself or anything recorded at the same time, at its own sampling rate;
    both start at time 0 of their segment. Samples are taken at the nearest time, and what lies
    beyond the ends of a segment is left out.

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
    for record in events:
        m = int(np.searchsorted(motifs, record["motif"]))
        if not 0 <= record["segment"] < len(parts):
            raise ValueError(
                f"An event is in segment {record['segment']}, but the signal has {len(parts)} "
                "segments: give those of the recording."
            )
        part = parts[record["segment"]]
        places = int(np.round(record["time"] * rate)) + offsets
        inside = np.flatnonzero((places >= 0) & (places < len(part)))
        samples = part[places[inside]]
        observed = ~np.isnan(samples)
        samples = np.where(observed, samples, 0.0)
        sums[m, inside] += samples
        squares[m, inside] += samples**2
        counts[m, inside] += observed
    return _averaged(motifs, offsets / rate, sums, squares, counts)


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
