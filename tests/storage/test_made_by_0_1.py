"""What 0.1.0 left on disk still works: a model file, a pickle, a checkpoint, the store of a sweep.

Made at the commit of 0.1.0 from ``recording.npy`` (two planted motifs) by ``CNMF(2, 4,
random_state=0)``: fitted with lengths [70, 50] for the first two; and without them, interrupted in
the fifth iteration, for the checkpoint. The store is that of the sweep below.
"""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import motifold
from motifold import CNMF
from motifold.findings import sweeping

HERE = Path(__file__).parent / "made_by_0_1"
X = np.load(HERE / "recording.npy")
LENGTHS = [70, 50]


def unpickled() -> CNMF:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("the pickle was made with numpy 2, which numpy 1 cannot read")
    with open(HERE / "model.pickle", "rb") as file:
        return pickle.load(file)


@pytest.mark.parametrize("read", [lambda: motifold.load(HERE / "model.npz"), unpickled])
def test_a_model_of_0_1(read, tmp_path):
    model = read()
    assert model.stop_reason_ == "converged"
    assert (model.beta_loss, model.solver) == ("frobenius", "hals")
    assert model.loss_ == pytest.approx(0.0581436612750786)
    assert len(model.history_.loss) == model.n_iter_ + 1
    found = model.transform(X, lengths=LENGTHS)
    np.testing.assert_allclose(found, model.activations_, atol=1e-5 * model.activations_.max())
    parts = list(model.reconstruct_components())
    np.testing.assert_allclose(
        sum(parts), model.inverse_transform(found, lengths=LENGTHS), atol=1e-5
    )
    model.save(tmp_path / "again.npz")
    again = motifold.load(tmp_path / "again.npz")
    np.testing.assert_array_equal(again.components_, model.components_)


def test_a_checkpoint_of_0_1_goes_on(tmp_path):
    path = tmp_path / "fit.checkpoint"
    shutil.copy(HERE / "fit.checkpoint", path)
    seen = []
    model = CNMF(2, 4, random_state=0, callback=lambda state: seen.append(state.iteration))
    motifold.fit_with_checkpoint(model, X, path)
    assert model.converged_
    assert seen[0] > 1, "it has begun anew"
    assert model.loss_ == pytest.approx(0.1566114543418408, rel=0.02)


def test_a_store_of_0_1_goes_on(tmp_path, monkeypatch):
    shutil.copy(HERE / "sweep.runs", tmp_path)
    shutil.copytree(HERE / "sweep.runs.fits", tmp_path / "sweep.runs.fits")
    grid = {"n_lags": 4, "n_seeds": 2, "n_null": 20, "n_jobs": 1, "progress": False}
    done = []
    original = sweeping.run_trials
    monkeypatch.setattr(
        sweeping, "run_trials", lambda *run: done.append(run[1:3]) or original(*run)
    )
    for _ in range(2):  # the second time it is a store of today
        found = motifold.sweep(X, n_components=[1, 2], path=tmp_path / "sweep.runs", **grid)
        assert not done
        losses = [0.3803940993651905, 0.3803930884588647, 0.1566114543418408, 0.10596645455677794]
        assert found.table["loss"].tolist() == losses
        assert found.table["dissx"][2] == pytest.approx(0.02577, rel=1e-3)
    motifold.sweep(X, n_components=[1, 2, 3], path=tmp_path / "sweep.runs", **grid)
    assert [(point["n_components"], seed) for point, seed in done] == [(3, [0]), (3, [1])]


def test_a_checkpoint_of_0_1_is_no_fit_of_another_loss(tmp_path):
    path = tmp_path / "fit.checkpoint"
    shutil.copy(HERE / "fit.checkpoint", path)
    model = CNMF(2, 4, random_state=0, beta_loss="kullback-leibler")
    with pytest.raises(ValueError, match="another fit: beta_loss, solver differs"):
        motifold.fit_with_checkpoint(model, X, path)
