"""Motifs from sounds of which it is known what they are: folders of samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import RecordingError
from motifold.io.audio import read_channels
from motifold.io.reading import READERS
from motifold.sound.representations import Spectrogram, from_audio

Array = npt.NDArray[Any]
Sounds = Mapping[str, Any] | Sequence[str | os.PathLike[str]]

_BEGINS = 0.05  # of its largest row: where a sample is taken to begin


def named(templates: Sounds) -> dict[str, Any]:
    """Templates by name: of a folder or a file its own name."""
    if isinstance(templates, Mapping):
        return {str(name): value for name, value in templates.items()}
    found: dict[str, Any] = {}
    for path in map(Path, templates):
        name = path.resolve().stem
        if name in found:
            raise ValueError(f"Two templates have the name {name!r}: rename a folder.")
        found[name] = path
    return found


def motif_of(template: Any, like: Spectrogram, n_lags: int) -> Array:
    """One motif (n_lags, n_features), of unit norm: the mean of the samples of a sound.

    ``template``: a folder of sound files, one of them, or a waveform at the rate of ``like``.
    """
    motifs = [_motif(waveform, like, n_lags) for waveform in _waveforms(template, like.sr)]
    mean = np.mean(motifs, axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def _motif(waveform: Array, like: Spectrogram, n_lags: int) -> Array:
    options = {**like.options, "noise_floor": 0.0}
    X = from_audio(waveform, like.sr, **options).X
    loud = X.sum(axis=1)
    if not loud.any():
        raise RecordingError("A template is silent: leave it out.")
    first = int(np.argmax(loud >= _BEGINS * loud.max()))
    X = X[first : first + n_lags]
    X = np.pad(X, ((0, n_lags - len(X)), (0, 0)))
    return np.asarray(X / np.linalg.norm(X))


def _waveforms(template: Any, sr: float) -> list[Array]:
    if not isinstance(template, (str, os.PathLike)):
        return [np.asarray(template)]
    path = Path(template)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such folder or file of templates.")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if READERS.get(file.suffix.lower()) == "audio"]
    if not files:
        raise RecordingError(f"{path}: there is no sound file in it.")
    return [_at_rate(*read_channels(file), sr) for file in files]


def _at_rate(waveform: Array, rate: float, sr: float) -> Array:
    """The waveform at another rate."""
    if rate == sr:
        return waveform
    from math import gcd

    from scipy.signal import resample_poly

    common = gcd(round(sr), round(rate))
    return np.asarray(resample_poly(waveform, round(sr) // common, round(rate) // common, axis=0))
