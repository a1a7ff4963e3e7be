"""Sound files, read by soundfile: their spectrograms, and the way back to sound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.guards import RecordingError, check_expansion, guard, require
from motifold.io.reading import Options
from motifold.io.recording import Recording

OPTIONS = {"window", "hop", "scale", "channel"}
_EPSILON = 1e-6  # what stands for silence under the logarithm, as in the paper's speech matrix
_WINDOW = 512
_BLOCK_BYTES = 2**22  # of samples, or of the transform, at a time
_ALIGNED = 64  # time bins: so that a block has the bits that it has in a transform of all
_SINGLE = {"PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "FLOAT"}  # samples that float32 holds exactly


@dataclass(frozen=True)
class Sound:
    """A sound and its short-time Fourier transform, which is made in blocks and never held whole.

    Attributes
    ----------
    waveform : (samples,), of one channel
    rate : samples per second
    window, hop : samples
    scale : "log", "magnitude" or "power"
    """

    waveform: npt.NDArray[Any]
    rate: float
    window: int
    hop: int
    scale: str

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features) of the spectrogram."""
        return _shape(len(self.waveform), self.window, self.hop)

    def stft(self, a: int, b: int) -> npt.NDArray[Any]:
        """Time bins a to b × frequencies, complex: Hann windows, no padding at the ends."""
        from scipy.signal import stft

        samples = self.waveform[a * self.hop : (b - 1) * self.hop + self.window]
        _, _, transform = stft(
            samples.astype(np.float64),
            fs=self.rate,
            window="hann",
            nperseg=self.window,
            noverlap=self.window - self.hop,
            boundary=None,
            padded=False,
        )
        return np.asarray(transform.T)

    @property
    def spectrogram(self) -> npt.NDArray[Any]:
        """What is factorised, (n_samples, n_features)."""
        X = np.empty(self.shape)
        least = np.inf
        for a, magnitude in self._blocks():
            least = min(least, float(magnitude.min()))
            rows = X[a : a + len(magnitude)]
            rows[:] = np.log(magnitude + _EPSILON) if self.scale == "log" else magnitude
            if self.scale == "power":
                rows **= 2
        if self.scale == "log":
            X -= float(np.log(least + _EPSILON))
        return X

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """First time bin and magnitudes of some time bins."""
        T, F = self.shape
        rows = max(_ALIGNED, _BLOCK_BYTES // (16 * F) // _ALIGNED * _ALIGNED)
        for a in range(0, T, rows):
            yield a, np.abs(self.stft(a, min(a + rows, T)))

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        """The least and the largest magnitude."""
        found = [(float(m.min()), float(m.max())) for _, m in self._blocks()]
        return min(low for low, _ in found), max(high for _, high in found)

    @property
    def floor(self) -> float:
        """What is taken off the logarithm so that the smallest value is zero."""
        return float(np.log(self._extremes[0] + _EPSILON)) if self.scale == "log" else 0.0

    def _magnitude(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.scale == "log":
            # Never louder than a reconstruction can mean: at most the mixture's own maximum.
            loudest = float(np.log(self._extremes[1] + _EPSILON))
            return np.maximum(np.exp(np.minimum(X + self.floor, loudest)) - _EPSILON, 0)
        return np.sqrt(X) if self.scale == "power" else X

    def invert(self, X: npt.NDArray[Any], start: int) -> npt.NDArray[Any]:
        """The waveform of a spectrogram X that begins at time bin ``start``, (samples,).

        The phase is the mixture's, of the same time bins.
        """
        from scipy.signal import istft

        phase = np.exp(1j * np.angle(self.stft(start, start + len(X))))
        with warnings.catch_warnings():
            # The Hann window is zero at its ends: the first and last samples cannot be known.
            warnings.filterwarnings("ignore", "NOLA condition failed", UserWarning)
            _, waveform = istft(
                (self._magnitude(np.asarray(X, np.float64)) * phase).T,
                fs=self.rate,
                nperseg=self.window,
                noverlap=self.window - self.hop,
                boundary=False,
            )
        return np.asarray(waveform)


def read(path: Path, options: Options) -> Recording:
    """The spectrogram of the sound; the rate is that of its windows."""
    if options.rate is not None:
        raise RecordingError(f"{path}: a sound file tells its own rate; leave rate out, set hop.")
    sound = read_sound(path, options)
    frequencies = np.fft.rfftfreq(sound.window, 1 / sound.rate)
    return Recording(
        sound.spectrogram,
        str(path),
        sound.rate / sound.hop,
        tuple(f"{frequency:g} Hz" for frequency in frequencies),
        feature_axis=frequencies,
    )


def read_sound(path: Path, options: Options) -> Sound:
    """The sound, from which its transform can be made."""
    window = options.window or _WINDOW
    hop = options.hop or max(1, window // 4)
    if hop >= window:
        raise RecordingError(f"{path}: hop ({hop}) must be smaller than window ({window}).")
    waveform, rate = _waveform(path, options, window, hop)
    if len(waveform) < window:
        raise RecordingError(
            f"{path}: the sound has {len(waveform)} samples, fewer than one window ({window}). "
            "Set a smaller window."
        )
    return Sound(waveform, float(rate), window, hop, options.scale or "log")


def _shape(samples: int, window: int, hop: int) -> tuple[int, int]:
    """Time bins and frequencies of the transform of so many samples."""
    return max(0, samples - window + hop) // hop, window // 2 + 1


def _waveform(path: Path, options: Options, window: int, hop: int) -> tuple[npt.NDArray[Any], int]:
    """One channel, or the mean of all, read in blocks; and the rate."""
    soundfile = require("soundfile", "io")
    with (
        guard(path, "a sound file"),
        open(path, "rb") as file,
        soundfile.SoundFile(file) as sound,
    ):
        expected, channels, chosen = sound.frames, sound.channels, options.channel
        nbytes = 8 * expected + 8 * math.prod(_shape(expected, window, hop))
        check_expansion(path, nbytes, path.stat().st_size, options.max_bytes)
        if chosen is not None and not 0 <= chosen < channels:
            raise RecordingError(f"{path}: there are {channels} channels, numbered from 0.")
        exact = sound.subtype in _SINGLE and (channels == 1 or chosen is not None)
        waveform = np.empty(max(0, expected), np.float32 if exact else np.float64)
        n, rows = 0, max(1, _BLOCK_BYTES // (8 * channels))
        while n < expected:
            block = sound.read(min(rows, expected - n), dtype="float64", always_2d=True)
            if not len(block):
                break
            one = block.mean(axis=1) if chosen is None else block[:, chosen]
            waveform[n : n + len(block)] = one
            n += len(block)
    if n < expected or expected <= 0:
        raise RecordingError(
            f"{path}: {n} of {expected} samples are there: the file is cut short. Copy it again."
        )
    _check_riff(path)
    return waveform, sound.samplerate


def _check_riff(path: Path) -> None:
    """Refuse a wav file that is cut short: libsndfile reads it without a word, its header tells."""
    with open(path, "rb") as file:
        head = file.read(8)
        if head[:4] != b"RIFF":
            return
        claimed = int.from_bytes(head[4:8], "little") + 8
    size = path.stat().st_size
    # 0 and 2³²−1 are written by programs that do not know the length beforehand.
    if size < claimed - 1 and claimed not in (8, 2**32 + 7):
        raise RecordingError(
            f"{path}: the header tells of {claimed} bytes, there are {size}: the file is cut "
            "short. Copy it again."
        )
