"""``motifold fit --cluster``: the model of the same command on one machine."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import motifold
from motifold.cli import main
from motifold.datasets import make_sequences

pytest.importorskip("distributed")


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.mark.slow
def test_a_fit_on_two_workers_is_that_of_one_machine(tmp_path):
    np.save(tmp_path / "x.npy", make_sequences(800, 6, 2, 8, random_state=0).X)
    common = ("fit", tmp_path / "x.npy", "-k", 2, "-l", 8, "--max-iter", 5, "--seed", 0)
    for name, options in (("one", ()), ("two", ("--cluster", "local:2"))):
        result = run(*common, *options, "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
    one, two = motifold.load(tmp_path / "one"), motifold.load(tmp_path / "two")
    np.testing.assert_allclose(two.activations_, one.activations_, atol=1e-8)
    assert not list(tmp_path.glob("*.checkpoint"))


def test_what_is_no_cluster_is_said(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((20, 2)))
    for wrong in ("local", "local:0", "somewhere"):
        result = run("fit", tmp_path / "x.npy", "-k", 1, "-l", 2, "--cluster", wrong)
        assert result.exit_code == 2
        assert "local:4" in result.output
    result = run("fit", "-", "-k", 1, "-l", 2, "--follow", "--cluster", "local:2")
    assert result.exit_code == 2
    assert "--cluster" in result.output
