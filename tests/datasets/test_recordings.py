"""The recordings: their content, where the data is at hand, and folders given by the user."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import pytest
from conftest import DATA
from scipy.io import wavfile

from motifold.datasets import fetch_songbird, fetch_spoken_digits, recordings

SONG = "MackeviciusData.mat"
DIGITS = "spoken_digits_two_speakers_8k.wav"


def needs(name: str):
    return pytest.mark.skipif(
        not (DATA / name).exists(),
        reason=f"{name} is absent: motifold.datasets says where it is from; put it in {DATA}",
    )


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("MOTIFOLD_DATA", raising=False)


@pytest.fixture
def no_network(monkeypatch):
    """A download is a failure of the test."""

    def refuse(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(recordings.download, "download", refuse)


@needs(SONG)
def test_songbird(mackevicius, no_network):
    bird = fetch_songbird(data_home=DATA)
    np.testing.assert_array_equal(bird.song, mackevicius["SONG"])
    np.testing.assert_array_equal(bird.neural, mackevicius["NEURAL"])
    assert bird.song.shape == (4440, 141)
    assert bird.neural.shape == (666, 75)
    assert (bird.song_rate, bird.neural_rate) == (200, 30)
    # Recorded at the same time: both axes end within a frame of 22.2 s.
    assert bird.song_times[-1] == pytest.approx(4439 / 200)
    assert abs(bird.song_times[-1] - bird.neural_times[-1]) < 1 / 30
    assert bird.song.min() >= 0
    assert bird.song.max() <= 1


@needs(DIGITS)
def test_spoken_digits(no_network):
    speech = fetch_spoken_digits(data_home=DATA)
    samples = np.round(speech.waveform * 32768).astype("<i2")
    assert hashlib.sha256(samples.tobytes()).hexdigest() == (
        "cb00bc21ba26309dd1c7c094c802c6bb29c181b4398179f2a64fdf8cf334013e"
    )
    assert speech.rate == 8000
    assert speech.spectrogram.shape == (20149, 257)
    assert speech.spectrogram.min() == 0
    assert speech.frame_rate == 62.5
    np.testing.assert_allclose(speech.frequencies, np.arange(257) * 8000 / 512)
    np.testing.assert_allclose(speech.times, (256 + 128 * np.arange(20149)) / 8000)


@needs(DIGITS)
def test_a_frame_of_the_spectrogram_by_hand(no_network):
    speech = fetch_spoken_digits(data_home=DATA)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)  # Hann, periodic

    def frame(t: int) -> np.ndarray:
        piece = speech.waveform[128 * t : 128 * t + 512] * window
        return np.log(np.abs(np.fft.rfft(piece)) / window.sum() + 1e-6)

    # The constant that was subtracted is unknown here: compare two frames.
    np.testing.assert_allclose(
        speech.spectrogram[700] - speech.spectrogram[30], frame(700) - frame(30), atol=1e-9
    )


@needs(SONG)
def test_the_environment_names_the_folder(monkeypatch, no_network):
    monkeypatch.setenv("MOTIFOLD_DATA", str(DATA))
    assert fetch_songbird().song.shape == (4440, 141)


@pytest.mark.parametrize("fetch", [fetch_songbird, fetch_spoken_digits])
def test_a_folder_without_the_file(fetch, tmp_path, no_network):
    with pytest.raises(FileNotFoundError, match=r"has n.* Get .* data_home"):
        fetch(data_home=tmp_path)


@pytest.mark.parametrize("fetch", [fetch_songbird, fetch_spoken_digits])
def test_no_such_folder(fetch, tmp_path, monkeypatch, no_network):
    with pytest.raises(FileNotFoundError, match=r"data_home is .*nowhere"):
        fetch(data_home=tmp_path / "nowhere")
    monkeypatch.setenv("MOTIFOLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"MOTIFOLD_DATA is .*nowhere"):
        fetch()


def test_a_wrong_file_is_refused(tmp_path, no_network):
    (tmp_path / SONG).write_bytes(b"something else")
    with pytest.raises(ValueError, match="sha256 is not 6d37"):
        fetch_songbird(data_home=tmp_path)
    wavfile.write(tmp_path / DIGITS, 8000, np.zeros(100, np.int16))
    with pytest.raises(ValueError, match="sha256 is not cb00"):
        fetch_spoken_digits(data_home=tmp_path)


def test_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"motifold\[data\].*MOTIFOLD_DATA"):
        fetch_songbird(progress=False)
