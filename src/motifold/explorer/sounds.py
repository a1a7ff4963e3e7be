"""An event to listen to, and the motif alone, where the recording is a sound."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from motifold.explorer.session import Session
from motifold.report.clips import sound_of, wav
from motifold.report.markup import Markup, tag

if TYPE_CHECKING:
    from motifold.io.audio import Sound

_SECONDS = 1.0  # of a clip at least


def sound_under(session: Session) -> Sound | None:
    """The sound that the recording is the spectrogram of; None where it is none."""
    recording = session.subject.recording
    return None if recording is None else sound_of(recording)


def clips(session: Session, sound: Sound, k: int, i: int) -> dict[str, bytes]:
    """Wav files: the recording around event i of motif k, and the motif's part of it."""
    found, subject = session.occurrences(k), session.subject
    T, L = len(subject.fit.H), subject.model.components_.shape[1]
    n = max(2 * L, round(_SECONDS * sound.rate / sound.hop))
    a = max(0, int(found.bins[i]) + L // 2 - n // 2)
    b = min(T, a + n)
    here = sound.waveform[a * sound.hop : (b - 1) * sound.hop + sound.window]
    alone = sound.invert(subject.fit.part(int(found.motifs[i]), a, b), a)
    return {"the recording": wav(here, sound.rate), "the motif alone": wav(alone, sound.rate)}


def players(files: dict[str, bytes]) -> Markup:
    """A player for each, as HTML."""
    rows = []
    for name, content in files.items():
        source = f"data:audio/wav;base64,{base64.b64encode(content).decode()}"
        player = tag("audio", controls=True, preload="none", src=source, title=name)
        rows.append(tag("label", tag("span", name), player))
    return tag("div", rows, class_="players")
