"""Events one by one: where a motif, placed in the recording, explains most of what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.findings.overlap import Floats
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
        return np.bincount(self.motifs, self.amplitudes**2, minlength=K)

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
        Y = np.empty_like(self.Y)
        observed = None if self.observed is None else np.empty_like(self.observed)
        for a, b in self.segments:
            for n in range(Y.shape[1]):
                by = int(rng.integers(b - a))
                Y[a:b, n] = np.roll(self.Y[a:b, n], by)
                if observed is not None and self.observed is not None:
                    observed[a:b, n] = np.roll(self.observed[a:b, n], by)
        return Standardised(Y, self.segments, observed)


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
    norm = np.broadcast_to(norm, C.shape)
    allowed = data.segments.whole(L)
    scores = _Scores(np.where(allowed[:, None], C / norm, -np.inf))
    positive = np.maximum(scores.rows[: data.T][allowed], 0) if allowed.any() else np.zeros((1, K))
    floors = np.maximum(_LEAST_OF_STRONG * np.quantile(positive, _STRONG, axis=0), _TINY)
    scores.lower(floors)
    grams = _grams(motifs) if data.observed is None else None
    found: list[tuple[int, int, float, float]] = []
    while True:
        t, k, excess = scores.largest()
        if not excess > 0:
            break
        amplitude = C[t, k] / norm[t, k] ** 2
        found.append((t, k, amplitude, C[t, k] / norm[t, k]))
        lo, hi = max(0, t - L + 1), min(data.T, t + L)
        part = grams[k] if grams is not None else _masked_gram(data, motifs, k, t)
        C[lo:hi] -= amplitude * part[lo - t + L - 1 : hi - t + L - 1]
        scores.replace(lo, hi, C[lo:hi] / norm[lo:hi] - floors)
        scores.close(max(0, t - gap), t + gap + 1, k)
    return _train(found)


class _Scores:
    """Numbers (T, K) whose largest is found quickly: -inf is closed and stays so."""

    _ROWS = 256

    def __init__(self, scores: Floats) -> None:
        T, K = scores.shape
        n_blocks = -(-T // self._ROWS)
        self.K = K
        self.rows = np.full((n_blocks * self._ROWS, K), -np.inf)
        self.rows[:T] = scores
        self._blocks = self.rows.reshape(n_blocks, -1)  # a view
        self._best = self._blocks.max(axis=1)

    def lower(self, floors: Floats) -> None:
        self.rows -= floors
        self._best = self._blocks.max(axis=1)

    def largest(self) -> tuple[int, int, float]:
        """Row, column and value."""
        block = int(self._best.argmax())
        t, k = divmod(int(self._blocks[block].argmax()), self.K)
        return block * self._ROWS + t, k, float(self._best[block])

    def replace(self, lo: int, hi: int, scores: Floats) -> None:
        rows = self.rows[lo:hi]
        rows[:] = np.where(rows == -np.inf, -np.inf, scores)
        self._look_again(lo, hi)

    def close(self, lo: int, hi: int, k: int) -> None:
        self.rows[lo:hi, k] = -np.inf
        self._look_again(lo, min(hi, len(self.rows)))

    def _look_again(self, lo: int, hi: int) -> None:
        blocks = slice(lo // self._ROWS, -(-hi // self._ROWS))
        self._best[blocks] = self._blocks[blocks].max(axis=1)


def _train(found: list[tuple[int, int, float, float]]) -> Train:
    bins, motifs, amplitudes, strengths = zip(*found, strict=True) if found else ((), (), (), ())
    return Train(
        np.array(bins, dtype=np.intp),
        np.array(motifs, dtype=np.intp),
        np.array(amplitudes, dtype=np.float64),
        np.array(strengths, dtype=np.float64),
    )


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
