"""What is said is saved first, and the events follow it."""

from __future__ import annotations

import numpy as np
import pytest

import motifold.explorer.session
from motifold import find_events
from motifold.explorer.session import Session
from motifold.findings.annotations import AnnotationsError, read_annotations
from motifold.findings.peaks import default_refractory


def test_everything_said_is_in_the_file(session, model):
    told = []
    session.watch(lambda: told.append(session.annotations))
    session.note(0, name="trill", colour="#123456")
    event = session.occurrences(1).event(0)
    session.judge(event, "rejected")
    session.note(2, merged_into=0)
    found = read_annotations(session.path, model)
    assert found == session.annotations == told[-1]
    assert len(told) == 3
    assert found.motifs[0].name == "trill"
    assert found.verdicts(session.subject.key).rejected == {event}
    assert found.verdicts(None).training
    assert Session(session.subject, session.path).annotations == found


def test_saying_the_same_again_writes_nothing(session):
    session.note(0, name="")
    assert not session.path.exists()


def test_what_cannot_be_saved_is_not_said(session, monkeypatch):
    session.note(0, name="first")
    before = session.path.read_bytes()

    def full(path, annotations):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(motifold.explorer.session, "write_annotations", full)
    with pytest.raises(OSError, match="No space"):
        session.note(0, name="second")
    assert session.annotations.motifs[0].name == "first"
    assert session.path.read_bytes() == before


def test_a_damaged_file_is_not_written_over(subject, tmp_path):
    path = tmp_path / "notes.json"
    path.write_text('{"format": "motifold annotations", "ver')
    with pytest.raises(AnnotationsError, match="no JSON"):
        Session(subject, path)
    assert path.read_text().endswith('"ver')


def test_a_place_that_cannot_be_written_is_told_at_once(subject, tmp_path):
    with pytest.raises(FileNotFoundError):
        Session(subject, tmp_path / "nowhere" / "notes.json")


def test_without_a_path_notes_are_kept_in_memory(subject):
    session = Session(subject)
    session.note(0, hidden=True)
    assert session.annotations.shown == [1, 2]


def test_counts_follow_the_threshold(session, model, subject):
    rate = subject.clock.rate
    assert sum(session.counts().values()) == len(find_events(model, rate=rate))
    session.note(1, threshold=0.9)
    stricter = find_events(model, rate=rate, threshold=0.9).where(motif=1)
    assert session.counts()[1] == len(stricter)
    assert session.occurrences(1).strengths.min() >= session.level(1)
    session.note(1, refractory=2.0)
    assert np.diff(session.occurrences(1).bins).min() >= 2 * rate


def test_the_refractory_time_that_is_shown_is_the_one_that_counts(session, model, subject):
    """Of a motif, and of two that count as one."""
    rate = subject.clock.rate
    told = [session.refractory(k) for k in range(3)]
    assert told == [default_refractory(motif) / rate for motif in model.components_]
    before = [session.occurrences(k).bins.tolist() for k in range(3)]
    for k in range(3):
        session.note(k, refractory=told[k])
    assert [session.occurrences(k).bins.tolist() for k in range(3)] == before
    session.note(0, refractory=None)
    session.note(1, merged_into=0)
    assert session.refractory(0) == max(told[:2])


def test_a_rejected_event_stays_in_sight_but_does_not_count(session):
    n = session.counts()[0]
    session.judge(session.occurrences(0).event(2), "rejected")
    found = session.occurrences(0)
    assert (len(found.bins), session.counts()[0]) == (n, n - 1)
    assert found.verdicts[2] == "rejected"
    assert found.bins[2] not in session.table().where(motif=0)["bin"]
    session.judge(found.event(2), None)
    assert session.counts()[0] == n


def test_intervals_are_of_the_events_that_count(session, subject):
    rate = subject.clock.rate
    bins = session.occurrences(0).bins
    np.testing.assert_allclose(session.intervals(0), np.diff(bins) / rate)
    session.judge(session.occurrences(0).event(1), "rejected")
    np.testing.assert_allclose(session.intervals(0)[0], (bins[2] - bins[0]) / rate)
    counts, edges = session.histogram(0)
    assert counts.sum() >= 0.9 * len(session.intervals(0))
    assert (edges[0], len(edges)) == (0, len(counts) + 1)
    session.note(0, threshold=2.0, refractory=50.0)
    assert session.histogram(0)[0].sum() == len(session.intervals(0)) <= 1


def test_no_interval_reaches_over_the_end_of_a_segment(model, X):
    from motifold.explorer.subject import Subject

    parts = [X[:1500], X[1500:]]
    session = Session(Subject.of(model, parts))
    found = session.occurrences(0)
    inside = sum(max(0, int(np.sum(side)) - 1) for side in (found.bins < 1500, found.bins >= 1500))
    assert len(session.intervals(0)) == inside < len(found.bins) - 1


def test_the_csv_is_the_table(session):
    session.note(0, name="a,b")
    lines = session.csv().splitlines()
    assert lines[0] == "motif,segment,time,bin,strength,start,peak,observed,partial,name"
    assert len(lines) == 1 + len(session.table())
    assert any(line.endswith('"a,b"') for line in lines)
