"""Events one by one: where a motif, placed in the recording, explains most of what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.findings.overlap import Floats
from motifold.findings.shifting import random_shifts, shifted
from motifold.kernels import pursuit as kernel
from motifold.model import Mask

Bins = npt.NDArray[np.intp]

# Pursuit ends at this share of what the strongest bins have: far below any event that counts.
_LEAST_OF_STRONG, _STRONG = 0.15, 0.99
_TINY = 1e-12


@dataclass(frozen=True)
class Train:
    """Events: bin of lag 0, motif, amplitude and strength of each, all (n_events,).

    The strength is the amplitude in units of the noise that the matched filter sees: the inner
    product with the motif of unit norm.
    """

    bins: Bins
    motifs: Bins
    amplitudes: Floats
    strengths: Floats

    def __len__(self) -> int:
        return len(self.bins)

    def kept(self, which: npt.NDArray[np.bool_]) -> Train:
        """Some of the events."""
        return Train(
            self.bins[which], self.motifs[which], self.amplitudes[which], self.strengths[which]
        )

    def power(self, K: int) -> Floats:
        """Sum of the squared amplitudes of each motif, (K,)."""
        return np.bincount(self.motifs, self.amplitudes**2, minlength=K).astype(np.float64)

    def counts(self, K: int) -> Bins:
        """Number of events of each motif, (K,)."""
        return np.bincount(self.motifs, minlength=K)

    def activations(self, T: int, K: int) -> Floats:
        """The train as activations (T, K)."""
        H = np.zeros((T, K))
        np.add.at(H, (self.bins, self.motifs), self.amplitudes)
        return H


@dataclass(frozen=True)
class Standardised:
    """A recording as pursuit sees it: background taken off, features divided by their spread.

    ``Y`` (T, N), zero where an entry is missing; ``observed`` (T, N) or None where all are.
    """

    Y: Floats
    segments: Segments
    observed: Mask | None = None

    @property
    def T(self) -> int:
        return len(self.Y)

    def shifted(self, rng: np.random.Generator) -> Standardised:
        """Each feature moved in time by itself, around its segment: no motif is left."""
        shifts = random_shifts(self.segments, self.Y.shape[1], rng)
        observed = None if self.observed is None else shifted(self.observed, self.segments, shifts)
        return Standardised(shifted(self.Y, self.segments, shifts), self.segments, observed)


def match(Y: Floats, motifs: Floats) -> Floats:
    """Inner product of each motif (K, L, N) with Y from each bin on, (T, K); cut off at the end."""
    T, L = len(Y), motifs.shape[1]
    C = np.zeros((T, len(motifs)))
    products = Y @ motifs.reshape(-1, motifs.shape[2]).T  # (T, K·L)
    products = products.reshape(T, len(motifs), L)
    for lag in range(min(L, T)):
        C[: T - lag] += products[lag:, :, lag]
    return C


def norms(data: Standardised, motifs: Floats) -> Floats:
    """Norm of each motif at each bin, of what is observed there: (1, K), or (T, K)."""
    if data.observed is None:
        return np.maximum(np.sqrt(np.square(motifs).sum(axis=(1, 2)))[None], _TINY)
    power = match(data.observed.astype(np.float64), np.square(motifs))
    least = 0.5 * np.square(motifs).sum(axis=(1, 2))  # of a motif mostly hidden nothing is known
    return np.where(power >= least, np.sqrt(np.maximum(power, _TINY)), np.inf)


def pursue(data: Standardised, motifs: Floats, gap: int) -> Train:
    """Greedy events, strongest first, down to what is far below any event that counts.

    ``motifs`` (K, L, N) are in the units of ``data``. Two events of a motif are more than ``gap``
    bins apart. A motif that the end of a segment would cut off is not placed.
    """
    K, L, _ = motifs.shape
    C, norm = match(data.Y, motifs), norms(data, motifs)
    norm = np.ascontiguousarray(np.broadcast_to(norm, C.shape))
    allowed = data.segments.whole(L)
    if not allowed.any():
        return _train([], [])
    positive = np.maximum(C[allowed] / norm[allowed], 0)
    floors = np.maximum(_LEAST_OF_STRONG * np.quantile(positive, _STRONG, axis=0), _TINY)
    is_open = np.repeat(allowed[:, None], K, axis=1)
    if data.observed is not None:
        return _pursue_observed(data, motifs, C, norm, floors, is_open, gap)
    most = K * (data.T // (gap + 1) + len(data.segments.lengths))
    events, values = np.empty((most, 2), dtype=np.int64), np.empty((most, 2))
    n = kernel.pursue(C, norm, floors, is_open, _grams(motifs), gap, events, values)
    return _train(events[:n], values[:n])


def _pursue_observed(
    data: Standardised,
    motifs: Floats,
    C: Floats,
    norm: Floats,
    floors: Floats,
    is_open: npt.NDArray[np.bool_],
    gap: int,
) -> Train:
    """The same where entries are missing: what an event takes off depends on where it is."""
    L = motifs.shape[1]
    events: list[tuple[int, int]] = []
    values: list[tuple[float, float]] = []
    excess = np.where(is_open, C / norm - floors, -np.inf)
    while True:
        t, k = divmod(int(excess.argmax()), len(motifs))
        if not excess[t, k] > 0:
            return _train(events, values)
        strength = C[t, k] / norm[t, k]
        events.append((t, k))
        values.append((strength / norm[t, k], strength))
        lo, hi = max(0, t - L + 1), min(data.T, t + L)
        taken = _masked_gram(data, motifs, k, t)[lo - t + L - 1 : hi - t + L - 1]
        C[lo:hi] -= values[-1][0] * taken
        is_open[max(0, t - gap) : t + gap + 1, k] = False
        excess[lo:hi] = C[lo:hi] / norm[lo:hi] - floors
        near = slice(min(lo, max(0, t - gap)), max(hi, t + gap + 1))
        excess[near][~is_open[near]] = -np.inf


def _train(events: Any, values: Any) -> Train:
    places = np.asarray(events, dtype=np.intp).reshape(-1, 2)
    numbers = np.asarray(values, dtype=np.float64).reshape(-1, 2)
    return Train(places[:, 0], places[:, 1], numbers[:, 0], numbers[:, 1])


def without(data: Standardised, motifs: Floats, train: Train) -> Standardised:
    """What the events leave of the recording."""
    Y, L = data.Y.copy(), motifs.shape[1]
    for t, k, amplitude in zip(train.bins, train.motifs, train.amplitudes, strict=True):
        placed = amplitude * motifs[k]
        Y[t : t + L] -= placed if data.observed is None else placed * data.observed[t : t + L]
    return replace(data, Y=Y)


def _grams(motifs: Floats) -> Floats:
    """(K, 2L−1, K): what motif j, at an offset of −(L−1) to L−1 bins, has of motif k."""
    K, L, _ = motifs.shape
    A = np.zeros((K, 2 * L - 1, K))
    for d in range(L):
        S = np.einsum("kln,jln->kj", motifs[:, d:], motifs[:, : L - d])
        A[:, L - 1 + d], A[:, L - 1 - d] = S, S.T
    return A


def _masked_gram(data: Standardised, motifs: Floats, k: int, t: int) -> Floats:
    """(2L−1, K): the same of one event, of what is observed there."""
    assert data.observed is not None
    L = motifs.shape[1]
    placed = np.zeros((3 * L - 2, motifs.shape[2]))
    placed[L - 1 : 2 * L - 1] = motifs[k] * data.observed[t : t + L]
    return match(placed, motifs)[: 2 * L - 1]
