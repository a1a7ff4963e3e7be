"""Motifs to listen to, where the recording is a sound: embedded wav files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from motifold.findings.facts import Facts
from motifold.report.clips import is_audible, sound_of, wav
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
    if sound is None or not is_audible(facts.model):
        return None
    return [_pair(facts, sound, k) for k in range(facts.model.n_components)]


def _pair(facts: Facts, sound: Sound, k: int) -> Markup:
    n_bins = max(round(_SECONDS * sound.rate / sound.hop), 3 * facts.model.n_lags)
    stretch = facts.fit.strongest(k, n_bins)
    if stretch is None:
        return tag("span", "silent")
    start, stop = stretch
    alone = sound.invert(facts.fit.part(k, start, stop), start)
    there = sound.invert(facts.fit.reference(start, stop), start)
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
