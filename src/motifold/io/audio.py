"""Sound files, read by soundfile: their spectrograms, and the way back to sound."""

from __future__ import annotations

import warnings
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


@dataclass(frozen=True)
class Sound:
    """A sound and its short-time Fourier transform.

    Attributes
    ----------
    stft : complex (n_samples, n_features), time × frequency
    rate : samples per second
    window, hop : samples
    scale : "log", "magnitude" or "power"
    floor : what was taken off the logarithm so that the smallest value is zero
    """

    stft: npt.NDArray[Any]
    rate: float
    window: int
    hop: int
    scale: str
    floor: float

    @property
    def spectrogram(self) -> npt.NDArray[Any]:
        """What is factorised, (n_samples, n_features)."""
        return self._scaled(np.abs(self.stft))

    def _scaled(self, magnitude: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.scale == "log":
            return np.log(magnitude + _EPSILON) - self.floor
        return magnitude**2 if self.scale == "power" else magnitude

    @cached_property
    def _loudest(self) -> float:
        return float(np.log(np.abs(self.stft).max() + _EPSILON))

    def _magnitude(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.scale == "log":
            # Never louder than a reconstruction can mean: at most the mixture's own maximum.
            return np.maximum(np.exp(np.minimum(X + self.floor, self._loudest)) - _EPSILON, 0)
        return np.sqrt(X) if self.scale == "power" else X

    def invert(self, X: npt.NDArray[Any], start: int) -> npt.NDArray[Any]:
        """The waveform of a spectrogram X that begins at time bin ``start``, (samples,).

        The phase is the mixture's, of the same time bins.
        """
        from scipy.signal import istft

        phase = np.exp(1j * np.angle(self.stft[start : start + len(X)]))
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
    """The sound with its transform: Hann windows, no padding at the ends."""
    from scipy.signal import stft

    window = options.window or _WINDOW
    hop = options.hop or max(1, window // 4)
    if hop >= window:
        raise RecordingError(f"{path}: hop ({hop}) must be smaller than window ({window}).")
    waveform, rate = _waveform(path, options)
    if len(waveform) < window:
        raise RecordingError(
            f"{path}: the sound has {len(waveform)} samples, fewer than one window ({window}). "
            "Set a smaller window."
        )
    _, _, transform = stft(
        waveform,
        fs=rate,
        window="hann",
        nperseg=window,
        noverlap=window - hop,
        boundary=None,
        padded=False,
    )
    scale = options.scale or "log"
    floor = float(np.log(np.abs(transform).min() + _EPSILON)) if scale == "log" else 0.0
    return Sound(np.ascontiguousarray(transform.T), float(rate), window, hop, scale, floor)


def _waveform(path: Path, options: Options) -> tuple[npt.NDArray[Any], int]:
    soundfile = require("soundfile", "io")
    with (
        guard(path, "a sound file"),
        open(path, "rb") as file,
        soundfile.SoundFile(file) as sound,
    ):
        nbytes = 8 * sound.frames * sound.channels
        check_expansion(path, nbytes, path.stat().st_size, options.max_bytes)
        expected, rate, channels = sound.frames, sound.samplerate, sound.channels
        samples = sound.read(dtype="float64", always_2d=True)
    if len(samples) < expected or expected == 0:
        raise RecordingError(
            f"{path}: {len(samples)} of {expected} samples are there: the file is cut short. "
            "Copy it again."
        )
    _check_riff(path)
    if options.channel is None:
        return samples.mean(axis=1), rate
    if not 0 <= options.channel < channels:
        raise RecordingError(f"{path}: there are {channels} channels, numbered from 0.")
    return samples[:, options.channel], rate


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
