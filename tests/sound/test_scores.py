"""Scores: tables and MIDI files of onsets, and what they allow."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.io import RecordingError
from motifold.sound import read_score, support_of
from motifold.sound.scores import write_midi


@pytest.mark.parametrize(
    "text",
    [
        "0.0,1\n0.5,2\n1.25,1\n",
        "0.0000\t1.0000\n0.5000\t2.0000\n1.2500\t1.0000\n",
        "time;drum\n0;1\n\n0.5;2\n1.25;1\n",
        "# a comment\n0 1\n.5 2\n1.25 1\n",
    ],
)
def test_tables(tmp_path, text):
    path = tmp_path / "score.txt"
    path.write_text(text)
    assert read_score(path) == {"1": [0.0, 1.25], "2": [0.5]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0.0,kick\nsoon,snare\n", "line 2"),
        ("0.0\n", "line 1"),
        ("-1,kick\n", "line 1"),
        ("time,drum\n", "no onset"),
    ],
)
def test_tables_that_are_none(tmp_path, text, told):
    path = tmp_path / "score.csv"
    path.write_text(text)
    with pytest.raises(RecordingError, match=told):
        read_score(path)
    with pytest.raises(FileNotFoundError):
        read_score(tmp_path / "none.csv")


def test_what_a_score_allows():
    score = {"kick": [0.0, 1.0], "snare": [0.5]}
    support = support_of(score, 15, rate=10.0, tolerance=0.1, n_components=3)
    assert np.flatnonzero(support[:, 0]).tolist() == [0, 1, 9, 10, 11]
    assert np.flatnonzero(support[:, 1]).tolist() == [4, 5, 6]
    assert support[:, 2].all()  # nothing is said of it
    ringing = support_of(score, 15, rate=10.0, tolerance=0.1, ring=0.2)
    assert np.flatnonzero(ringing[:, 1]).tolist() == [4, 5, 6, 7, 8]
    turned = support_of(score, 15, rate=10.0, tolerance=0.1, names=["snare", "kick", "bell"])
    np.testing.assert_array_equal(turned[:, :2], support[:, [1, 0]])
    assert turned[:, 2].all()
    with pytest.raises(ValueError, match="kick"):
        support_of(score, 15, rate=10.0, names=["snare"])
    with pytest.raises(ValueError, match="2 sounds"):
        support_of(score, 15, rate=10.0, n_components=1)


def test_midi_there_and_back(tmp_path):
    pytest.importorskip("mido")
    path = tmp_path / "events.mid"
    write_midi(path, [(0, 0.5, 1.0), (1, 0.75, 2.0), (0, 1.5, 0.1)])
    score = read_score(path)
    assert list(score) == ["36", "37"]
    np.testing.assert_allclose(score["36"], [0.5, 1.5], atol=2e-3)
    np.testing.assert_allclose(score["37"], [0.75], atol=2e-3)


def test_midi_without_its_library(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mido", None)
    (tmp_path / "a.mid").write_bytes(b"MThd")
    with pytest.raises(ImportError, match=r"motifold\[sound\]"):
        read_score(tmp_path / "a.mid")
