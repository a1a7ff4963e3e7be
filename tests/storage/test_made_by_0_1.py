"""What 0.1.0 left on disk still works: a model file, a pickle, a checkpoint.

Made at the commit of 0.1.0 from ``recording.npy`` (two planted motifs) by ``CNMF(2, 4,
random_state=0)``: fitted with lengths [70, 50] for the first two; and without them, interrupted in
the fifth iteration, for the checkpoint.
"""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import motifold
from motifold import CNMF

HERE = Path(__file__).parent / "made_by_0_1"
X = np.load(HERE / "recording.npy")
LENGTHS = [70, 50]


def unpickled() -> CNMF:
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


def test_a_checkpoint_of_0_1_is_no_fit_of_another_loss(tmp_path):
    path = tmp_path / "fit.checkpoint"
    shutil.copy(HERE / "fit.checkpoint", path)
    model = CNMF(2, 4, random_state=0, beta_loss="kullback-leibler")
    with pytest.raises(ValueError, match="another fit: beta_loss, solver differs"):
        motifold.fit_with_checkpoint(model, X, path)
