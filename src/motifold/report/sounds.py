"""Motifs to listen to, where the recording is a sound: embedded wav files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from motifold.report.clips import motif_alone, sound_of, wav
from motifold.report.facts import Facts
from motifold.report.markup import Markup, tag

if TYPE_CHECKING:
    from motifold.io.audio import Sound

_SECONDS = 3.0  # of each clip, or three times the motif if that is longer


def players(facts: Facts) -> list[Markup] | None:
    """For each motif, two players; None where the recording is no sound file that is still there.

    One plays the recording around the motif's strongest event, the other the motif's part of the
    reconstruction there, with the phase of the recording.
    """
    sound = sound_of(facts.recording)
    if sound is None:
        return None
    return [_pair(facts, sound, k) for k in range(facts.model.n_components)]


def _pair(facts: Facts, sound: Sound, k: int) -> Markup:
    H, L = facts.activations, facts.model.n_lags
    if not H[:, k].any():
        return tag("span", "silent")
    n_bins = max(round(_SECONDS * sound.rate / sound.hop), 3 * L)
    start = max(0, int(np.argmax(H[:, k])) + L // 2 - n_bins // 2)
    stop = min(len(H), start + n_bins)
    alone = motif_alone(sound, facts.model, H, k, start, stop)
    there = sound.invert(np.asarray(facts.recording.X[start:stop]), start)
    return tag(
        "div",
        _player("motif", alone, sound.rate, f"Motif {k} alone"),
        _player("recording", there, sound.rate, "The recording there"),
        class_="players",
    )


def _player(name: str, waveform: npt.NDArray[Any], rate: float, title: str) -> Markup:
    data = base64.b64encode(wav(waveform, rate)).decode()
    source = f"data:audio/wav;base64,{data}"
    return tag(
        "label",
        f"{name} ",
        tag("audio", controls=True, preload="none", src=source, title=title),
    )
