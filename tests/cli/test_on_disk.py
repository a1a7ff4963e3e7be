"""The commands on a recording that stays on disk."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import motifold
from motifold.cli import main
from motifold.datasets import make_sequences

zarr = pytest.importorskip("zarr")

T, N, K, L = 2000, 60, 2, 5
LIMIT = ("--memory-limit", "400KB")


@pytest.fixture
def big(tmp_path):
    X = make_sequences(T, N, K, L, noise=0.05, random_state=0).X.astype(np.float32)
    array = zarr.create_array(str(tmp_path / "x.zarr"), shape=X.shape, chunks=(50, 60), dtype="f4")
    array[:] = X
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def run(*arguments, code: int = 0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_fit_transform_report_and_significance(big):
    quick = ("-k", K, "-l", L, "--max-iter", 3, "--tol", 0)
    run("fit", big / "x.zarr", *quick, "-o", big / "a.npz", *LIMIT)
    run("fit", big / "x.npy", *quick, "-o", big / "b.npz")
    a, b = motifold.load(big / "a.npz"), motifold.load(big / "b.npz")
    np.testing.assert_array_equal(a.components_, b.components_)
    out = big / "h.zarr"
    told = run("transform", big / "a.npz", big / "x.zarr", "-o", out, "--json", *LIMIT)
    assert json.loads(told)["loss"] == pytest.approx(a.loss_, rel=1e-3)
    np.testing.assert_array_equal(zarr.open_array(str(out))[:], a.transform(np.load(big / "x.npy")))
    run("report", big / "a.npz", "--data", big / "x.zarr", "-o", big / "disk.html", *LIMIT)
    run("report", big / "b.npz", "--data", big / "x.npy", "-o", big / "memory.html")
    assert "<h2>Motifs</h2>" in (big / "disk.html").read_text()
    new = ("--new-data", "--n-null", 40, "--json")
    other = big / "y.zarr"
    again = zarr.create_array(str(other), shape=(T, N), chunks=(50, 60), dtype="f4")
    Y = make_sequences(T, N, K, L, noise=0.05, random_state=1).X.astype(np.float32)
    again[:] = Y
    np.save(big / "y.npy", Y)
    disk = run("significance", big / "a.npz", "--data", other, *new, *LIMIT)
    memory = run("significance", big / "a.npz", "--data", big / "y.npy", *new)
    found, expected = json.loads(disk)["motifs"], json.loads(memory)["motifs"]
    for one, two in zip(found, expected, strict=True):
        assert one == pytest.approx(two, rel=1e-6)


def test_what_is_there_is_not_replaced(big):
    run("fit", big / "x.npy", "-k", K, "-l", L, "--max-iter", 2, "-o", big / "a.npz")
    told = run("transform", big / "a.npz", big / "x.npy", "-o", big / "x.zarr", code=3)
    assert "x.zarr" in told
    assert zarr.open_array(str(big / "x.zarr")).shape == (T, N)


@pytest.mark.parametrize("option", [("--smooth", "2"), ("--test-fraction", "0.3")])
def test_what_takes_it_in_memory_is_refused(big, option):
    args = ("-k", K, "-l", L, "-o", big / "a.npz")
    told = run("fit", big / "x.zarr", *args, *option, *LIMIT, code=3)
    assert "on disk" in told
    assert "memory_limit" in told or "--memory-limit" in told


def test_a_size_that_is_none(big):
    told = run("fit", big / "x.zarr", "-k", K, "-l", L, "--memory-limit", "much", code=2)
    assert "4GB" in told
