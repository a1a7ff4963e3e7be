"""Planted motifs are found again: the table of benchmarks/recovery.py, and its aim."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import reference

from motifold import CNMF

PATH = Path(__file__).parents[2] / "benchmarks" / "recovery.py"


@pytest.fixture(scope="module")
def recovery():
    spec = importlib.util.spec_from_file_location("recovery", PATH)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_planted_motifs_are_found(recovery, capsys):
    found = 0
    for seed in range(10):
        scores, loss, restarts = recovery.recover(seed)
        found += scores.min() >= 0.99
        with capsys.disabled():
            print(
                f"\nseed {seed}: similarity {scores.round(4)}, loss {loss:.1e}, {restarts} starts"
            )
    assert found >= 9


def test_similarity_agrees_with_the_oracle(recovery):
    X, motifs = recovery.plant(0)
    model = recovery.CNMF(3, 30, random_state=0, max_iter=5, tol=0).fit(X)
    ours = recovery.similarity(motifs, model.components_)
    to_reference = (motifs.transpose(2, 1, 0), model.components_.transpose(2, 1, 0))
    assert ours == pytest.approx(reference.best_match(*to_reference))


@pytest.mark.parametrize(("name", "K", "L"), [("SONG", 3, 50), ("NEURAL", 3, 20)])
def test_real_data(mackevicius, name, K, L):
    """The songbird data of the paper: converged, certified, and better than its own NMF."""
    X = mackevicius[name].astype(np.float32)
    model = CNMF(K, L, random_state=0).fit(X)
    assert model.converged_
    assert model.loss_ < 0.95 * CNMF(K, 1, random_state=0).fit(X).loss_
    W = (model.components_.transpose(2, 1, 0) * model.scales_).astype(np.float64)
    H = (model.activations_ / model.scales_).astype(np.float64)
    np.testing.assert_allclose(model.loss_, reference.relative_loss(X, W, H), rtol=1e-4)
    assert max(reference.kkt_residual(X, W, H)) <= 1.1 * model.tol
