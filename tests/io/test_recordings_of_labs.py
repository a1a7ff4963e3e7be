"""Sound, NWB, and pynapple objects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from motifold.io import Options, RecordingError, from_pynapple, read, to_pynapple
from motifold.io.audio import read_sound

RATE = 8000


# --- sound ----------------------------------------------------------------------------------


def tone(seconds=1.0, frequency=1000.0):
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(int(seconds * RATE)) / RATE)


@pytest.fixture
def soundfile():
    return pytest.importorskip("soundfile")


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg"])
def test_a_tone_is_where_it_should_be(tmp_path, soundfile, ending):
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, tone(), RATE)
    recording = read(path, scale="magnitude", window=256, hop=64)
    assert recording.shape[1] == 129
    assert recording.rate == 125
    loudest = recording.feature_axis[np.argmax(recording.X.sum(axis=0))]
    assert loudest == 1000
    np.testing.assert_allclose(read(path, scale="power", window=256, hop=64).X, recording.X**2)
    assert read(path, scale="log").X.min() == 0
    plain = {"window": 256, "hop": 64, "noise_floor": 0}
    np.testing.assert_allclose(read(path, **plain).X ** 2, recording.X, atol=1e-15)
    expected = np.log1p(1000 * recording.X)
    np.testing.assert_allclose(read(path, scale="log1p", **plain).X, expected)


def test_channels(tmp_path, soundfile):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.column_stack([tone(), 0 * tone()]), RATE)
    left, right = (read(path, channel=c, scale="magnitude").X for c in (0, 1))
    assert left.max() > 0.2
    assert right.max() == 0
    np.testing.assert_allclose(read(path, scale="magnitude").X, left / 2, atol=1e-12)
    with pytest.raises(RecordingError, match="2 channels"):
        read(path, channel=2)


def test_sound_that_lies(tmp_path, soundfile):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(), RATE)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordingError, match=r"a\.wav.*cut short"):
        read(path)
    path.write_bytes(b"no sound at all")
    with pytest.raises(RecordingError, match=r"a\.wav"):
        read(path)
    soundfile.write(path, tone(0.01), RATE)
    assert read(path).shape == (1, 257)  # beyond its ends is silence
    with pytest.raises(RecordingError, match="hop"):
        read(path, window=8, hop=8)
    with pytest.raises(RecordingError, match="rate"):
        read(path, rate=5)


@pytest.mark.parametrize(("window", "hop"), [(512, 128), (512, 256), (500, 130), (2048, 2000)])
def test_sound_goes_there_and_back(tmp_path, soundfile, window, hop):
    """Exactly, and any stretch of it is the cut of the whole: no click at its ends."""
    path = tmp_path / "a.wav"
    waveform = tone() + 0.2 * tone(frequency=440)
    soundfile.write(path, waveform, RATE, subtype="DOUBLE")
    sound = read_sound(path, Options(window=window, hop=hop))
    T = sound.shape[0]
    whole = sound.masked(lambda a, b: np.ones((b - a, window // 2 + 1)), 0, T)
    np.testing.assert_allclose(whole, waveform, atol=1e-12)
    mask = np.random.default_rng(0).random(sound.shape)
    masked = sound.masked(lambda a, b: mask[a:b], 0, T)
    for start, stop in [(0, 1), (0, 3), (1, T), (T - 2, T), (T - 1, T)]:
        part = sound.masked(lambda a, b: mask[a:b], start, stop)
        begin, end = sound.samples(start, stop)
        np.testing.assert_allclose(part, masked[begin:end], atol=1e-12)


def test_times_are_those_of_the_sound(tmp_path, soundfile):
    """A click at the first sample, and one at the last: their time bins are the first and last."""
    path = tmp_path / "a.wav"
    clicks = np.zeros(RATE)
    clicks[[0, 2560, -1]] = 0.5
    soundfile.write(path, clicks, RATE)
    recording = read(path, window=256, hop=64, scale="magnitude")
    loudness = recording.X.sum(axis=1)
    assert recording.shape[0] == 1 + RATE // 64
    peaks = [int(np.argmax(loudness[a:b])) + a for a, b in [(0, 20), (20, 100), (100, 200)]]
    assert peaks == [0, 40, 125]
    assert recording.times[40] == 2560 / RATE


def test_what_nobody_said_is_told_and_kept(tmp_path, soundfile):
    """The window follows the rate; the same options give the same X, in 0.1's words as well."""
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(), 44100)
    recording = read(path)
    assert recording.options == {
        "window": 2048, "hop": 512, "scale": "sqrt", "noise_floor": 0.1
    }  # fmt: skip
    assert "√|S| of windows of 2048 samples (46 ms)" in recording.hints[0]
    np.testing.assert_array_equal(read(path, **recording.options).X, recording.X)
    assert read(path, **recording.options).hints == ()
    assert read(path, isolate=True).options == recording.options
    assert "orientation" not in " ".join(read(path, window=2048, hop=2000).hints)


def test_the_noise_floor(tmp_path, soundfile):
    """Hiss that is always there goes, a tone that comes now and then stays."""
    path, rng = tmp_path / "a.wav", np.random.default_rng(0)
    noise, sound = 0.01 * rng.standard_normal(4 * RATE), np.zeros(4 * RATE)
    sound[RATE : 2 * RATE] = tone()
    soundfile.write(path, noise + sound, RATE)
    with_hiss, without = (read(path, noise_floor=share).X for share in (0, 0.5))
    quiet = slice(200, 240)
    assert without[quiet].mean() < 0.3 * with_hiss[quiet].mean()
    assert without[90].max() > 0.8 * with_hiss[90].max()
    assert without.min() == 0
    with pytest.raises(ValueError, match="noise_floor must be"):
        read(path, noise_floor=1)


@pytest.mark.parametrize("ending", ["mp3", "aiff", "aif"])
def test_other_sounds(tmp_path, soundfile, ending):
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, tone(), RATE, format="MP3" if ending == "mp3" else "AIFF")
    recording = read(path, scale="magnitude")
    assert recording.feature_axis[np.argmax(recording.X.sum(axis=0))] == 1000


def test_what_libsndfile_does_not_read(tmp_path, soundfile):
    (tmp_path / "a.m4a").write_bytes(b"ftypM4A")
    with pytest.raises(RecordingError, match=r"a\.m4a.*ffmpeg"):
        read(tmp_path / "a.m4a")


def test_channels_that_cancel_are_told(tmp_path, soundfile):
    path = tmp_path / "a.wav"
    for other, told in [(0.5 * tone(), "mean of 2 channels was taken; one"), (-tone(), "cancel")]:
        soundfile.write(path, np.column_stack([tone(), other]), RATE)
        assert told in " ".join(read(path).hints)
    assert read(path, channel=0, window=512, scale="sqrt").hints == ()


def test_a_sample_that_is_no_number(tmp_path, soundfile):
    broken = tone()
    broken[4000] = np.nan
    soundfile.write(tmp_path / "a.wav", broken, RATE, subtype="FLOAT")
    with pytest.raises(RecordingError, match=r"a\.wav: sample 4000 \(0\.500 s\)"):
        read(tmp_path / "a.wav")


def test_speech(data_file):
    """The paper's matrix is without padding; where windows fit into the sound, it is this one."""
    pytest.importorskip("soundfile")
    from motifold.datasets import fetch_spoken_digits

    path = data_file("spoken_digits_two_speakers_8k.wav")
    expected = fetch_spoken_digits(data_home=path.parent).spectrogram
    found = read(path, scale="log", window=512, hop=128).X[2:-2]
    np.testing.assert_allclose(found - found.min(), expected - expected.min(), atol=1e-9)


# --- NWB ------------------------------------------------------------------------------------


@pytest.fixture
def nwb(tmp_path) -> Path:
    """A file as pynwb writes it: three units, trials, and a time series with a conversion."""
    pynwb = pytest.importorskip("pynwb")
    file = pynwb.NWBFile("a test", "test-1", datetime(2020, 1, 1, tzinfo=UTC))
    for spikes in ([0.05, 0.15, 0.16, 3.9], [1.0], []):
        file.add_unit(spike_times=np.array(spikes))
    file.add_trial(start_time=0.0, stop_time=1.0)
    file.add_trial(start_time=3.0, stop_time=4.0)
    rates = np.arange(10).reshape(5, 2)
    file.add_acquisition(
        pynwb.TimeSeries(name="rates", data=rates, unit="Hz", rate=20.0, conversion=2.0)
    )
    stamps = np.array([0.0, 0.5, 1.0])
    file.add_acquisition(
        pynwb.TimeSeries(name="speed", data=np.ones(3), unit="m/s", timestamps=stamps)
    )
    path = tmp_path / "a.nwb"
    with pynwb.NWBHDF5IO(path, "w") as writer:
        writer.write(file)
    return path


def test_spikes_are_counted(nwb):
    recording = read(nwb, bin_size=0.1)
    assert recording.shape == (40, 3)
    assert recording.feature_names == ("unit 0", "unit 1", "unit 2")
    assert recording.rate == pytest.approx(10)
    X = np.zeros((40, 3))
    X[0, 0], X[1, 0], X[39, 0], X[10, 1] = 1, 2, 1, 1
    np.testing.assert_array_equal(recording.X, X)


def test_trials_are_segments(nwb):
    recording = read(nwb, bin_size=0.1, epochs="trials")
    assert recording.lengths == (10, 10)
    assert recording.X.sum() == 4
    assert recording.X[19, 0] == 1
    assert recording.timestamps[10] == pytest.approx(3.0)


def test_series(nwb):
    recording = read(nwb, key="rates")
    np.testing.assert_array_equal(recording.X, 2 * np.arange(10).reshape(5, 2))
    assert recording.rate == 20
    speed = read(nwb, key="acquisition/speed")
    assert (speed.shape, speed.rate) == ((3, 1), 2)


def test_nwb_that_lies(nwb):
    for options, told in [
        ({}, "set bin_size.*acquisition/rates"),
        ({"key": "nothing"}, "no time series 'nothing'"),
        ({"bin_size": 0.1, "epochs": "naps"}, "no 'intervals/naps"),
        ({"bin_size": 0.1, "epochs": "trials", "key": "rates"}, "leave them out"),
        ({"bin_size": 1e-9}, "max_bytes"),
    ]:
        with pytest.raises(RecordingError, match=told):
            read(nwb, **options)
    nwb.write_bytes(nwb.read_bytes()[:5000])
    with pytest.raises(RecordingError, match="cut short"):
        read(nwb, bin_size=0.1)


# --- pynapple -------------------------------------------------------------------------------


@pytest.fixture
def nap():
    return pytest.importorskip("pynapple")


def test_spike_trains(nap):
    epochs = nap.IntervalSet([0, 10], [2, 13])
    group = nap.TsGroup({3: nap.Ts([0.1, 0.2, 1.9]), 7: nap.Ts([10.5, 12.6])}, time_support=epochs)
    recording = from_pynapple(group, bin_size=0.5)
    assert recording.feature_names == ("3", "7")
    assert recording.lengths == (4, 6)
    assert recording.X[0, 0] == 2
    assert recording.X.sum() == 5
    with pytest.raises(RecordingError, match="bin_size"):
        from_pynapple(group)


def test_frames_there_and_back(nap):
    epochs = nap.IntervalSet([0, 10], [0.9, 10.9])
    times = np.r_[np.arange(10) / 10, 10 + np.arange(10) / 10]
    values = np.arange(40.0).reshape(20, 2)
    frame = nap.TsdFrame(t=times, d=values, columns=["a", "b"], time_support=epochs)
    recording = from_pynapple(frame)
    np.testing.assert_array_equal(recording.X, values)
    assert recording.feature_names == ("a", "b")
    assert recording.lengths == (10, 10)
    assert recording.rate == pytest.approx(10)
    back = to_pynapple(values[:, :1], recording)
    np.testing.assert_array_equal(back.values, values[:, :1])
    np.testing.assert_allclose(back.index.values, times)
    assert len(back.time_support) == 2
    with pytest.raises(ValueError, match="20 rows"):
        to_pynapple(values[:5], recording)
    with pytest.raises(TypeError, match="TsGroup"):
        from_pynapple(values)
