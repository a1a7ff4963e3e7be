"""The clock of a recording: rounded times, gaps, dates; it is kept, and goes with the model."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest

import motifold
from motifold import CNMF
from motifold.io import Recording, RecordingError, from_frame, from_xarray, read


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def write(path, times, form=str):
    rows = [f"{form(time)},{i},1" for i, time in enumerate(times)]
    path.write_text("\n".join(["clock,a,b", *rows]) + "\n")
    return path


@pytest.mark.parametrize("rate", [30.0, 400.0, 100.0])
def test_times_rounded_to_milliseconds(tmp_path, rate):
    times = 13.33 + np.arange(300) / rate
    path = write(tmp_path / "a.csv", times, "{:.3f}".format)
    found = read(path, time="clock")
    assert found.rate == pytest.approx(rate, rel=1e-3)
    assert found.starts == (13.33,)
    assert found.lengths is None
    np.testing.assert_allclose(found.times, times, atol=2e-3)
    said = any("rounded to 0.001 s" in hint for hint in found.hints)
    assert said == (rate != 100)


def test_gaps_are_ends_of_segments(tmp_path):
    times = np.r_[5 + np.arange(40) / 10, 12 + np.arange(30) / 10, 20.5 + np.arange(20) / 10]
    found = read(write(tmp_path / "a.csv", times), time="clock")
    assert found.lengths == (40, 30, 20)
    assert found.starts == pytest.approx((5, 12, 20.5))
    assert found.rate == pytest.approx(10)
    np.testing.assert_allclose(found.times, times)
    assert "2 gaps, the first before row 40 (from 8.9 to 12 s): there are 3 segments" in " ".join(
        found.hints
    )


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([0, 1, 2, 2.4, 3, 4, 5], "first between rows 2 and 3"),
        ([0, 1, 2, 1.5, 3, 4, 5], "rows 2 and 3.*goes back there: sort"),
        ([0, 1, 1, 2, 3, 4, 5], "rows 1 and 2"),
        ([0, 1, 4, 9, 16, 25, 36, 49], "not evenly spaced"),
    ],
)
def test_what_is_no_clock_is_named_by_its_row(tmp_path, times, told):
    with pytest.raises(RecordingError, match=told):
        read(write(tmp_path / "a.csv", times), time="clock")


def test_a_rate_that_is_said_is_that_of_the_steps(tmp_path):
    path = write(tmp_path / "a.csv", 3 + np.arange(50) / 10)
    assert read(path, time="clock", rate=10).starts == (3.0,)
    with pytest.raises(RecordingError, match="not evenly spaced"):
        read(path, time="clock", rate=25)


def test_dates(tmp_path):
    dates = pandas.date_range("2024-05-01 12:00:00.250", periods=20, freq="250ms")
    frame = pandas.DataFrame({"clock": dates, "a": 1.0, "b": 2.0})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    columns = {"clock": dates.to_numpy(), "a": [1.0] * 20, "b": [2.0] * 20}
    polars.DataFrame(columns).write_parquet(path.with_suffix(".parquet"))
    for found in (
        read(path, time="clock"),
        read(path.with_suffix(".parquet"), time="clock"),
        from_frame(frame, time="clock"),
    ):
        assert found.rate == pytest.approx(4)
        assert found.starts == pytest.approx((12 * 3600 + 0.25,))
        assert any("seconds from 2024-05-01 00:00" in hint for hint in found.hints)


def test_xarray_keeps_its_coordinate():
    xarray = pytest.importorskip("xarray")
    times = 100 + np.arange(6) / 2
    array = xarray.DataArray(
        np.ones((2, 6, 3)), dims=("trial", "time", "unit"), coords={"time": times}
    )
    found = from_xarray(array, segments="trial")
    assert (found.rate, found.starts, found.lengths) == (2, (100, 100), (6, 6))


def test_starts_are_one_for_each_segment():
    with pytest.raises(RecordingError, match="each of the 2 segments"):
        Recording(np.ones((5, 2)), "made up", 10.0, lengths=(3, 2), starts=(1.0,))
    with pytest.raises(RecordingError, match="starts"):
        Recording(np.ones((5, 2)), "made up", 10.0, starts=(np.nan,))


# --- with the model -------------------------------------------------------------------------


def test_the_clock_goes_with_the_model(tmp_path, rng):
    X = rng.random((30, 3))
    recording = Recording(X, "made up", 10.0, lengths=(20, 10), starts=(7.0, 90.5))
    model = CNMF(1, 3, random_state=0, tol=1e-2, max_iter=20).fit(recording)
    path = tmp_path / "model.npz"
    model.save(path)
    assert motifold.load(path).origin_ == model.origin_
    assert model.origin_["starts"] == [7.0, 90.5]
    for starts in ([7.0], [7.0, float("inf")], ["7", "8"]):
        model.origin_["starts"] = starts
        with pytest.raises(ValueError, match=r"starts|JSON"):
            model.save(path)
    assert motifold.load(path).origin_["starts"] == [7.0, 90.5]
