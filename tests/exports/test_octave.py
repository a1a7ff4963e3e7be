"""Octave, which reads MATLAB's files and programs, opens what is exported for it."""

import shutil
import subprocess

import numpy as np
import pytest

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.exports import export_mat

OCTAVE = shutil.which("octave-cli")
pytestmark = pytest.mark.skipif(OCTAVE is None, reason="Octave is not installed")
# What helper.reconstruct of seqNMF does, written anew, and what the page says of background.
PROGRAM = """
load found.mat
[N, K, L] = size(W);
T = size(H, 2);
Xhat = zeros(N, T);
for tau = 0:L-1
    Xhat(:, tau+1:T) += reshape(W(:, :, tau+1), N, K) * H(:, 1:T-tau);
end
Xhat = Xhat + background;
name = features{2};
save -v7 again.mat Xhat W H name rate loss
"""


def test_octave_reconstructs_the_data(tmp_path):
    import scipy.io

    X = make_sequences(120, 7, 2, 5, random_state=0).X
    model = CNMF(2, 5, random_state=0, max_iter=20, tol=0, background=True).fit(X)
    model.origin_ = {"source": "x.npy", "rate": 10.0, "options": {}, "starts": [0.0]}
    model.feature_names_in_ = np.array([f"unit {n}" for n in range(7)], object)
    export_mat(model, tmp_path / "found.mat")
    (tmp_path / "program.m").write_text(PROGRAM)
    done = subprocess.run(
        [OCTAVE, "--norc", "--quiet", "program.m"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    again = scipy.io.loadmat(tmp_path / "again.mat")
    expected = model.inverse_transform(model.activations_)
    np.testing.assert_allclose(again["Xhat"].T, expected, atol=1e-12)
    assert again["W"].shape == (7, 2, 5)
    assert again["H"].shape == (2, 120)
    assert again["name"].tolist() == ["unit 1"]
    assert (again["rate"], again["loss"]) == (10, model.loss_)
