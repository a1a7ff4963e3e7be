"""Spectrograms that know the way back."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.io import read
from motifold.sound import from_audio, separate

RATE = 8000


def sound(n=9001):
    rng = np.random.default_rng(0)
    return 0.1 * rng.standard_normal(n) + 0.3 * np.sin(2 * np.pi * 1000 * np.arange(n) / RATE)


def test_names_and_shapes_of_librosa():
    librosa = pytest.importorskip("librosa")
    y = sound().astype(np.float32)
    expected = np.abs(librosa.stft(y, n_fft=512, hop_length=128, pad_mode="constant")).T
    found = from_audio(y, sr=RATE, n_fft=512, hop_length=128, scale="magnitude")
    assert found.X.shape == expected.shape
    np.testing.assert_allclose(found.X * 256, expected, atol=1e-3)
    np.testing.assert_allclose(found.feature_axis, librosa.fft_frequencies(sr=RATE, n_fft=512))


@pytest.mark.parametrize("scale", ["sqrt", "magnitude", "power", "log1p", "log"])
def test_the_same_as_a_file(tmp_path, scale):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.wav"
    soundfile.write(path, sound(), RATE, subtype="DOUBLE")
    file, array = read(path, scale=scale), from_audio(sound(), RATE, scale=scale)
    np.testing.assert_allclose(array.X, file.X, atol=1e-9)
    assert (array.rate, array.recording.feature_names) == (file.rate, file.feature_names)
    np.testing.assert_allclose(from_audio(path, scale=scale).X, file.X, atol=1e-9)


@pytest.mark.parametrize("kind", ["mel", "cqt"])
@pytest.mark.filterwarnings("ignore:n_fft=:UserWarning")  # of librosa, at low octaves
def test_bands_go_back_to_sound(kind):
    """Masks of bands are masks of the transform: parts add up, and a tone stays in its band."""
    pytest.importorskip("librosa")
    y = sound()
    given = {"kind": kind, "n_mels": 40, "n_fft": 1024, "noise_floor": 0.0}
    found = from_audio(y, RATE, **given)
    T, N = found.X.shape
    assert 1 + len(y) // 256 == T
    loudest = int(np.argmax(found.X.sum(axis=0)))
    assert found.feature_axis[loudest] == pytest.approx(1000, rel=0.1)
    mask = np.zeros(N)
    mask[loudest - 2 : loudest + 3] = 1
    tone, rest = found.sounds(lambda a, b: [np.tile(m, (b - a, 1)) for m in (mask, 1 - mask)])
    np.testing.assert_allclose(tone + rest, y, atol=1e-6)
    expected = 0.3 * np.sin(2 * np.pi * 1000 * np.arange(len(y)) / RATE)
    assert np.corrcoef(tone, expected)[0, 1] > 0.9
    apart = separate(y, RATE, n_components=2, n_lags=3, representation=given, max_iter=3, tol=0)
    np.testing.assert_allclose(sum(apart.parts.values()), y, atol=1e-5)


def test_what_is_no_sound():
    with pytest.raises(ValueError, match="sr"):
        from_audio(sound())
    with pytest.raises(ValueError, match="kind"):
        from_audio(sound(), RATE, kind="wavelets")
    with pytest.raises(ValueError, match="scale must be"):
        from_audio(sound(), RATE, scale="dB")
    broken = sound()
    broken[5] = np.inf
    with pytest.raises(ValueError, match="NaN or infinite"):
        from_audio(broken, RATE)
