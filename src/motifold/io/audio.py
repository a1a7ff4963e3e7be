"""Sound files, read by soundfile: their spectrograms, and the way back to sound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.guards import RecordingError, check_expansion, guard, require
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.spectra import NOISE_FLOOR, Scale, Transform, remove_floor, window_for

OPTIONS = {"window", "hop", "scale", "noise_floor", "channel"}
OF_0_1 = {"window": 512, "scale": "log"}  # what models of 0.1 were fitted to, if they do not say
_SCALE = "sqrt"
_BLOCK_BYTES = 2**22  # of samples at a time
_SINGLE = {"PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "FLOAT"}  # samples that float32 holds exactly
_CANCEL = 0.01  # of the channels' power that is left in their mean: they are of opposite phase
_FOREIGN = (".m4a", ".aac", ".wma", ".mp4")  # what libsndfile does not read

Masks = Callable[[int, int], npt.NDArray[Any]]


@dataclass(frozen=True)
class Sound:
    """A sound and its short-time Fourier transform, which is made in blocks and never held whole.

    Attributes
    ----------
    waveform : (samples,), of one channel or the mean of all
    rate : samples per second
    window, hop : samples
    scale : as ``motifold.spectra.Scale`` names it
    noise_floor : share of the time of which the level is taken for noise, and off; 0: none is
    hints : what was done with the channels
    """

    waveform: npt.NDArray[Any]
    rate: float
    window: int
    hop: int
    scale: str
    noise_floor: float = 0.0
    hints: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features) of the spectrogram."""
        return self.transform.n_rows(len(self.waveform)), self.window // 2 + 1

    @cached_property
    def transform(self) -> Transform:
        """Centred windows: time bin 0 is at the first sample."""
        return Transform(self.window, self.hop, self.rate)

    def stft(self, a: int, b: int) -> npt.NDArray[Any]:
        """Time bins a to b × frequencies, complex."""
        return self.transform.rows(self.waveform, a, b)

    @property
    def spectrogram(self) -> npt.NDArray[Any]:
        """What is factorised, (n_samples, n_features)."""
        X, scale = np.empty(self.shape), Scale(self.scale)
        least = np.inf
        for a, magnitude in self._blocks():
            least = min(least, float(magnitude.min()))
            X[a : a + len(magnitude)] = scale.of(magnitude)
        if scale.level(least):
            X -= scale.level(least)
        if self.noise_floor:
            remove_floor(X, self.noise_floor)
        return X

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """First time bin and magnitudes of some time bins."""
        for a, b in self.transform.blocks(len(self.waveform)):
            yield a, np.abs(self.stft(a, b))

    def samples(self, start: int, stop: int) -> tuple[int, int]:
        """The samples of time bins start to stop; those of the last bin go to the end."""
        n = len(self.waveform)
        return start * self.hop, n if stop >= self.shape[0] else min(stop * self.hop, n)

    def masked(self, masks: Masks, start: int, stop: int) -> npt.NDArray[Any]:
        """The sound of time bins start to stop under a mask of its transform, (samples,).

        ``masks(a, b)`` are those of time bins a to b. Bins beside the stretch reach into it, and
        are asked for: so it is the cut of what all bins would give, whatever the stretch is.
        """
        begin, end = self.samples(start, stop)
        out = np.zeros(end - begin)
        if not len(out):
            return out
        middle, T = self.window // 2, self.shape[0]
        first, last = (begin + middle - self.window) // self.hop + 1, -(-(end + middle) // self.hop)
        a, b = min(max(first, 0), T - 1), max(min(last, T), 1)
        rows = np.clip(np.arange(first, last), a, b - 1) - a
        frames = self.transform.rows(self.waveform, first, last) * masks(a, b)[rows]
        self.transform.add(frames, first, out, begin)
        return out


def read(path: Path, options: Options) -> Recording:
    """The spectrogram of the sound; the rate is that of its windows."""
    if options.rate is not None:
        raise RecordingError(f"{path}: a sound file tells its own rate; leave rate out, set hop.")
    sound = read_sound(path, options)
    frequencies = sound.transform.frequencies
    return Recording(
        sound.spectrogram,
        str(path),
        sound.rate / sound.hop,
        tuple(f"{frequency:g} Hz" for frequency in frequencies),
        feature_axis=frequencies,
        options=_said(sound.rate, options),
        hints=(*_what_was_done(sound, options), *sound.hints),
    )


def _said(rate: float, options: Options) -> dict[str, Any]:
    """Window, hop and scale, also where nobody said them: a model remembers them."""
    window = options.window or window_for(rate)
    hop = options.hop or max(1, window // 4)
    scale = options.scale or _SCALE
    floor = options.noise_floor
    floor = NOISE_FLOOR.get(scale, 0.0) if floor is None else floor
    return {"window": window, "hop": hop, "scale": scale, "noise_floor": floor}


def _what_was_done(sound: Sound, options: Options) -> tuple[str, ...]:
    """A sentence on what nobody said."""
    if options.window and options.scale:
        return ()
    names = {"sqrt": "√|S|", "magnitude": "|S|", "power": "|S|²", "log1p": "log(1 + 1000·|S|)"}
    return (
        f"What is factorised is {names.get(sound.scale, 'log |S|')} of windows of {sound.window} "
        f"samples ({1000 * sound.window / sound.rate:.0f} ms), one every {sound.hop} "
        f"({1000 * sound.hop / sound.rate:.3g} ms){_floor(sound)}. Others by window, hop, scale "
        "and noise_floor.",
    )


def _floor(sound: Sound) -> str:
    if not sound.noise_floor:
        return ""
    share = f"{100 * sound.noise_floor:g}%"
    return f", less the level that each frequency does not exceed in {share} of the time"


def read_sound(path: Path, options: Options) -> Sound:
    """The sound, from which its transform can be made."""
    with _opened(path) as sound:
        said = _said(sound.samplerate, options)
        window, hop = said["window"], said["hop"]
        if hop >= window:
            raise RecordingError(f"{path}: hop ({hop}) must be smaller than window ({window}).")
        shape = 1 + max(0, sound.frames) // hop, window // 2 + 1
        nbytes = 8 * sound.frames + 8 * math.prod(shape)
        check_expansion(path, nbytes, path.stat().st_size, options.max_bytes)
        waveform, hints = _one_channel(path, sound, options.channel)
        rate = float(sound.samplerate)
    _check_riff(path)
    return Sound(waveform, rate, window, hop, said["scale"], said["noise_floor"], hints)


def read_channels(path: Path, max_bytes: int | None = None) -> tuple[npt.NDArray[Any], float]:
    """All channels of a sound file (samples, channels), float64, and its rate."""
    with _opened(path) as sound:
        check_expansion(path, 8 * sound.frames * sound.channels, path.stat().st_size, max_bytes)
        out = np.empty((max(0, sound.frames), sound.channels))
        for n, block in _samples(path, sound):
            out[n : n + len(block)] = block
        rate = float(sound.samplerate)
    _check_riff(path)
    return out, rate


def write_waveform(
    path: str | Path | Any, waveform: npt.NDArray[Any], rate: float, *, kind: str = "wav"
) -> None:
    """Write samples (n,) or (n, channels): wav in 32-bit floats, flac in 24 bits.

    Floats do not clip. In 24 bits what is beyond ±1 has no number, and is refused.
    """
    if kind == "wav":
        from scipy.io import wavfile

        # soundfile would write the time of day into it: the same sound, another file.
        wavfile.write(path, round(rate), np.asarray(waveform, np.float32))
        return
    soundfile = require("soundfile", "io")
    peak = float(np.abs(waveform).max(initial=0.0))
    if peak > 1:
        raise ValueError(
            f"A flac file holds samples from −1 to 1, and there are some of {peak:.3g}. Write wav, "
            "which holds them all."
        )
    soundfile.write(path, waveform, round(rate), format="FLAC", subtype="PCM_24")


def _opened(path: Path) -> Any:
    """The file, opened by soundfile."""
    soundfile = require("soundfile", "io")
    if path.suffix.lower() in _FOREIGN:
        raise RecordingError(
            f"{path}: {path.suffix.lower()} is not read by libsndfile. Convert it first, such as "
            f"by ffmpeg -i {path.name} {path.stem}.wav"
        )
    if not path.exists():  # of which libsndfile says no more than "System error"
        raise FileNotFoundError(f"{path}: there is no such file.")
    with guard(path, "a sound file"):
        return soundfile.SoundFile(str(path))


def _samples(path: Path, sound: Any) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Number of the first sample, and samples × channels, in blocks; all are finite and there."""
    expected, n = sound.frames, 0
    rows = max(1, _BLOCK_BYTES // (8 * sound.channels))
    while n < expected:
        with guard(path, "a sound file"):
            block = sound.read(min(rows, expected - n), dtype="float64", always_2d=True)
        if not len(block):
            break
        if not np.isfinite(block).all():
            at = n + int(np.argmin(np.isfinite(block).all(axis=1)))
            raise RecordingError(
                f"{path}: sample {at} ({at / sound.samplerate:.3f} s) is NaN or infinite. Replace "
                "it, or write the sound again."
            )
        yield n, block
        n += len(block)
    if n < expected or expected <= 0:
        raise RecordingError(
            f"{path}: {n} of {expected} samples are there: the file is cut short. Copy it again."
        )


def _one_channel(
    path: Path, sound: Any, chosen: int | None
) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """One channel, or the mean of all, read in blocks; and what is to be said of it."""
    channels = sound.channels
    if chosen is not None and not 0 <= chosen < channels:
        raise RecordingError(f"{path}: there are {channels} channels, numbered from 0.")
    exact = sound.subtype in _SINGLE and (channels == 1 or chosen is not None)
    waveform = np.empty(max(0, sound.frames), np.float32 if exact else np.float64)
    before = after = 0.0
    for n, block in _samples(path, sound):
        one = block.mean(axis=1) if chosen is None else block[:, chosen]
        waveform[n : n + len(block)] = one
        before += float(np.vdot(block, block)) / channels
        after += float(np.vdot(one, one))
    if channels == 1 or chosen is not None:
        return waveform, ()
    told = f"The mean of {channels} channels was taken; one of them by channel=0, 1, …"
    if after < _CANCEL * before:
        told = (
            f"The mean of {channels} channels was taken, and it is nearly silent: they cancel each "
            "other out, being of opposite phase. Take one of them by channel=0."
        )
    return waveform, (told,)


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
