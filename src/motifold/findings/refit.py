"""The motifs of a fit as they are at their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from motifold.data.given import takes_recordings
from motifold.findings.overlap import Floats, checked_motifs
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import Train
from motifold.findings.sharpen import sharpen
from motifold.findings.table import Table

COLUMNS = ("motif", "segment", "time", "centre", "bin", "strength", "score", "q_value")


@dataclass(frozen=True)
class EventFit:
    """Sharpened motifs, a background, and the events that go with them.

    Attributes
    ----------
    motifs : ndarray of shape (K, n_lags, n_features)
        In the units of X at an event of strength 1; zero where a motif has no events.
    background : ndarray of shape (n_features,)
        What each feature does besides.
    events : Table
        In the order of time: ``motif``, ``segment``, ``time`` (of the motif's lag 0) and ``centre``
        (of its centre of mass; both in seconds from the start of the segment), ``bin`` (row of lag
        0), ``strength`` (amplitude), ``score`` (match with the motif of the other events, in units
        of the noise) and ``q_value`` (false discovery rate at which it is kept).
    variance : list of float
        Share of the variance of X that motifs, events and background leave, after each round.

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import refit_events
    >>> data = make_sequences(
    ...     800, 20, 1, 10, activation_probability=0.02, noise=0.1, random_state=0
    ... )
    >>> fit = refit_events(CNMF(1, 10, random_state=0).fit(data.X), data.X, random_state=0)
    >>> fit.motifs.shape, fit.events.columns[0], fit.variance[-1] < 1
    ((1, 10, 20), 'motif', True)
    """

    motifs: Floats
    background: Floats
    events: Table
    variance: list[float]


@takes_recordings
def refit_events(
    model: Any,
    X: Any,
    *,
    rate: float = 1.0,
    rounds: int = 5,
    fdr: float = 0.1,
    refractory: float | None = None,
    smooth: float | Literal["auto"] = "auto",
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    random_state: int | None = None,
) -> EventFit:
    """Sharpen motifs: events by matching pursuit, motifs by least squares on them, in turn.

    A fit spreads each event over neighbouring bins of its activations and makes the motif narrower
    for it. Here an event is one bin. Events are those that shifted recordings do not have as well
    (at ``fdr``); motifs and a background are the nonnegative least squares on them, and entries
    that noise explains are shrunk. The model is not changed.

    Parameters
    ----------
    model : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or motifs to begin with.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
    rate : float, default=1
        Time bins per second; with 1, seconds are bins.
    rounds : int, default=5
        How often motifs are made of events.
    fdr : float, default=0.1
        Share of the events that may be false; twice that while motifs take shape.
    refractory : float or None, default=None
        Least distance of two events of a motif, in seconds; None means half the motif's window:
        more than in ``find_events``, since what one event leaves, if it is warped or stronger than
        another, looks like a second one nearby. Give less where motifs follow on themselves.
    smooth : float or "auto", default="auto"
        Width in bins by which X is smoothed to find events (motifs are made of X as it is); "auto"
        is 1 for spike counts, else 0.
    lengths, segments, mask
        As in ``CNMF.fit``.
    random_state : int or None
        Seed of the shifts.

    Returns
    -------
    EventFit

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import refit_events
    >>> motif = np.exp(-0.5 * (np.arange(12)[:, None] - np.arange(2, 10)) ** 2)
    >>> X = np.random.default_rng(0).uniform(0, 0.2, (600, 8))
    >>> for start in range(5, 580, 25):
    ...     X[start : start + 12] += motif
    >>> fit = refit_events(motif[None] ** 2, X, random_state=0)
    >>> len(fit.events), fit.motifs.shape
    (23, (1, 12, 8))
    """
    if not rate > 0:
        raise ValueError(f"rate must be positive (time bins per second), not {rate}.")
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must be between 0 and 1, not {fdr}.")
    if rounds < 1:
        raise ValueError(f"rounds must be 1 or greater, not {rounds}.")
    motifs = checked_motifs(model)
    recording = Prepared.of(X, lengths=lengths, segments=segments, mask=mask, smooth=smooth)
    if recording.X.shape[1] != motifs.shape[2]:
        raise ValueError(
            f"X has {recording.X.shape[1]} features (columns), the motifs have {motifs.shape[2]}: "
            "they must be the same ones."
        )
    gap = None if refractory is None else max(0, int(np.ceil(refractory * rate)) - 1)
    found = sharpen(recording, motifs, rounds=rounds, fdr=fdr, gap=gap, random_state=random_state)
    events = event_table(found.train, found.q, found.motifs, recording.segments.lengths, rate)
    return EventFit(found.motifs, found.background, events, found.variance)


def event_table(
    train: Train, q: Floats, motifs: Floats, lengths: Any, rate: float, kept: Any = None
) -> Table:
    """Events in the order of time; of the motifs in ``kept``, or of all."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    centres = centres_of(motifs)
    records = []
    for i in np.lexsort((train.motifs, train.bins)):
        k, t = int(train.motifs[i]), int(train.bins[i])
        if kept is not None and k not in kept:
            continue
        segment = int(np.searchsorted(starts, t, side="right")) - 1
        records.append(
            {
                "motif": k,
                "segment": segment,
                "time": (t - int(starts[segment])) / rate,
                "centre": (t - int(starts[segment]) + float(centres[k])) / rate,
                "bin": t,
                "strength": float(train.amplitudes[i]),
                "score": float(train.strengths[i]),
                "q_value": float(q[i]),
            }
        )
    return Table(records, COLUMNS)


def centres_of(motifs: Floats) -> Floats:
    """Lag of each motif's centre of mass, (K,)."""
    mass = motifs.sum(axis=2)
    total = mass.sum(axis=1)
    return mass @ np.arange(motifs.shape[1]) / np.where(total > 0, total, 1.0)
