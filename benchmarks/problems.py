"""The data to measure on: the paper's synthetic sets, the real recordings, and odd shapes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.io import loadmat, wavfile
from scipy.signal import stft

from motifold.datasets import make_sequences

DATA = Path(os.environ.get("MOTIFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))


SONGBIRD, SPEECH = DATA / "MackeviciusData.mat", DATA / "spoken_digits_two_speakers_8k.wav"


@dataclass(frozen=True)
class Benchmark:
    """One problem: data (T, N) in single precision, K motifs of L lags."""

    name: str
    X: np.ndarray
    K: int
    L: int

    def start(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Motifs (K, L, N) and activations (T, K), uniform and scaled to the data: a start."""
        rng = np.random.default_rng(seed)
        T, N = self.X.shape
        W, H = rng.random((self.K, self.L, N)), rng.random((T, self.K))
        level = np.sqrt(self.X.mean() / (0.25 * self.K * self.L))
        return (level * W).astype(np.float32), (level * H).astype(np.float32)


def _synthetic(T: int, probability: float, noise: float) -> tuple[np.ndarray, int, int]:
    data = make_sequences(T, activation_probability=probability, noise=noise, random_state=0)
    return data.X, 5, 20


def _song() -> tuple[np.ndarray, int, int]:
    return loadmat(SONGBIRD)["SONG"].T, 3, 50


def _speech() -> tuple[np.ndarray, int, int]:
    _, samples = wavfile.read(SPEECH)
    settings = {"window": "hann", "nperseg": 512, "noverlap": 384}
    spectrum = stft(samples / 32768, boundary=None, padded=False, **settings)[2]
    X = np.log(np.abs(spectrum) + 1e-6).T
    return X - X.min(), 20, 12


def _shape(T: int, N: int, K: int, L: int) -> tuple[np.ndarray, int, int]:
    return make_sequences(T, N, K, L, random_state=0).X, K, L


def planted(T: int, N: int, K: int, L: int) -> tuple[np.ndarray, int, int]:
    """Sparse activations of narrow motifs with noise, made in single precision: for a large T."""
    rng = np.random.default_rng(0)
    W = (rng.random((K, L, N)) ** 6).astype(np.float32)
    H = (rng.exponential(1.0, (T, K)) * (rng.random((T, K)) < 0.1)).astype(np.float32)
    X = np.empty((T, N), dtype=np.float32)
    for a in range(0, T, 10_000):
        b = min(a + 10_000, T)
        X[a:b] = 0.3 * np.abs(rng.standard_normal((b - a, N), dtype=np.float32))
        for lag in range(L):
            first = max(a, lag)
            X[first:b] += H[first - lag : b - lag] @ W[:, lag]
    return X, K, L


def _speech_or_alike() -> tuple[np.ndarray, int, int]:
    """Speech where the recording is at hand, or else made-up data of the same shape."""
    return _speech() if SPEECH.exists() else planted(20_149, 257, 20, 12)


# "synthetic": the reading that reproduces the paper's figures; "sparse": few activations, noise 1.
PROBLEMS: dict[str, Callable[[], tuple[np.ndarray, int, int]]] = {
    **{f"synthetic-{T}": lambda T=T: _synthetic(T, 0.9, 0.1) for T in (500, 2500, 10000, 50000)},
    **{f"sparse-{T}": lambda T=T: _synthetic(T, 0.1, 1.0) for T in (500, 2500, 10000, 50000)},
    "song": _song,
    "neural": lambda: (loadmat(SONGBIRD)["NEURAL"].T, 3, 50),
    "speech": _speech,
    "speech-shape": _speech_or_alike,
    "million": lambda: planted(1_000_000, 250, 5, 20),
    "long-motifs": lambda: _shape(20000, 100, 3, 200),
    "wide": lambda: _shape(2000, 5000, 5, 10),
    "nmf-tall": lambda: _shape(20000, 100, 10, 1),
    "nmf-wide": lambda: _shape(500, 5000, 10, 1),
    "nmf-square": lambda: _shape(2000, 2000, 10, 1),
}


# What the names on the page stand for: name, what it is, T × N, K, L.
ABOUT = [
    (
        "synthetic-T",
        "the paper's section IV-A: five sequences of smooth bumps through 250 features, activated "
        "in nine bins of ten, noise 0.1 (the reading that gives the paper's curves)",
        "T × 250",
        "5",
        "20",
    ),
    ("sparse-T", "the same with activations in one bin of ten and noise 1", "T × 250", "5", "20"),
    ("song", "spectrogram of a zebra finch's song (`fetch_songbird`)", "4,440 × 141", "3", "50"),
    ("neural", "calcium traces of neurons in the bird's HVC", "666 × 75", "3", "50"),
    (
        "speech",
        "log spectrogram of two men saying digits (`fetch_spoken_digits`)",
        "20,149 × 257",
        "20",
        "12",
    ),
    (
        "speech-shape",
        "speech, or made-up data of its shape where the recording is absent",
        "20,149 × 257",
        "20",
        "12",
    ),
    ("long-motifs", "sequences of many lags", "20,000 × 100", "3", "200"),
    ("wide", "more features than time bins", "2,000 × 5,000", "5", "10"),
    ("nmf-tall", "a single lag, which is NMF", "20,000 × 100", "10", "1"),
    ("nmf-wide", "the same, wide", "500 × 5,000", "10", "1"),
    ("nmf-square", "the same, square", "2,000 × 2,000", "10", "1"),
]


def load(name: str) -> Benchmark:
    """The problem of that name."""
    X, K, L = PROBLEMS[name]()
    return Benchmark(name, np.ascontiguousarray(X, dtype=np.float32), K, L)


def shaped(T: int, N: int, K: int, L: int) -> Benchmark:
    """Made-up sequences of any shape."""
    X, *_ = _shape(T, N, K, L)
    return Benchmark(f"{T} × {N}", np.ascontiguousarray(X, dtype=np.float32), K, L)
