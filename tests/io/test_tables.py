"""CSV, TSV, parquet, and frames: names are kept, the clock gives the rate."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest

from motifold.io import RecordingError, from_frame, from_xarray, read

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("ending", "mark"), [("csv", ","), ("csv", ";"), ("tsv", "\t"), ("txt", ";")]
)
@pytest.mark.parametrize("named", [True, False])
def test_text(tmp_path, ending, mark, named):
    path = tmp_path / f"a.{ending}"
    lines = [mark.join(str(value) for value in row) for row in X]
    path.write_text("\n".join([mark.join(["left", '"right"'])] * named + lines) + "\n")
    recording = read(path, rate=5)
    np.testing.assert_array_equal(recording.X, X)
    assert recording.feature_names == (("left", "right") if named else None)
    np.testing.assert_array_equal(read(path, orientation="features_first").X, X.T)


def test_clock(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,a,b\n" + "\n".join(f"{10 + i / 50},{i},0" for i in range(100)))
    assert "'time' is taken for a feature" in read(path).hints[0]
    recording = read(path, time="time")
    assert recording.feature_names == ("a", "b")
    assert recording.rate == pytest.approx(50)
    with pytest.raises(RecordingError, match="no column 'clock'"):
        read(path, time="clock")
    path.write_text("time,a\n0,1\n1,1\n2,1\n2.5,1\n")
    with pytest.raises(RecordingError, match="not evenly spaced, first between rows 2 and 3"):
        read(path, time="time")


@pytest.mark.parametrize("text", ["a,b\n1,2\n3,\n", "a,b\n1,2\n3,x\n", "a,b\n1,2\n3\n", "a,b\n"])
def test_text_that_lies(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(RecordingError, match=r"a\.csv"):
        read(path)


def test_text_between_semicolons_is_quoted_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,x;y\n")
    with pytest.raises(RecordingError, match="'x;y' to float64 at row 1, column 2"):
        read(path)


def test_empty_cells_are_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,a,b\n0,1,\n0.5,NA,2\n1.0,3,nan\n")
    with pytest.raises(RecordingError, match='missing="mask"'):
        read(path)
    recording = read(path, missing="mask", time="time").checked()
    np.testing.assert_array_equal(recording.X, [[1, np.nan], [np.nan, 2], [3, np.nan]])
    np.testing.assert_array_equal(recording.mask, [[True, False], [False, True], [True, False]])
    assert recording.rate == 2
    path.write_text("a,b\n1,\n2,word\n")
    with pytest.raises(RecordingError, match="word"):
        read(path, missing="mask")


def test_frames_with_gaps(tmp_path):
    path = tmp_path / "a.parquet"
    frame = polars.DataFrame({"a": [1, None, 3], "b": [0.5, None, float("nan")]})
    frame.write_parquet(path)
    expected = [[1, 0.5], [np.nan, np.nan], [3, np.nan]]
    recordings = [
        read(path, missing="mask"),
        from_frame(frame),
        from_frame(pandas.DataFrame({"a": pandas.array([1, None, 3]), "b": frame["b"].to_numpy()})),
    ]
    for recording in recordings:
        found = recording.checked(missing="mask")
        np.testing.assert_array_equal(found.X, expected)
        assert found.mask.sum() == 3


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    frame = polars.DataFrame({"time": np.arange(6) / 4, "a": X[:, 0], "b": X[:, 1].astype(int)})
    frame.write_parquet(path)
    recording = read(path, time="time")
    np.testing.assert_array_equal(recording.X, X)
    assert recording.feature_names == ("a", "b")
    assert recording.rate == 4
    frame.with_columns(word=polars.lit("x")).write_parquet(path)
    with pytest.raises(RecordingError, match=r"a\.parquet.*word"):
        read(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordingError, match=r"a\.parquet.*cut short"):
        read(path)


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames(library):
    recording = from_frame(library.DataFrame({"a": X[:, 0], "b": X[:, 1]}), rate=3.0)
    np.testing.assert_array_equal(recording.X, X)
    assert (recording.feature_names, recording.rate) == (("a", "b"), 3.0)
    with pytest.raises(RecordingError, match="word"):
        from_frame(library.DataFrame({"a": [1.0], "word": ["x"]}))


def test_dates_as_clock():
    clock = pandas.date_range("2020-01-01", periods=6, freq="250ms")
    assert from_frame(pandas.DataFrame({"t": clock, "a": X[:, 0]}), time="t").rate == 4


def test_xarray():
    xarray = pytest.importorskip("xarray")
    cube = np.arange(24.0).reshape(2, 3, 4)
    array = xarray.DataArray(
        cube, dims=("neuron", "trial", "time"),
        coords={"neuron": ["n1", "n2"], "time": [0, 0.5, 1, 1.5]}, name="counts",
    )  # fmt: skip
    recording = from_xarray(array, segments="trial")
    assert recording.lengths == (4, 4, 4)
    assert recording.feature_names == ("n1", "n2")
    assert recording.rate == 2
    expected = np.concatenate([cube[:, trial].T for trial in range(3)])
    np.testing.assert_array_equal(recording.X, expected)
    flat = from_xarray(array)
    assert flat.shape == (4, 6)
    assert flat.feature_names[1] == "n1, trial 1"
    np.testing.assert_array_equal(flat.X[:, 1], cube[0, 1])
    with pytest.raises(RecordingError, match="no dimension seconds"):
        from_xarray(array, time="seconds")
