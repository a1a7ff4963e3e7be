"""Made-up recordings with a known answer, for what a scientist takes away from a fit.

Planted: three smooth motifs (each feature a bump of one bin's width at a lag of its own) of which
something makes life hard. Nulls: recordings without any sequence, most of them with something that
passes for one. ``make(name, seed)``; seeds below ``REPORT`` are for design, the rest for reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d

Floats = npt.NDArray[np.float64]

K, L, N, T = 3, 25, 51, 1500
# Rules were chosen on seeds below; tables are made of seeds from here on.
REPORT = 900_000

PLANTED = (
    "noise .1",
    "noise .3",
    "noise .6",
    "spikes 60 %",
    "spikes 30 %",
    "spikes 15 %",
    "spectrogram",
    "shared features",
    "lengths",
    "warped",
)
NULLS = ("independent", "bursting", "shared rates 3", "shared rates 10", "population bursts")


@dataclass(frozen=True)
class Made:
    """A recording X (T, N) and, where motifs were planted, those (K, L, N) and their times."""

    X: Floats
    motifs: Floats = field(default_factory=lambda: np.zeros((0, L, N)))
    events: tuple[npt.NDArray[np.intp], ...] = ()


def make(name: str, seed: int) -> Made:
    """The recording of a regime."""
    rng = np.random.default_rng([seed, [*PLANTED, *NULLS].index(name)])
    return _planted(name, rng) if name in PLANTED else Made(_NULL[name](rng))


# --- planted --------------------------------------------------------------------------------


def _bumps(rng: np.random.Generator, features: npt.NDArray[np.intp], first: float, last: float):
    """A motif (L, N): each of the features a bump at its own lag, with its own size."""
    motif = np.zeros((L, N))
    centres = rng.uniform(first, last, len(features))
    sizes = rng.uniform(0.6, 1.4, len(features))
    motif[:, features] = sizes * np.exp(-0.5 * (np.arange(L)[:, None] - centres) ** 2)
    return motif


def _motifs(name: str, rng: np.random.Generator) -> Floats:
    features = rng.permutation(N).reshape(K, -1)
    if name == "shared features":  # each motif has half of all features
        features = np.stack([rng.choice(N, N // 2, replace=False) for _ in range(K)])
    spans = [(3.0, 21.0)] * K
    if name == "lengths":
        spans = [(10.0, 15.0), (7.0, 18.0), (3.0, 21.0)]
    motifs = np.stack([_bumps(rng, f, *span) for f, span in zip(features, spans, strict=True)])
    # Neighbours in frequency are alike.
    return 2 * gaussian_filter1d(motifs, 1.0, axis=2) if name == "spectrogram" else motifs


def _times(rng: np.random.Generator, n: int = 25) -> npt.NDArray[np.intp]:
    """Times of a motif, no two within its length."""
    gaps = rng.exponential(1.0, n + 1)
    free = T - 2 * L - n * L
    return (L // 2 + L * np.arange(n) + np.cumsum(gaps)[:n] / gaps.sum() * free).astype(np.intp)


def _warped(motif: Floats, factor: float) -> Floats:
    """The motif (L, N) played slower by a factor, about its middle."""
    lags = np.arange(L)
    places = (L - 1) / 2 + (lags - (L - 1) / 2) / factor
    return np.stack([np.interp(places, lags, m, left=0, right=0) for m in motif.T], axis=1)


def _planted(name: str, rng: np.random.Generator) -> Made:
    motifs = _motifs(name, rng)
    times = tuple(_times(rng) for _ in range(K))
    signal = np.zeros((T, N))
    for motif, bins in zip(motifs, times, strict=True):
        for t in bins:
            shown, strength = motif, 1.0
            if name == "warped":
                shown, strength = _warped(motif, rng.uniform(0.8, 1.25)), rng.uniform(0.5, 1.5)
            signal[t : t + L] += strength * shown
    return Made(_observed(name, signal, rng), motifs, times)


def _observed(name: str, signal: Floats, rng: np.random.Generator) -> Floats:
    kind, _, level = name.partition(" ")
    if kind == "spikes":
        share = float(level.removesuffix(" %")) / 100
        rate = 0.35 * signal  # about .9 spikes of a feature in each event
        ongoing = rate.mean(axis=0) * (1 - share) / share
        return rng.poisson(rate + ongoing).astype(np.float64)
    if kind == "spectrogram":  # a floor, and noise that multiplies
        return (signal + 0.2) * rng.gamma(2.0, 0.5, signal.shape)
    noise = float(level) if kind == "noise" else 0.2
    return np.maximum(signal + noise * rng.standard_normal(signal.shape), 0)


# --- nulls ----------------------------------------------------------------------------------


def _independent(rng: np.random.Generator) -> Floats:
    return rng.poisson(rng.uniform(0.02, 0.1, N), (T, N)).astype(np.float64)


def _bursting(rng: np.random.Generator) -> Floats:
    """Each feature rises and decays at times of its own."""
    starts = rng.random((T, N)) < 0.015
    decay = np.exp(-np.arange(20) / 3.0)
    rate = np.stack([np.convolve(s, decay)[:T] for s in starts.T], axis=1)
    return rng.poisson(rate + 0.01).astype(np.float64)


def _shared_rates(tau: float, rng: np.random.Generator) -> Floats:
    """Three assemblies; the features of one share a rate that fluctuates, at lag 0.

    Half of the recordings have rates that rise at once and decay, which no mirror leaves alike.
    """
    if rng.random() < 0.5:
        kicks = rng.exponential(1.0, (T + 200, K)) * (rng.random((T + 200, K)) < 0.02)
        kernel = np.exp(-np.arange(int(8 * tau)) / tau)
        rates = 3 * np.stack([np.convolve(k, kernel)[200 : T + 200] for k in kicks.T], axis=1)
    else:
        white = gaussian_filter1d(rng.standard_normal((T + 200, K)), tau, axis=0)[100 : T + 100]
        rates = np.exp(1.5 * white / white.std(axis=0)) / 3
    gains = rng.uniform(0.05, 0.25, N)
    members = rng.integers(K, size=N)
    return rng.poisson(gains * rates[:, members] + 0.01).astype(np.float64)


def _population_bursts(rng: np.random.Generator) -> Floats:
    """Bursts in which the features of an assembly fire in an order that is new every time."""
    rate = np.full((T, N), 0.01)
    members = rng.permutation(N).reshape(K, -1)
    for features in members:
        for t in _times(rng):
            rate[t : t + L] += 0.35 * _bumps(rng, features, 6.0, 18.0)
    return rng.poisson(rate).astype(np.float64)


_NULL = {
    "independent": _independent,
    "bursting": _bursting,
    "shared rates 3": lambda rng: _shared_rates(3.0, rng),
    "shared rates 10": lambda rng: _shared_rates(10.0, rng),
    "population bursts": _population_bursts,
}
