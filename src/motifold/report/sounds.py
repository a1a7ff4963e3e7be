"""Motifs to listen to, where the recording is a sound: embedded wav files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from motifold.findings.facts import Facts
from motifold.report.clips import clip, gain_of, is_audible, sound_of, there, wav
from motifold.report.markup import Markup, tag

if TYPE_CHECKING:
    from motifold.io.audio import Sound

_SECONDS = 3.0  # of each clip, or three times the motif if that is longer


def players(facts: Facts) -> list[Markup] | None:
    """For each motif, two players; None where the recording is no sound file that is still there.

    One plays the recording around the motif's strongest event, the other the motif's share of it
    there. All are raised by the same, so that what is quiet in the recording is quiet here.
    """
    sound = sound_of(facts.recording)
    if sound is None or not is_audible(facts.model):
        return None
    gain = gain_of(sound)
    return [_pair(facts, sound, k, gain) for k in range(facts.model.n_components)]


def _pair(facts: Facts, sound: Sound, k: int, gain: float) -> Markup:
    n_bins = max(round(_SECONDS * sound.rate / sound.hop), 3 * int(facts.model.n_lags))
    stretch = facts.fit.strongest(k, n_bins)
    if stretch is None:
        return tag("span", "silent")
    start, stop = stretch
    alone, recording = clip(facts.fit, sound, k, start, stop), there(sound, start, stop)
    return tag(
        "div",
        player("motif", wav(alone, sound.rate, gain), f"Motif {k} alone"),
        player("recording", wav(recording, sound.rate, gain), "The recording there"),
        class_="players",
    )


def player(name: str, file: bytes, title: str) -> Markup:
    """A player of a wav file, with its name."""
    data = base64.b64encode(file).decode()
    source = f"data:audio/wav;base64,{data}"
    return tag(
        "label",
        f"{name} ",
        tag("audio", controls=True, preload="none", src=source, title=title),
    )
