"""How strong an event must be: strengths of events beside those in recordings without motifs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.findings.overlap import Floats
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import Standardised
from motifold.findings.table import Table


def q_values(strengths: Floats, null: Floats, n_null: int) -> Floats:
    """For each event the least false discovery rate at which it is kept, (n_events,).

    ``null`` are the strengths of all events in ``n_null`` recordings in which there are none to be
    found. Of the events as strong as z, as many are expected to be false as such a recording has: m
    / ``n_null`` of m null events in all, taken one higher and by a standard deviation, √m, so as to
    err on the safe side. q is that over their number, or what a lower z would give, if less.
    """
    order = np.argsort(-strengths, kind="stable")
    null = np.sort(null)
    as_strong = len(null) - np.searchsorted(null, strengths[order], side="left")
    expected = (1 + as_strong + np.sqrt(as_strong)) / n_null
    rates = expected / np.arange(1, len(strengths) + 1)
    q = np.empty(len(strengths))
    # A weaker event that is kept keeps every stronger one.
    q[order] = np.minimum(1.0, np.minimum.accumulate(rates[::-1])[::-1])
    return q


def calibrated(
    model: CNMF,
    X: Any,
    find: Callable[[Any, Any, Any], Table],
    *,
    fdr: float,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    n_null: int = 5,
    random_state: int | None = None,
) -> Table:
    """Events of a model in X, with q-values, down to a false discovery rate.

    ``find(activations, lengths, mask)`` lists all peaks, however small. Beside them stand those of
    recordings whose features are shifted in time independently, around their segments.
    """
    data: dict[str, Any] = {"lengths": lengths, "segments": segments, "mask": mask}
    recording = Prepared.of(X, smooth=0, signed=bool(model.allow_negative), **data)
    rng = np.random.default_rng(random_state)
    plain = Standardised(recording.X, recording.segments, recording.observed)
    bounds = recording.segments.lengths

    def peaks(data: Standardised) -> Table:
        H = model.transform(data.Y, lengths=bounds, mask=data.observed)
        return find(H, bounds, data.observed)

    events = peaks(plain)
    nulls = [peaks(plain.shifted(rng)) for _ in range(n_null)]
    motifs = np.concatenate([null["motif"] for null in nulls])
    strengths = np.concatenate([null["strength"] for null in nulls]).astype(np.float64)
    q = np.ones(len(events))
    for k in np.unique(events["motif"]):
        mine = events["motif"] == k
        q[mine] = q_values(events["strength"][mine], strengths[motifs == k], n_null)
    kept = [
        record | {"q_value": float(value)}
        for record, value in zip(events, q, strict=True)
        if value <= fdr
    ]
    return Table(kept, [*events.columns, "q_value"])
