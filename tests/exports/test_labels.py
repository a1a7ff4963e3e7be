"""Labels, read as the programs read them."""

import csv

import pytest

from motifold.exports import write_labels
from motifold.exports.labels import LABELS
from motifold.findings import Table

EVENTS = Table(
    [
        {"motif": 1, "time": 2.5, "strength": 1.25},
        {"motif": 0, "time": 0.125, "strength": 3.0},
        {"motif": 1, "time": 9.0, "strength": 0.5},
    ]
)
NAMES = {1: "trill,\tfast\nand low"}


def written(tmp_path, to, events=EVENTS):
    path = tmp_path / f"{to}.txt"
    write_labels(events, path, to, duration=0.5, names=NAMES)
    return path.read_text().splitlines()


def test_audacity_has_three_fields_in_the_order_of_time(tmp_path):
    rows = [line.split("\t") for line in written(tmp_path, "audacity")]
    assert rows[0] == ["0.125000", "0.625000", "motif 0"]
    assert rows[1] == ["2.500000", "3.000000", "trill, fast and low"]
    assert [len(row) for row in rows] == [3, 3, 3]


def test_raven_is_a_selection_table(tmp_path):
    rows = list(csv.DictReader(written(tmp_path, "raven"), delimiter="\t"))
    assert [row["Selection"] for row in rows] == ["1", "2", "3"]
    assert float(rows[1]["Begin Time (s)"]) == 2.5
    assert float(rows[1]["End Time (s)"]) == 3.0
    assert rows[1]["Annotation"] == "trill, fast and low"
    assert {row["Channel"] for row in rows} == {"1"}


def test_mne_reads_its_annotations(tmp_path):
    lines = written(tmp_path, "mne")
    assert lines[:2] == ["# MNE-Annotations", "# onset, duration, description"]
    rows = [line.split(",") for line in lines[2:]]
    assert [len(row) for row in rows] == [3, 3, 3]
    assert (float(rows[1][0]), float(rows[1][1])) == (2.5, 0.5)
    assert rows[1][2].startswith("trill;")


def test_mne_itself_reads_them(tmp_path):
    mne = pytest.importorskip("mne")
    written(tmp_path, "mne")
    found = mne.read_annotations(tmp_path / "mne.txt")
    assert found.onset.tolist() == [0.125, 2.5, 9.0]
    assert found.description[0] == "motif 0"


@pytest.mark.parametrize("to", sorted(LABELS))
def test_no_events_is_an_empty_list(tmp_path, to):
    empty = Table([], columns=["motif", "time", "strength"])
    assert len(written(tmp_path, to, empty)) in (0, 1, 2)


def test_an_unknown_program_is_named(tmp_path):
    with pytest.raises(ValueError, match="audacity, raven, mne, not 'praat'"):
        write_labels(EVENTS, tmp_path / "x.txt", "praat", duration=1)
    assert not list(tmp_path.iterdir())
