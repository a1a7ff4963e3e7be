"""Missing entries, from the file to the report: NaN is refused unless the user says what it is."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import ok, run

import motifold
from motifold.datasets import make_sequences
from motifold.findings.hidden import mostly_observed

X = make_sequences(400, 12, 2, 8, random_state=0).X
MASK = np.random.default_rng(0).random(X.shape) > 0.1
MASK[100:115] = False
HOLES = np.where(MASK, X, np.nan)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files with holes, and a model that was fitted to one of them."""
    folder = tmp_path_factory.mktemp("missing")
    np.save(folder / "holes.npy", HOLES)
    names = ",".join(f"cell {i}" for i in range(12))
    cells = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in HOLES]
    (folder / "holes.csv").write_text("\n".join([names, *cells, ""]))
    ok("fit", folder / "holes.npy", "-k", 2, "-l", 8, "-o", folder / "model.npz", "--rate", 20,
       "--missing", "mask", "--report", folder / "report.html")  # fmt: skip
    return folder


@pytest.mark.parametrize("command", ["fit", "transform", "events", "report", "sweep"])
def test_without_the_option_it_is_an_error_that_names_it(folder, tmp_path, command):
    file, model = folder / "holes.npy", tmp_path / "model.npz"
    motifold.CNMF(2, 8, random_state=0, tol=0.1).fit(X).save(model)
    arguments = {
        "fit": [file, "-k", 2, "-l", 8, "-o", tmp_path / "new.npz"],
        "transform": [model, file, "-o", tmp_path / "a.npy"],
        "events": [model, "--data", file],
        "report": [model, "--data", file, "-o", tmp_path / "r.html"],
        "sweep": [file, "-k", 1, "-l", 8, "-o", tmp_path / "s.csv"],
    }[command]
    answer = run(command, *arguments)
    assert answer.exit_code == 3
    row, column = np.argwhere(~MASK)[0]
    assert f"row {row}, column {column}" in answer.output
    assert "--missing mask" in answer.output


def test_fit_takes_the_mask(folder):
    expected = motifold.CNMF(2, 8, random_state=0).fit(X, mask=MASK)
    found = motifold.load(folder / "model.npz")
    np.testing.assert_array_equal(found.components_, expected.components_)
    assert found.origin_["options"] == {"missing": "mask", "rate": 20.0}


def test_empty_cells_of_a_table_are_the_same(folder, tmp_path):
    told = json.loads(
        ok("fit", folder / "holes.csv", "-k", 2, "-l", 8, "-o", tmp_path / "m.npz", "--missing",
           "mask", "--json").stdout
    )  # fmt: skip
    assert told["missing"] == (~MASK).sum()
    of_npy = motifold.load(folder / "model.npz")
    np.testing.assert_allclose(motifold.load(tmp_path / "m.npz").components_, of_npy.components_)


def test_transform_reads_as_the_fit_did(folder, tmp_path):
    out = tmp_path / "a.npy"
    told = json.loads(
        ok("transform", folder / "model.npz", folder / "holes.npy", "-o", out, "--json").stdout
    )
    model = motifold.load(folder / "model.npz")
    np.testing.assert_array_equal(np.load(out), model.transform(X, mask=MASK))
    assert told["loss"] == pytest.approx(-model.score(X, mask=MASK))


def test_events_in_a_gap_are_left_out(folder):
    command = ["events", folder / "model.npz", "--data", folder / "holes.npy", "--threshold", 0]
    rows = np.loadtxt(ok(*command).stdout.splitlines()[1:], delimiter=",")
    model = motifold.load(folder / "model.npz")
    seen = mostly_observed(model, MASK)
    assert not seen[102:107].any()
    assert all(seen[int(bin_), int(motif)] for motif, _, _, bin_, *_ in rows)
    assert len(rows) > 20
    # The model knows what was missing: without the data it is the same, but for what X tells.
    without = ok("events", folder / "model.npz", "--threshold", 0).stdout.splitlines()
    header = without[0].split(",")
    assert "explained" not in header
    alone = np.loadtxt(without[1:], delimiter=",")
    full = ok(*command).stdout.splitlines()[0].split(",")
    same = [full.index(name) for name in header]
    np.testing.assert_allclose(rows[:, same], alone, rtol=2e-3, atol=1e-6)
    assert 0.5 <= alone[:, header.index("observed")].min() < 1


def test_what_is_mostly_observed(folder):
    """Against the definition, also where a segment ends."""
    motifs = motifold.load(folder / "model.npz").components_.astype(float) ** 2
    found = mostly_observed(np.sqrt(motifs), MASK, lengths=[150, 250])
    for t in (0, 60, 99, 101, 148, 149, 150, 399):
        stop = min(t + 8, 150 if t < 150 else 400)
        inside = motifs[:, : stop - t]
        there = inside.sum(axis=(1, 2))
        observed = (inside * MASK[t:stop]).sum(axis=(1, 2))
        np.testing.assert_array_equal(found[t], observed >= 0.5 * there)


def test_report_says_so(folder):
    text = (folder / "report.html").read_text()
    assert f"{(~MASK).sum()} entries" in text
    assert "grey in the pictures" in text
    assert "leaves out bins" in text
    assert "Grey: missing." in text
    assert "missing entries" in text


def test_sweep_takes_the_mask(folder, tmp_path):
    out = tmp_path / "s.csv"
    common = ["--seeds", 1, "--n-null", 20, "--n-jobs", 1, "--tol", 0.05, "-o", out, "--json"]
    for test in ("entries", "blocks"):
        answer = ok("sweep", folder / "holes.npy", "-k", 2, "-l", 8, "--missing", "mask", "--test",
                    test, "--store", tmp_path / test, *common)  # fmt: skip
        run_ = json.loads(answer.stdout)["runs"][0]
        expected = motifold.CNMF(2, 8, random_state=0, tol=0.05, n_jobs=1).fit(X, mask=MASK)
        assert run_["loss"] == pytest.approx(expected.loss_)
        assert 0 < run_["test_error"] < 1


def test_info_counts_them(folder):
    told = json.loads(ok("info", folder / "holes.npy", "--json").stdout)
    assert told["missing"] == (~MASK).sum()
    assert told["mean"] == pytest.approx(X[MASK].mean())
    assert "--missing mask" in " ".join(told["hints"])
