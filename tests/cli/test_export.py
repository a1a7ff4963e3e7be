"""motifold export."""

import numpy as np
import pytest
import scipy.io
from click.testing import CliRunner

from motifold import CNMF
from motifold.cli import main


@pytest.fixture
def saved(tmp_path):
    X = np.random.default_rng(0).random((30, 4))
    model = CNMF(2, 3, random_state=0, max_iter=5, tol=0).fit(X)
    model.save(tmp_path / "model.npz")
    return model, tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["export", *map(str, arguments)])


def test_mat_npz_and_tables(saved):
    model, folder = saved
    for kind, name in [("mat", "m.mat"), ("npz", "m2.npz"), ("csv", "tables")]:
        result = run(folder / "model.npz", "--to", kind, "-o", folder / name)
        assert result.exit_code == 0, result.output
        assert "2 motifs of 3 bins and 4 features" in result.output
    W = scipy.io.loadmat(folder / "m.mat")["W"]
    np.testing.assert_array_equal(W, model.components_.transpose(2, 0, 1))
    assert np.load(folder / "m2.npz")["components"].shape == (2, 3, 4)
    assert {path.name for path in (folder / "tables").iterdir()} == {
        "motifs.csv",
        "activations.csv",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "npz", "-o", "model.npz"], "is the model itself"),
        (["--to", "mat", "-o", "x.npz"], "must end in .mat"),
        (["--to", "csv", "-o", "a_file"], "is a file"),
        (["--to", "mat"], "Missing option"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(saved, monkeypatch, arguments, words):
    _, folder = saved
    monkeypatch.chdir(folder)
    (folder / "a_file").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run("model.npz", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
