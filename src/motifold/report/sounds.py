"""Motifs to listen to, where the recording is a sound: embedded wav files."""

from __future__ import annotations

import base64
import io
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import Options
from motifold.io.reading import READERS
from motifold.report.facts import Facts
from motifold.report.markup import Markup, tag

_SECONDS = 3.0  # of each clip, or three times the motif if that is longer
_LOUDNESS = 0.8


def players(facts: Facts) -> list[Markup] | None:
    """For each motif, two players; None where the recording is no sound file that is still there.

    One plays the recording around the motif's strongest event, the other the motif's part of the
    reconstruction there, with the phase of the recording.
    """
    path = Path(facts.recording.source)
    ending = "." + str(facts.recording.options.get("kind", path.suffix)).lstrip(".").lower()
    if READERS.get(ending) != "audio" or not path.is_file():
        return None
    from motifold.io.audio import read_sound

    sound = read_sound(path, Options(**facts.recording.options))
    return [_pair(facts, sound, k) for k in range(facts.model.n_components)]


def _pair(facts: Facts, sound: Any, k: int) -> Markup:
    H, L = facts.activations, facts.model.n_lags
    if not H[:, k].any():
        return tag("span", "silent")
    n_bins = max(round(_SECONDS * sound.rate / sound.hop), 3 * L)
    start = max(0, int(np.argmax(H[:, k])) + L // 2 - n_bins // 2)
    stop = min(len(H), start + n_bins)
    first = max(0, start - L + 1)  # activations from here on reach into the clip
    alone = np.zeros_like(H[first:stop])
    alone[:, k] = H[first:stop, k]
    part = np.asarray(facts.model.inverse_transform(alone))[start - first :]
    mixture = sound.spectrogram[start:stop]
    return tag(
        "div",
        _player("motif", sound.invert(part, start), sound.rate, f"Motif {k} alone"),
        _player("recording", sound.invert(mixture, start), sound.rate, "The recording there"),
        class_="players",
    )


def _player(name: str, waveform: npt.NDArray[Any], rate: float, title: str) -> Markup:
    data = base64.b64encode(_wav(waveform, rate)).decode()
    source = f"data:audio/wav;base64,{data}"
    return tag(
        "label",
        f"{name} ",
        tag("audio", controls=True, preload="none", src=source, title=title),
    )


def _wav(waveform: npt.NDArray[Any], rate: float) -> bytes:
    """16-bit samples, each clip as loud as the others."""
    peak = float(np.abs(waveform).max(initial=0)) or 1.0
    samples = np.round(waveform * (_LOUDNESS * 32767 / peak)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(round(rate))
        writer.writeframes(samples.tobytes())
    return file.getvalue()
