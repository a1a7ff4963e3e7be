"""What is said of a fit: kept whole in a file that is read strictly, and heeded by the events."""

from __future__ import annotations

import json

import numpy as np
import pytest

from motifold import CNMF, find_events
from motifold.datasets import make_sequences
from motifold.findings.annotated import (
    annotated_events,
    apart,
    events_csv,
    group_events,
    motif_events,
    typical_strength,
    with_names,
)
from motifold.findings.annotations import (
    Annotations,
    AnnotationsError,
    Verdicts,
    annotations_path,
    read_annotations,
    recording_key,
    write_annotations,
)

X = make_sequences(900, 12, 3, 8, activation_probability=0.03, random_state=0).X
LENGTHS = [400, 500]


@pytest.fixture(scope="module")
def model():
    return CNMF(3, 8, random_state=0).fit(X, lengths=LENGTHS)


@pytest.fixture
def said(model):
    notes = Annotations.none(model).noted(0, name='call, "A"', colour="#aa00ff", threshold=0.7)
    notes = notes.noted(2, merged_into=1).noted(1, refractory=3.5)
    verdicts = Verdicts("abc", "X.npy", True).judged((0, 17), "rejected").judged((1, 5), "accepted")
    return notes.with_verdicts(verdicts)


def test_what_is_written_is_read(said, model, tmp_path):
    path = annotations_path(tmp_path / "model.npz")
    assert path.name == "model.npz.explore.json"
    assert read_annotations(path, model) is None
    write_annotations(path, said)
    assert read_annotations(path, model) == said
    record = json.loads(path.read_text())
    assert record["recordings"][0]["rejected"] == [[0, 17]]
    assert record["motifs"][0]["name"] == 'call, "A"'


def test_a_merged_motif_takes_along_what_was_merged_into_it(model):
    notes = Annotations.none(model).noted(0, merged_into=1).noted(1, merged_into=2)
    assert [note.merged_into for note in notes.motifs] == [2, 2, None]
    assert notes.shown == [2]
    assert notes.members(2) == [2, 0, 1]
    with pytest.raises(ValueError, match="into itself"):
        notes.noted(2, merged_into=0)


def test_a_verdict_is_the_last_one():
    verdicts = Verdicts("k", "s", False).judged((0, 1), "rejected").judged((0, 1), "accepted")
    assert verdicts.of((0, 1)) == "accepted"
    assert not verdicts.rejected
    assert verdicts.judged((0, 1), None).of((0, 1)) is None


def damaged(change):
    def apply(record):
        change(record)
        return json.dumps(record).encode()

    return apply


def deep(record):
    return b'{"a":' * 100_000


DAMAGES = {
    "cut short": lambda record: json.dumps(record).encode()[:-20],
    "empty": lambda record: b"",
    "no text": lambda record: b"\xff\xfe\x00",
    "a list": lambda record: b"[]",
    "deep": deep,
    "NaN": lambda record: json.dumps(record).replace("0.7", "NaN").encode(),
    "infinite": lambda record: json.dumps(record).replace("0.7", "1e999").encode(),
    "twice": lambda record: json.dumps(record)[:-1].encode() + b', "model": "other"}',
    "format": damaged(lambda r: r.update(format="other")),
    "a later version": damaged(lambda r: r.update(version=2)),
    "unknown": damaged(lambda r: r.update(extra=1)),
    "lacking": damaged(lambda r: r.pop("recordings")),
    "unknown of a motif": damaged(lambda r: r["motifs"][0].update(mood="good")),
    "a motif less": damaged(lambda r: r["motifs"].pop()),
    "name": damaged(lambda r: r["motifs"][0].update(name=3)),
    "long name": damaged(lambda r: r["motifs"][0].update(name="x" * 300)),
    "colour": damaged(lambda r: r["motifs"][0].update(colour="red;}")),
    "hidden": damaged(lambda r: r["motifs"][0].update(hidden=1)),
    "threshold": damaged(lambda r: r["motifs"][0].update(threshold=-1)),
    "true is no number": damaged(lambda r: r["motifs"][0].update(threshold=True)),
    "endless threshold": damaged(lambda r: r["motifs"][0].update(threshold=10**400)),
    "endless refractory": damaged(lambda r: r["motifs"][0].update(refractory=10**400)),
    "refractory beyond any recording": damaged(lambda r: r["motifs"][0].update(refractory=1e308)),
    "endless bin": damaged(lambda r: r["recordings"][0].update(rejected=[[0, 10**400]])),
    "half a character": damaged(lambda r: r["motifs"][0].update(name="\ud800")),
    "colour and a line": damaged(lambda r: r["motifs"][0].update(colour="#0072b2\n")),
    "merged into itself": damaged(lambda r: r["motifs"][0].update(merged_into=0)),
    "merged into none": damaged(lambda r: r["motifs"][0].update(merged_into=7)),
    "merged into a merged one": damaged(lambda r: r["motifs"][0].update(merged_into=2)),
    "pairs": damaged(lambda r: r["recordings"][0].update(rejected=[[0]])),
    "negative bin": damaged(lambda r: r["recordings"][0].update(rejected=[[0, -1]])),
    "no such motif": damaged(lambda r: r["recordings"][0].update(rejected=[[9, 1]])),
    "both": damaged(lambda r: r["recordings"][0].update(accepted=[[0, 17]])),
    "a recording twice": damaged(lambda r: r.update(recordings=2 * r["recordings"])),
    "other motifs": damaged(lambda r: r.update(model="0" * 32)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_and_left(damage, said, model, tmp_path):
    path = tmp_path / "notes.json"
    write_annotations(path, said)
    content = DAMAGES[damage](json.loads(path.read_text()))
    path.write_bytes(content)
    with pytest.raises(AnnotationsError, match=r"notes\.json.*move it away"):
        read_annotations(path, model)
    assert path.read_bytes() == content


def test_nothing_said_changes_nothing(model):
    plain = find_events(model, rate=20)
    assert annotated_events(model, None, Annotations.none(model), rate=20) == plain
    header = "motif,segment,time,bin,strength,start,peak,observed,partial"
    assert events_csv(plain).splitlines()[0] == header


def test_each_motif_has_its_own_threshold(model):
    notes = Annotations.none(model).noted(1, threshold=0.8, refractory=1.0)
    found = annotated_events(model, None, notes, rate=10)
    assert found.where(motif=0) == find_events(model, rate=10).where(motif=0)
    stricter = find_events(model, rate=10, threshold=0.8, refractory=1.0)
    assert found.where(motif=1) == stricter.where(motif=1)
    assert len(stricter.where(motif=1)) < len(find_events(model, rate=10).where(motif=1))
    for_all = annotated_events(model, None, notes, rate=10, threshold=0.5, refractory=0.2)
    assert for_all == find_events(model, rate=10, threshold=0.5, refractory=0.2)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.31, 0.9, 1.4])
def test_the_level_is_where_events_begin(model, threshold):
    H = model.activations_
    options = {"lengths": LENGTHS, "rate": 1.0}
    for k in range(3):
        level = threshold * typical_strength(model, H, k, refractory=None, **options)
        peaks = motif_events(model, H, k, threshold=0.0, **options)
        expected = [record["bin"] for record in peaks if record["strength"] >= level]
        found = motif_events(model, H, k, threshold=threshold, **options)
        assert found["bin"].tolist() == expected


def test_hidden_and_rejected_are_left_out(model):
    plain = find_events(model)
    first = plain.where(motif=0)["bin"][0]
    notes = Annotations.none(model).noted(2, hidden=True)
    notes = notes.with_verdicts(Verdicts("k", "s", True).judged((0, int(first)), "rejected"))
    found = annotated_events(model, None, notes)
    assert set(found["motif"]) == {0, 1}
    assert found.where(motif=0)["bin"].tolist() == plain.where(motif=0)["bin"].tolist()[1:]
    # Of another recording nothing was rejected.
    assert annotated_events(model, None, notes, key="x").where(motif=0) == plain.where(motif=0)


@pytest.mark.parametrize("options", [{}, {"X": X}, {"X": X, "fdr": 0.1}])
def test_no_events_have_the_same_columns(model, options):
    notes = Annotations.none(model)
    columns = annotated_events(model, None, notes, **options).columns
    for k in range(len(notes.motifs)):
        notes = notes.noted(k, hidden=True)
    found = annotated_events(model, None, notes, **options)
    assert (len(found), found.columns) == (0, columns)


def test_a_refractory_time_longer_than_any_recording(model):
    """Of each motif one event is left in each segment."""
    found = find_events(model, refractory=np.inf, rate=1e9)
    assert 0 < len(found) <= len(LENGTHS) * len(model.components_)


def test_merged_motifs_count_as_one(model):
    notes = Annotations.none(model).noted(2, merged_into=0)
    found = annotated_events(model, None, notes)
    assert set(found["motif"]) == {0, 1}
    alone = find_events(model)
    both = np.sort(np.r_[alone.where(motif=0)["bin"], alone.where(motif=2)["bin"]])
    bins = found.where(motif=0)["bin"]
    assert set(bins) <= set(both)
    for a, b, i, j in zip(bins[:-1], bins[1:], *_segments(found), strict=True):
        assert i != j or b - a >= 3  # the least refractory there is
    origins = {r["motif"] for r in group_events(model, None, notes, 0, lengths=None, rate=1.0)}
    assert origins == {0, 2}


def _segments(events):
    segments = events.where(motif=0)["segment"]
    return segments[:-1], segments[1:]


def test_the_stronger_of_two_near_ones_stays():
    def record(t, strength, segment=0):
        return {"bin": t, "strength": strength, "segment": segment}

    records = [record(0, 1), record(3, 5), record(5, 4), record(8, 2), record(9, 9, 1)]
    assert [r["bin"] for r in apart(records, 3)] == [0, 3, 8, 9]
    assert [r["bin"] for r in apart(records, 4)] == [3, 8, 9]


def test_names_are_a_column_more_and_quoted(said, model):
    named = with_names(annotated_events(model, None, said), said)
    assert named.columns[-1] == "name"
    line = next(text for text in events_csv(named).splitlines() if text.startswith("0,"))
    assert line.endswith(',"call, ""A"""')
    assert with_names(named, Annotations.none(model)) is named


def test_recordings_are_told_apart():
    same = recording_key(np.asfortranarray(X))
    assert recording_key(X) == same == recording_key(X.astype(np.float64))
    assert recording_key(X[:-1]) != same
    assert recording_key(X + 1) != same
