"""``motifold events model.npz - --follow``."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from motifold import CNMF
from motifold.cli import main
from motifold.datasets import make_sequences
from motifold.io.rows import RowReader
from motifold.prepare import Preparation

X = make_sequences(200, 6, 2, 5, activation_probability=0.05, random_state=0).X


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("follow") / "model.npz"
    CNMF(2, 5, random_state=0).fit(X).save(path)
    return path


def text_of(X, separator=","):
    return "".join(separator.join(repr(float(v)) for v in row) + "\n" for row in X)


def run(model, *arguments, given=None):
    return CliRunner().invoke(main, ["events", str(model), *map(str, arguments)], input=given)


def test_events_come_as_lines_of_json(model, tmp_path):
    answer = run(model, "-", "--follow", "--rate", 10, given=text_of(X))
    assert answer.exit_code == 0, answer.output
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    assert {"motif", "segment", "time", "bin", "strength", "certainty"} == found[0].keys()
    assert all(event["time"] == event["bin"] / 10 for event in found)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.tsv").write_text("\t".join("abcdef") + "\n" + text_of(X, "\t"))
    for name in ("x.npy", "x.tsv"):
        again = run(model, tmp_path / name, "--follow", "--idle", 0, "--rate", 10)
        assert [json.loads(line) for line in again.stdout.splitlines()] == found


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("1,2,3\n", "line 101: it has 3 numbers; the others have 6"),
        ("1,2,nan,4,5,6\n", "line 101: 'nan', column 2, is missing or infinite"),
        ("1,2,3,four,5,6\n", "line 101: 'four', column 3, is no number"),
        ("-1,2,3,4,5,6\n", "line 101: '-1', column 0, is below zero"),
    ],
)
def test_a_bad_line_is_named_and_nothing_before_it_is_lost(model, bad, told):
    whole = run(model, "-", "--follow", given=text_of(X[:100]))
    answer = run(model, "-", "--follow", given=text_of(X[:100]) + bad + text_of(X[100:]))
    assert answer.exit_code in (1, 3)
    assert answer.stdout == whole.stdout
    assert re.search(told, " ".join(answer.output.split()))


def test_options_that_do_not_go_together(model):
    assert "needs rows" in run(model, "--follow").output
    assert "with --follow" in run(model, "-").output
    assert "--data does not go" in run(model, "-", "--follow", "--data", "x.npy").output
    assert "--partial does not go" in run(model, "-", "--follow", "--partial").output
    assert "--to does not go" in run(model, "-", "--follow", "--to", "midi").output


def test_rows_that_come_are_not_prepared(tmp_path):
    prepared = Preparation.of(scale="max").fit(X)
    fitted = CNMF(2, 5, random_state=0).fit(prepared.transform(X))
    fitted.preparation_ = prepared
    fitted.save(tmp_path / "model.npz")
    answer = run(tmp_path / "model.npz", "-", "--follow", given=text_of(X))
    assert answer.exit_code == 2
    assert "was fitted to a recording that was prepared" in " ".join(answer.output.split())


def test_rows_of_a_file_that_grows(tmp_path):
    """Half a line waits for its other half."""
    path = tmp_path / "x.csv"
    path.write_text("1,2\n3,")
    with RowReader.open(path, idle=None) as file_that_grows:
        reader = iter(file_that_grows)
        assert next(reader).values.tolist() == [[1.0, 2.0]]
        with path.open("a") as file:
            file.write("4\n5,6\n")
        rows = next(reader)
    assert (rows.values.tolist(), rows.first) == ([[3.0, 4.0], [5.0, 6.0]], 2)


def test_rows_of_an_npy_file_that_grows(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6.0).reshape(3, 2).astype(np.float32))
    with RowReader.open(path, idle=None) as file_that_grows:
        reader = iter(file_that_grows)
        assert next(reader).values.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        with path.open("ab") as file:
            file.write(np.float32([6, 7, 8]).tobytes())
        rows = next(reader)
    assert (rows.values.tolist(), rows.first) == ([[6.0, 7.0]], 3)
