"""Sound to spectrograms that know the way back: by masks, to sounds that add up."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from motifold.io import Recording
from motifold.io.audio import read_channels
from motifold.io.guards import require
from motifold.spectra import NOISE_FLOOR, Scale, Transform, remove_floor, window_for

Array = npt.NDArray[Any]
Kind = Literal["stft", "mel", "cqt"]

_LOWEST = 32.70  # Hz of constant-Q: C1, librosa's


@dataclass(frozen=True)
class Spectrogram:
    """A sound, what of it is factorised, and what it takes to get from one to the other.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows are time bins; the middle of row t is at ``t / rate`` seconds. Of several channels it
        is made of the mean of their magnitudes, in which nothing cancels out.
    waveform : ndarray of shape (samples, channels)
    sr : float
        Samples per second.
    rate : float
        Time bins per second.
    feature_axis : ndarray of shape (n_features,)
        Hz.
    transform : Transform
        Of the waveform; its window and hop are in samples.
    source : str
    options : dict
        How it was made, as ``from_audio`` takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.sound import from_audio
    >>> y = np.random.default_rng(0).standard_normal(8000)
    >>> spectrogram = from_audio(y, sr=8000, n_fft=512, hop_length=128)
    >>> spectrogram.X.shape, spectrogram.rate
    ((63, 257), 62.5)
    >>> half = spectrogram.sounds(lambda a, b: [np.full((b - a, 257), 0.5)])[0]
    >>> bool(np.allclose(half, y / 2, atol=1e-6))
    True
    """

    X: Array
    waveform: Array
    sr: float
    rate: float
    feature_axis: Array
    transform: Transform
    source: str = "a sound"
    options: dict[str, Any] = field(default_factory=dict)
    spread: Array | None = None  # (features, frequencies): how a mask becomes one of the transform
    flat: bool = False  # whether the waveform was given without channels

    @property
    def recording(self) -> Recording:
        """The same as what the rest of the package takes."""
        names = tuple(f"{frequency:g} Hz" for frequency in self.feature_axis)
        axis = self.feature_axis
        return Recording(self.X, self.source, self.rate, names, feature_axis=axis)

    def sounds(self, masks: Callable[[int, int], Sequence[Array]]) -> list[Array]:
        """The sound under each of some masks, float32, in the shape of the waveform.

        Parameters
        ----------
        masks : callable
            ``masks(a, b)`` gives those of time bins a to b, each (b − a, n_features). Where they
            sum to one, the sounds sum to the waveform.

        Returns
        -------
        list of ndarray
        """
        n, T = len(self.waveform), len(self.X)
        out: list[Array] = []
        for first, last in self.transform.blocks(n, whole=True):
            a, b = min(max(first, 0), T - 1), max(min(last, T), 1)
            rows = np.clip(np.arange(first, last), a, b - 1) - a
            given = masks(a, b)
            out = out or [np.zeros(self.waveform.shape, np.float32) for _ in given]
            full = [mask if self.spread is None else mask @ self.spread for mask in given]
            for channel in range(self.waveform.shape[1]):
                frames = self.transform.rows(self.waveform[:, channel], first, last)
                for mask, sound in zip(full, out, strict=True):
                    self.transform.add(frames * mask[rows], first, sound[:, channel])
        return [sound[:, 0] for sound in out] if self.flat else out


def from_audio(
    y: Any,
    sr: float | None = None,
    *,
    n_fft: int | None = None,
    hop_length: int | None = None,
    scale: str = "sqrt",
    gamma: float = 1000.0,
    noise_floor: float | None = None,
    kind: Kind = "stft",
    n_mels: int = 128,
    bins_per_octave: int = 24,
) -> Spectrogram:
    """Make a spectrogram of a sound.

    Parameters
    ----------
    y : array-like of shape (samples,) or (samples, channels), or a path
        A waveform, or a sound file.
    sr : float
        Samples per second; a file tells its own.
    n_fft, hop_length : int or None
        Samples of a window and from one to the next, as librosa names them. None: the power of two
        that has 40 ms or more, and a quarter of it.
    scale : {"sqrt", "magnitude", "power", "log1p", "log"}, default="sqrt"
        ``√|S|``, ``|S|``, ``|S|²``, ``log(1 + γ|S|)``, or ``log(|S| + 1e-6)`` less its minimum.
    gamma : float, default=1000
        γ of "log1p".
    noise_floor : float or None
        Share of the time in which a frequency is silent; that level is taken off. None: 0.1 for
        "sqrt" and "log1p", else 0.
    kind : {"stft", "mel", "cqt"}, default="stft"
        Frequencies as they are, in ``n_mels`` mel bands, or constant-Q with ``bins_per_octave``;
        the last two need librosa. Sounds are made of the waveform's transform in any case.
    n_mels, bins_per_octave : int

    Returns
    -------
    Spectrogram

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.sound import from_audio
    >>> y = np.sin(2 * np.pi * 440 * np.arange(8000) / 8000) * (np.arange(8000) % 2000 < 800)
    >>> spectrogram = from_audio(y, sr=8000)
    >>> spectrogram.options["n_fft"], spectrogram.options["hop_length"]
    (512, 128)
    >>> model = CNMF(1, spectrogram.recording.bins("100ms"), random_state=0).fit(spectrogram.X)
    """
    source = "a sound"
    if isinstance(y, (str, os.PathLike)):
        source = os.fspath(y)
        y, sr = read_channels(Path(y))
    if sr is None:
        raise ValueError("sr, the samples per second, is needed with a waveform.")
    waveform = _checked(y)
    flat, waveform = waveform.ndim == 1, waveform.reshape(len(waveform), -1)
    flat = flat or (source != "a sound" and waveform.shape[1] == 1)
    window = n_fft or window_for(sr)
    hop = hop_length or max(1, window // 4)
    if not 0 < hop <= window // 2:
        raise ValueError(
            f"hop_length ({hop}) must be at most half of n_fft ({window}): else masks are heard as "
            "a tremolo."
        )
    transform = Transform(window, hop, float(sr))
    if noise_floor is None:
        noise_floor = NOISE_FLOOR.get(scale, 0.0)
    bank, axis, spread = _bank(kind, transform, n_mels)
    if kind == "cqt":
        X, axis, spread = _constant_q(waveform, transform, bins_per_octave)
    else:
        X = _magnitudes(waveform, transform, bank)
    measure = Scale(scale, gamma)
    level = measure.level(float(X.min()))
    X = measure.of(X)
    if level:
        X -= level
    if noise_floor:
        remove_floor(X, noise_floor)
    options = {"n_fft": window, "hop_length": hop, "scale": scale, "gamma": gamma}
    options |= {"noise_floor": noise_floor, "kind": kind, "n_mels": n_mels}
    options |= {"bins_per_octave": bins_per_octave}
    known = X, waveform, float(sr), sr / hop, axis, transform
    return Spectrogram(*known, source=source, options=options, spread=spread, flat=flat)


def _checked(y: Any) -> Array:
    waveform = np.asarray(y)
    if waveform.dtype.kind in "iu":
        raise ValueError(
            f"The waveform has whole numbers ({waveform.dtype}): divide them by the largest there "
            f"can be, {np.iinfo(waveform.dtype).max}, so that samples are from −1 to 1."
        )
    if waveform.ndim not in (1, 2) or waveform.dtype.kind != "f" or not waveform.size:
        raise ValueError(
            "A waveform has shape (samples,) or (samples, channels) and real numbers; this has "
            f"shape {waveform.shape} and type {waveform.dtype}."
        )
    if waveform.ndim == 2 and waveform.shape[0] < waveform.shape[1]:
        raise ValueError(
            f"The waveform has shape {waveform.shape}: more channels than samples. Is it librosa's "
            "(channels, samples)? Give its transpose, y.T."
        )
    if not np.isfinite(waveform).all():
        raise ValueError("The waveform has samples that are NaN or infinite.")
    return waveform


def _magnitudes(waveform: Array, transform: Transform, bank: Array | None) -> Array:
    """Mean of |S| over the channels, (rows, features)."""
    n, channels = waveform.shape
    N = transform.window // 2 + 1 if bank is None else bank.shape[1]
    X = np.zeros((transform.n_rows(n), N))
    for a, b in transform.blocks(n):
        for channel in waveform.T:
            S = np.abs(transform.rows(channel, a, b))
            X[a:b] += (S if bank is None else S @ bank) / channels
    return X


def _bank(kind: str, transform: Transform, n_mels: int) -> tuple[Array | None, Array, Array | None]:
    """What makes features of frequencies (F, N), their Hz, and how masks go back (N, F)."""
    if kind != "mel":
        if kind not in ("stft", "cqt"):
            raise ValueError(f"kind must be stft, mel or cqt, not {kind!r}.")
        return None, transform.frequencies, None
    librosa = require("librosa", "sound")
    filters = librosa.filters.mel(
        sr=transform.rate, n_fft=transform.window, n_mels=n_mels, norm=None
    ).astype(np.float64)
    if not filters.any(axis=1).all():
        raise ValueError(
            f"{n_mels} mel bands are too many for windows of {transform.window} samples: some are "
            "empty. Set a larger n_fft or fewer n_mels."
        )
    centres = librosa.mel_frequencies(n_mels + 2, fmax=transform.rate / 2)[1:-1]
    return filters.T / filters.sum(axis=1), centres, _spread(filters, centres, transform)


def _constant_q(
    waveform: Array, transform: Transform, bins_per_octave: int
) -> tuple[Array, Array, Array]:
    """Mean of the constant-Q magnitudes of the channels, their Hz, and how masks go back."""
    librosa = require("librosa", "sound")
    octaves = np.log2(transform.rate / 2 / _LOWEST) - 0.1
    n_bins = int(octaves * bins_per_octave)
    given = {"sr": transform.rate, "hop_length": transform.hop, "n_bins": n_bins}
    given |= {"bins_per_octave": bins_per_octave, "fmin": _LOWEST}
    parts = [np.abs(librosa.cqt(np.ascontiguousarray(c), **given)).T for c in waveform.T]
    X = np.mean(parts, axis=0)[: transform.n_rows(len(waveform))].astype(np.float64)
    # In the units of the transform: librosa's grow with the length of the filter.
    X /= transform.window
    centres = _LOWEST * 2.0 ** (np.arange(n_bins) / bins_per_octave)
    width = 1 / bins_per_octave
    distance = np.abs(
        np.log2(np.maximum(transform.frequencies, 1e-3))[None, :] - np.log2(centres)[:, None]
    )
    return X, centres, _spread(np.maximum(0, 1 - distance / width), centres, transform)


def _spread(filters: Array, centres: Array, transform: Transform) -> Array:
    """Shares (N, F) of the features in every frequency: columns sum to one."""
    spread = np.array(filters, dtype=np.float64)
    frequencies = np.maximum(transform.frequencies, 1e-3)
    for f in np.flatnonzero(~spread.any(axis=0)):  # no feature covers it: the nearest has it
        spread[np.argmin(np.abs(np.log(centres / frequencies[f]))), f] = 1
    return spread / spread.sum(axis=0)
