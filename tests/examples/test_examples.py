"""The gallery's scripts run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from motifold.matching import match_motifs

EXAMPLES = Path(__file__).parents[2] / "examples"


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def recordings(monkeypatch):
    """The folder with the recordings, where there is one."""
    if not DATA.is_dir():
        pytest.skip(f"the recordings are absent: put them in {DATA}, see its README")
    monkeypatch.setenv("MOTIFOLD_DATA", str(DATA))


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


@pytest.mark.slow
def test_songbird_neural(pyplot, recordings):
    names = runpy.run_path(str(EXAMPLES / "plot_songbird_neural.py"))
    assert names["n_components"] == 3
    assert names["result"].significant.all()
    assert names["sharpness_p"].min() < 0.05
    assert len(pyplot.get_fignums()) == 5


@pytest.mark.slow
def test_speech_sounds(pyplot, recordings):
    names = runpy.run_path(str(EXAMPLES / "plot_speech_sounds.py"))
    assert min(names["counts"]) >= 5  # every sound recurs
    # What the conclusion says.
    assert names["agree"] == names["n_sounds"]
    assert 8 < names["round_length"] < 9.5
    assert names["centre"][names["hiss"]] > 2000
    assert names["rhythm"][names["voice"]] > 2 * np.sort(names["rhythm"])[-2]
    assert names["result"].significant[[names["hiss"], names["voice"], names["vowel"]]].all()
    digits = np.array(names["strongest_digits"](names["vowel"]).split(), dtype=float)
    spoken = [1.5, 5.5, 9.5]  # the middles of one, five and nine
    assert (np.abs(digits[:, None] - spoken).min(axis=1) < 1.1).mean() > 0.9
    assert len(pyplot.get_fignums()) == 4


@pytest.mark.slow
def test_drums(pyplot):
    names = runpy.run_path(str(EXAMPLES / "plot_drums.py"))
    assert max(names["errors"]) < 1e-5
    assert np.mean(names["ratings"]["samples"]) > 10
    assert np.mean(names["ratings"]["samples and score"]) > 10
    assert len(pyplot.get_fignums()) == 3
