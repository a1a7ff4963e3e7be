"""How strong an event must be: strengths of events beside those in recordings without motifs."""

from __future__ import annotations

import numpy as np

from motifold.findings.overlap import Floats


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
