"""The gallery's scripts run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from motifold.matching import match_motifs

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def pyplot(monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    yield plt
    plt.close("all")


@pytest.mark.slow
def test_figure1(pyplot):
    names = runpy.run_path(str(EXAMPLES / "plot_figure1.py"))
    nmf, cnmf = names["nmf_losses"], names["cnmf_losses"]
    assert min(nmf[:4]) > 0.1  # four components are too few for NMF
    assert nmf[4] < 0.01
    assert cnmf[0] > 0.1
    assert cnmf[1] < 0.01
    assert np.linalg.matrix_rank(names["X"]) == 5
    match = match_motifs(names["motifs"], names["cnmf"].components_)
    assert match.similarity.min() > 0.99
    assert len(pyplot.get_fignums()) == 3
