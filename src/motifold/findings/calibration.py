"""How strong an event must be: strengths of events beside those in recordings without motifs."""

from __future__ import annotations

import numpy as np

from motifold.findings.overlap import Floats


def q_values(strengths: Floats, null: Floats, n_null: int) -> Floats:
    """For each event the least false discovery rate at which it is kept, (n_events,).

    ``null`` are the strengths of all events in ``n_null`` recordings in which there are none to be
    found. Of the events as strong as z, (1 + null events as strong) / ``n_null`` are expected to be
    false; q is that over their number, or what a lower z would give, if less.
    """
    order = np.argsort(-strengths, kind="stable")
    null = np.sort(null)
    expected = (1 + len(null) - np.searchsorted(null, strengths[order], side="left")) / n_null
    rates = expected / np.arange(1, len(strengths) + 1)
    q = np.empty(len(strengths))
    # A weaker event that is kept keeps every stronger one.
    q[order] = np.minimum(1.0, np.minimum.accumulate(rates[::-1])[::-1])
    return q


def floor_of(strengths: Floats, null: Floats, n_null: int, fdr: float) -> float:
    """The least strength at which events are kept at a false discovery rate; inf if none is."""
    q = q_values(strengths, null, n_null)
    kept = strengths[q <= fdr]
    return float(kept.min()) if len(kept) else np.inf
