"""A recording in which nothing is to be seen, and the sequences in it: the demo's story."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.estimator import CNMF
from motifold.findings import FeatureOrder, Table, find_events, sort_features
from motifold.prepare import Smooth

RATE = 50.0  # time bins per second
N_LAGS = 40
_MOTIFS, _EACH, _OTHERS = 3, 26, 22  # sequences, neurons in each, neurons in none
_STEP = 1.2  # bins from one neuron of a sequence to the next
_EVERY = 110  # bins from one occurrence of a sequence to its next, on average
_BACKGROUND = 0.03  # spikes of every neuron in a bin, beside the sequences
_MISSED = 0.15  # spikes of a sequence that do not come
_JITTER = 0.7  # bins, of those that do
_SMOOTH = 1.0  # bins: a spike and its jitter are one thing
_FALSE = 0.05  # share of the events that may be none
_NEAR = 6  # bins between an event and the occurrence that it is taken for


@dataclass(frozen=True)
class Hidden:
    """Spikes with sequences in them, and when each of them truly begins."""

    counts: npt.NDArray[np.float64]  # (T, N), the neurons in a random order
    occurrences: list[npt.NDArray[np.intp]]  # bins, for each sequence


@dataclass(frozen=True)
class Found:
    """What a fit finds of them."""

    model: CNMF
    order: FeatureOrder
    events: Table
    explained: npt.NDArray[np.float64]  # (K, T, N): the part of each motif in the reconstruction


def hide_sequences(n_samples: int, seed: int) -> Hidden:
    """Three sequences of neurons, each at random times, in spikes that belong to none."""
    rng = np.random.default_rng(seed)
    N = _MOTIFS * _EACH + _OTHERS
    counts = rng.poisson(_BACKGROUND, (n_samples, N)).astype(float)
    occurrences = []
    for k in range(_MOTIFS):
        gaps = rng.integers(N_LAGS, 2 * _EVERY - N_LAGS, 2 * n_samples // _EVERY)
        starts = rng.integers(5, _EVERY) + np.r_[0, np.cumsum(gaps)]
        starts = starts[starts < n_samples - N_LAGS]
        neurons = k * _EACH + np.arange(_EACH)
        lags = _STEP * np.arange(_EACH) + rng.normal(0, _JITTER, (len(starts), _EACH))
        bins = np.rint(starts[:, None] + np.maximum(lags, 0)).astype(int)
        fires = rng.random(bins.shape) > _MISSED
        np.add.at(counts, (bins[fires], np.broadcast_to(neurons, bins.shape)[fires]), 1)
        occurrences.append(starts)
    return Hidden(counts[:, rng.permutation(N)], occurrences)


def find_sequences(hidden: Hidden, seed: int) -> Found:
    """The motifs of the smoothed spikes, the neurons in their order, and the events."""
    X = Smooth(_SMOOTH).fit_transform(hidden.counts)
    model = CNMF(_MOTIFS, N_LAGS, n_init=5, random_state=seed).fit(X)
    alone = np.eye(_MOTIFS)
    parts = [model.inverse_transform(model.activations_ * one) for one in alone]
    events = find_events(model, rate=RATE, X=X, fdr=_FALSE)
    return Found(model, sort_features(model), events, np.array(parts))


def n_found(hidden: Hidden, found: Found) -> tuple[int, int, int]:
    """How many occurrences have an event, how many there are, how many events have none.

    Which motif is which sequence, and by how many lags they differ, is not given: of all pairs
    and shifts the ones that agree best are taken, each once.
    """
    events = [found.events.where(motif=k)["bin"].astype(int) for k in range(_MOTIFS)]
    pairs = sorted(
        ((_agreeing(true, mine), i, k) for i, true in enumerate(hidden.occurrences)
         for k, mine in enumerate(events)), reverse=True,
    )  # fmt: skip
    taken: dict[int, int] = {}
    hits = 0
    for count, i, k in pairs:
        if i not in taken and k not in taken.values():
            taken[i] = k
            hits += count
    n_events = sum(len(mine) for mine in events)
    return hits, sum(map(len, hidden.occurrences)), n_events - hits


def _agreeing(true: npt.NDArray[Any], mine: npt.NDArray[Any]) -> int:
    if len(mine) == 0:
        return 0
    apart = mine[None] - true[:, None]  # a motif may begin some lags before or after its sequence
    shift = np.median(apart[np.arange(len(true)), np.abs(apart).argmin(axis=1)])
    return int((np.abs(apart - shift).min(axis=1) <= _NEAR).sum())
