"""An event to listen to, and the motif alone, where the recording is a sound."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from motifold.explorer.session import Session
from motifold.report.clips import clip, gain_of, is_audible, sound_of, there, wav
from motifold.report.markup import Markup, tag

if TYPE_CHECKING:
    from motifold.io.audio import Sound

_SECONDS = 1.0  # of a clip at least


def sound_under(session: Session) -> Sound | None:
    """The sound that the recording is the spectrogram of; None where motifs cannot be heard."""
    recording = session.subject.recording
    if recording is None or not is_audible(session.subject.model):
        return None
    return sound_of(recording)


def clips(session: Session, sound: Sound, k: int, i: int) -> dict[str, bytes]:
    """Wav files: the recording around event i of motif k, and the motif's part of it."""
    found, subject = session.occurrences(k), session.subject
    T, L = len(subject.fit.H), subject.model.components_.shape[1]
    n = max(2 * L, round(_SECONDS * sound.rate / sound.hop))
    a = max(0, int(found.bins[i]) + L // 2 - n // 2)
    b = min(T, a + n)
    gain = gain_of(sound)
    here, alone = there(sound, a, b), clip(subject.fit, sound, int(found.motifs[i]), a, b)
    return {
        "the recording": wav(here, sound.rate, gain),
        "the motif alone": wav(alone, sound.rate, gain),
    }


def players(files: dict[str, bytes]) -> Markup:
    """A player for each, as HTML."""
    rows = []
    for name, content in files.items():
        source = f"data:audio/wav;base64,{base64.b64encode(content).decode()}"
        player = tag("audio", controls=True, preload="none", src=source, title=name)
        rows.append(tag("label", tag("span", name), player))
    return tag("div", rows, class_="players")
