"""When motifs occur: peaks of the activations as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from motifold.data.given import takes_recordings
from motifold.data.refused import check_model
from motifold.data.validation import check_recording
from motifold.estimator import CNMF
from motifold.findings.calibration import FDR, calibrated
from motifold.findings.decomposition import Decomposition
from motifold.findings.overlap import Floats
from motifold.findings.peaks import THRESHOLD, Peaks, default_refractory
from motifold.findings.profiles import motif_extent
from motifold.findings.table import Table

_COLUMNS = (
    *("motif", "segment", "time", "bin", "strength"),  # these are where 0.1 had them
    *("start", "peak", "explained", "observed", "partial"),
)
_ENDLESS = 2.0**53  # bins: longer than any recording


@takes_recordings
def find_events(
    model: CNMF,
    activations: Any = None,
    *,
    lengths: Any = None,
    segments: Any = None,
    rate: float = 1.0,
    starts: Any = None,
    mask: Any = None,
    X: Any = None,
    threshold: float | None = None,
    refractory: float | None = None,
    partial: bool = False,
    fdr: float | None = None,
    random_state: int | None = 0,
) -> Table:
    """List when each motif occurs: the peaks of its activations.

    A bin is an event of motif k if its activation is (1) a local maximum, (2) the largest within
    ``refractory`` seconds of it, where stronger peaks come first, and (3) strong enough.

    With the recording itself as ``X`` that is measured: copies of X in which each feature is
    shifted in time by itself have peaks, too, and an event is kept where they have no more than
    ``fdr`` times as many of its strength or above. (This is strict where a motif has few features
    and its strengths vary widely: strong events, scattered, make peaks that noise does not make.)

    Without the recording an event is at least ``threshold`` times as strong as is typical of the
    motif: Σh²/Σh over the peaks of (1) and (2), their mean weighted by themselves, which small
    peaks hardly change. No threshold is right for every recording.

    Activations that rest on little are no events and set no threshold: those of which less than
    half of the motif's power was observed, and those so near the end of a segment that the motif
    is cut off (its onset and effective length, ``motif_extent``, reach beyond it). The latter are
    told with ``partial=True``. (That a motif begins before bin 0 cannot happen: the model has no
    activations there.)

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
    starts : sequence of float or None, default=None
        Seconds, on the recording's clock, of the first bin of each segment; None means 0 for each.
    mask : array-like of bool, of shape (n_samples, n_features), or None
        True where the recording was observed. Of the training data the model knows it
        (``observed_``); give it with the activations of another recording.
    X : array-like or sparse matrix of shape (n_samples, n_features), list, Recording, or None
        The recording, as it was fitted (prepared), NaN where an entry is missing. Without
        ``activations`` they are found in it. The table has ``explained`` then.
    threshold : float or None, default=None
        Least strength, in units of the typical one: given, the rule for events without X, also
        where X is there. None means 0.3 without X.
    refractory : float or None, default=None
        Least distance of two events of a motif, in seconds. None means the first lag at which the
        motif's correlation with itself, moved by it, is below one half, and 3 bins at least: as
        near as two occurrences can be told from one that is blurred. It does not depend on
        ``n_lags``: empty lags change nothing.
    partial : bool, default=False
        Tell also events whose motif is cut off by the end of a segment. (One that is nearer than
        ``refractory`` to a whole one is taken for a part of it.)
    fdr : float or None, default=None
        Share of the events that may be false, which needs X. None means 0.1 where X is given and
        ``threshold`` is not.
    random_state : int or None, default=0
        Seed of the shifts.

    Returns
    -------
    Table
        In the order of time, with the columns ``motif`` (position in ``components_``),
        ``segment``, ``time`` (seconds of the motif's lag 0, on the clock), ``bin`` (row of the
        stacked activations), ``strength`` (the activation at the peak), ``start`` (seconds from the
        start of the segment to lag 0), ``peak`` (seconds of the motif's strongest lag, on the
        clock), ``explained`` (only with X: share of the power of X, in the bins that the motif
        covers, which the event explains alone), ``observed`` (share of the motif's power that was
        observed), ``partial`` and, at a false discovery rate, ``q_value``: the least rate at which
        the event is kept.

    Notes
    -----
    The default refractory was measured on made-up recordings (two motifs of 12 lags in 20 features,
    1500 bins, three tenths of the events 3 to 7 bins after another; the motifs one lag long,
    bumps of σ = 1 and 2 bins, Poisson spikes, or jittered by a bin to either side; ``n_lags`` 12
    and 24, motifs known or fitted). Of all events it finds 95 % and 99.9 % of what it finds is one;
    with half of ``n_lags``, the default of 0.1, these were 68 % and 100 %. Its worst case are the
    bumps of σ = 2 with 24 lags: 88 % to 90 %, where half of ``n_lags`` finds 59 %.
    It was chosen among nine rules on these recordings (two seeds), in which events are seldom
    nearer than 3 bins: the numbers flatter it, and nearer ones it does not tell apart.

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
    >>> find_events(model, rate=10, starts=[100.0])["time"].tolist()
    [100.5, 102.0, 104.3]
    """
    check_model(model)
    if isinstance(rate, str) or not rate > 0:
        raise ValueError(f"rate must be a positive number (time bins per second), not {rate!r}.")
    threshold, fdr = _checked_rule(threshold, fdr, with_data=X is not None)
    if fdr is not None:
        told: dict[str, Any] = {"rate": rate, "refractory": refractory, "starts": starts}
        told |= {"partial": partial, "threshold": 0.0}
        return calibrated(
            model,
            lambda H, **of_it: find_events(model, H, **of_it, **told),
            X,
            activations,
            fdr=fdr,
            lengths=lengths,
            segments=segments,
            mask=mask,
            random_state=random_state,
        )
    fit = _taken_apart(model, activations, lengths, segments, X, mask)
    clock = checked_starts(starts, len(fit.segments.lengths), "the recording")
    records = [
        record
        for k in range(fit.H.shape[1])
        for record in _events_of(fit, k, refractory, threshold, partial, rate, clock)
    ]
    records.sort(key=lambda record: (record["bin"], record["motif"]))
    return Table(records, columns_of(with_data=X is not None))


def columns_of(*, with_data: bool) -> list[str]:
    """Those of a table of events at a threshold, whether there are any or none."""
    return [name for name in _COLUMNS if name != "explained" or with_data]


def _checked_rule(
    threshold: float | None, fdr: float | None, *, with_data: bool
) -> tuple[float, float | None]:
    """Threshold and false discovery rate, one of which counts: the rate unless it is None."""
    if threshold is not None and fdr is not None:
        raise ValueError(
            f"threshold={threshold} and fdr={fdr} are two rules for one thing: give one of them."
        )
    if threshold is not None and not threshold >= 0:
        raise ValueError(f"threshold must be 0 or greater, not {threshold}.")
    if fdr is not None and not 0 < fdr < 1:
        raise ValueError(f"fdr must be between 0 and 1, not {fdr}.")
    if fdr is not None and not with_data:
        raise ValueError(
            "fdr needs the recording, X: events are compared with those in shifted copies of it."
        )
    if fdr is None and threshold is None and with_data:
        fdr = FDR
    return THRESHOLD if threshold is None else threshold, fdr


def _taken_apart(
    model: CNMF, activations: Any, lengths: Any, segments: Any, X: Any, mask: Any
) -> Decomposition:
    """The activations, checked, with what is known of the recording."""
    if activations is None:
        activations, lengths, segments = model.activations_, model.lengths_, None
    K = model.components_.shape[0]
    parts = check_recording(activations, lengths, segments, name="activations")
    if parts[0].shape[1] != K:
        raise ValueError(f"activations must have one column per motif, {K}, not {parts[0].shape}.")
    H = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return Decomposition.of(model, X, H, [len(part) for part in parts], mask)


def spacing_of(model: CNMF, k: int, refractory: float | None, rate: float) -> tuple[int, int]:
    """Least distance of two events of motif k, in bins, and the lags it needs to be whole.

    Of live events (``motifold.streaming``), too.
    """
    if refractory is not None and not refractory >= 0:
        raise ValueError(f"refractory must be 0 or greater, not {refractory}.")
    motif = np.asarray(model.components_[k], dtype=np.float64)
    extent = motif_extent(motif[None])
    gap = (
        default_refractory(motif)
        if refractory is None
        else int(np.ceil(min(refractory * rate, _ENDLESS)))
    )
    return max(1, gap), int(extent.onset[0] + extent.length[0])


def _events_of(
    fit: Decomposition,
    k: int,
    refractory: float | None,
    threshold: float,
    partial: bool,
    rate: float,
    clock: Floats,
) -> Iterator[dict[str, Any]]:
    """The records of motif k."""
    motif = np.asarray(fit.model.components_[k], dtype=np.float64)
    distance, reach = spacing_of(fit.model, k, refractory, rate)
    rule = Peaks(fit.segments, distance, threshold, reach)
    strongest = int(np.square(motif).sum(axis=1).argmax())
    h, edges = fit.known[:, k].astype(np.float64), fit.segments.edges
    for t, is_cut in rule.of(h, partial=partial):
        segment = int(fit.segments.ids[t])
        start = (t - int(edges[segment])) / rate
        time = float(clock[segment]) + start
        record = {"motif": k, "segment": segment, "time": time, "bin": t, "strength": float(h[t])}
        record |= {"start": start, "peak": time + strongest / rate}
        if fit.X is not None:
            record["explained"] = _explained(fit, k, t, distance)
        observed = 1.0 if fit.observed is None else float(fit.observed[t, k])
        yield record | {"observed": observed, "partial": is_cut}


def _explained(fit: Decomposition, k: int, t: int, distance: int) -> float:
    """Share of the power of X, in the bins of the motif at t, that the event explains alone.

    The event is the activations nearer to t than the next event may be. NaN where nothing is
    observed, or all is silent.
    """
    assert fit.X is not None
    motif = np.asarray(fit.model.components_[k], dtype=np.float64)
    segment = fit.segments.ids[t]
    first, end = fit.segments.edges[segment : segment + 2].tolist()
    stop = min(t + len(motif), end)
    data = np.asarray(fit.X[t:stop], dtype=np.float64)
    made = np.zeros_like(data)
    for s in range(max(first, t - distance + 1), min(stop, t + distance)):
        at, lag = max(0, s - t), max(0, t - s)
        part = motif[lag : lag + len(data) - at]
        made[at : at + len(part)] += float(fit.H[s, k]) * part
    power = float(np.nansum(np.square(data)))
    background = fit.model.background_
    left = data if background is None else data - background
    gain = float(np.nansum(made * (2 * left - made)))
    return max(0.0, gain / power) if power > 0 else float("nan")


def checked_starts(starts: Any, n_segments: int, of: str) -> Floats:
    """Seconds at which each segment starts; 0 for each if nothing is given."""
    if starts is None:
        return np.zeros(n_segments)
    clock = np.atleast_1d(np.asarray(starts, dtype=np.float64))
    if clock.shape != (n_segments,) or not np.isfinite(clock).all():
        raise ValueError(
            f"starts must hold the seconds at which each of the {n_segments} segments of {of} "
            f"starts, finite numbers; it is {starts!r}."
        )
    return clock
