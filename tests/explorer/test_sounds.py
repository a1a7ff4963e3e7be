"""Of a sound an event can be heard, and the motif alone."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

from motifold import CNMF
from motifold.explorer.session import Session
from motifold.explorer.sounds import clips, players, sound_under
from motifold.explorer.subject import Subject
from motifold.io import read

RATE = 4000


@pytest.fixture(scope="module")
def tones(tmp_path_factory):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path_factory.mktemp("tones") / "tones.wav"
    waveform = 0.01 * np.random.default_rng(0).standard_normal(4 * RATE)
    for start in (2000, 7000, 12_000):
        waveform[start : start + 800] += np.sin(0.8 * np.arange(800))
    soundfile.write(path, waveform, RATE)
    recording = read(path, window=128, scale="magnitude")
    model = CNMF(1, recording.bins("0.25s"), random_state=0).fit(recording.X)
    return Session(Subject.of(model, recording))


def heard(content):
    with wave.open(io.BytesIO(content)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples.astype(float), file.getframerate()


def test_the_event_and_the_motif_alone(tones):
    sound = sound_under(tones)
    files = clips(tones, sound, 0, 1)
    for content in files.values():
        samples, rate = heard(content)
        assert rate == RATE
        assert 0.9 <= len(samples) / rate <= 1.2
        tone = np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples)
        assert tone == pytest.approx(0.8 * RATE / (2 * np.pi), rel=0.02)


def test_players_need_nothing_from_elsewhere(tones):
    text = players(clips(tones, sound_under(tones), 0, 0))
    assert text.count("<audio") == 2
    assert text.count('src="data:audio/wav;base64,') == 2


def test_no_sound_no_players(session):
    assert sound_under(session) is None
