"""Motifs as they are at their events: events by pursuit, motifs by least squares on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from motifold.data import Segments
from motifold.findings.calibration import floor_of, q_values
from motifold.findings.overlap import Floats
from motifold.findings.pursuit import Standardised, Train, pursue
from motifold.model import Mask

_RIDGE = 1e-3  # of the mean power of a column
_FEW = 3  # events that a motif needs to be refitted
_NULLS, _LAST_NULLS = 3, 8
_LEAST_SPREAD = 1e-3  # of a feature, in units of that of all


@dataclass(frozen=True)
class EventModel:
    """Motifs (K, L, N), a background (N,) and events that explain a recording together.

    ``objective``: J of the event model after each round, half the squared error that it leaves,
    over that of the background alone.
    """

    motifs: Floats
    background: Floats
    spread: Floats
    train: Train
    q: Floats
    objective: list[float]


@dataclass(frozen=True)
class Rules:
    """How events are found: rounds, false discovery rate, least distance of two."""

    rounds: int = 5
    fdr: float = 0.1
    gap: int = 0
    smooth: float = 0.0


def standardise(
    X: Floats, segments: Segments, observed: Mask | None, background: Floats, spread: Floats
) -> Standardised:
    Y = (X - background) / spread
    return Standardised(Y if observed is None else np.where(observed, Y, 0.0), segments, observed)


def spread_of(X: Floats, observed: Mask | None) -> Floats:
    """Standard deviation of each feature, with a floor for those that hardly vary."""
    values = X if observed is None else np.where(observed, X, np.nan)
    with np.errstate(invalid="ignore"):
        sd = np.nan_to_num(np.nanstd(values, axis=0))
    whole = float(np.sqrt(np.mean(sd**2)))
    return np.maximum(sd, _LEAST_SPREAD * whole or 1.0)
