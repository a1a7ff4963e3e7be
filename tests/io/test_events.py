"""Events for other libraries, read back by their own readers."""

from __future__ import annotations

import sys

import pytest

from motifold.findings import Table
from motifold.io import RecordingError, events_to_nwb, events_to_pynapple
from motifold.io.events import save_pynapple

ROWS = [(0, 1000.5, 2.0, False), (2, 1001.0, 1.0, True), (0, 1003.25, 0.5, False)]
EVENTS = Table(
    [
        {"motif": m, "segment": 0, "time": t, "strength": s, "partial": p, "odd": 1.5}
        for m, t, s, p in ROWS
    ]
)
NOTHING = Table([], EVENTS.columns)


def test_a_group_of_times(tmp_path):
    pynapple = pytest.importorskip("pynapple")
    group = events_to_pynapple(EVENTS)
    assert list(group.keys()) == [0, 2]
    assert group[0].t.tolist() == [1000.5, 1003.25]
    assert group[2].t.tolist() == [1001.0]
    whole = pynapple.IntervalSet(1000, 1010)
    assert events_to_pynapple(EVENTS, time_support=whole).rates.tolist() == [0.2, 0.1]
    save_pynapple(EVENTS, tmp_path / "events.npz")
    read = pynapple.load_file(tmp_path / "events.npz")
    assert {k: read[k].t.tolist() for k in read} == {0: [1000.5, 1003.25], 2: [1001.0]}
    one = Table(EVENTS.records[1:2], EVENTS.columns)
    assert events_to_pynapple(one)[2].t.tolist() == [1001.0]
    with pytest.raises(ValueError, match="no events"):
        events_to_pynapple(NOTHING)


def test_intervals_of_an_nwb_file(tmp_path):
    pynwb = pytest.importorskip("pynwb")
    path, both = tmp_path / "events.nwb", tmp_path / "both.nwb"
    events_to_nwb(EVENTS, path, duration=0.5)
    before = path.read_bytes()
    events_to_nwb(EVENTS, both, duration=[0.5, 1.0, 2.0], session=path, name="again")
    assert path.read_bytes() == before  # the session's own file is not touched
    with pynwb.NWBHDF5IO(str(both), "r") as io:
        file = io.read()
        first = file.intervals["motif_events"].to_dataframe()
        again = file.intervals["again"].to_dataframe()
    assert first["start_time"].tolist() == [1000.5, 1001.0, 1003.25]
    assert first["stop_time"].tolist() == [1001.0, 1001.5, 1003.75]
    assert again["stop_time"].tolist() == [1001.0, 1003.0, 1003.75]
    for name in ("motif", "segment", "strength", "partial", "odd"):
        assert first[name].tolist() == EVENTS[name].tolist()
    with pytest.raises(ValueError, match="already"):
        events_to_nwb(EVENTS, tmp_path / "new.nwb", duration=1, session=path)
    with pytest.raises(ValueError, match="own file"):
        events_to_nwb(EVENTS, path, duration=1, session=path, name="again")
    other = tmp_path / "other.nwb"
    other.write_bytes(b"nothing of the kind")
    with pytest.raises(RecordingError, match=r"other\.nwb"):
        events_to_nwb(EVENTS, tmp_path / "new.nwb", duration=1, session=other)
    assert not (tmp_path / "new.nwb").exists()
    with pytest.raises(ValueError, match="no events"):
        events_to_nwb(NOTHING, tmp_path / "empty.nwb", duration=1)


def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynwb", None)
    monkeypatch.setitem(sys.modules, "pynapple", None)
    with pytest.raises(ImportError, match="pip install pynwb"):
        events_to_nwb(EVENTS, tmp_path / "a.nwb", duration=1)
    with pytest.raises(ImportError, match="pynapple"):
        events_to_pynapple(EVENTS)
    assert list(tmp_path.iterdir()) == []
