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
    names = runpy.run_path(str(EXAMPLES / "recordings" / "plot_songbird_neural.py"))
    assert names["n_components"] == 3
    assert names["sweep"].evidence == {"n_components": "test_error"}  # as the text says
    assert names["result"].significant.all()
    assert names["sharpness_p"].min() < 0.05
    assert len(pyplot.get_fignums()) == 5


@pytest.mark.slow
def test_speech_sounds(pyplot, recordings):
    names = runpy.run_path(str(EXAMPLES / "recordings" / "plot_speech_sounds.py"))
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


def run(name: str) -> dict:
    return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


@pytest.mark.slow
def test_counts(pyplot):
    """Kullback–Leibler finds what squared error does not."""
    found = run("counts")["found"]
    squared, ratios = (found[name].similarity for name in ("squared error", "Kullback–Leibler"))
    assert ratios.min() > 0.6
    assert squared.mean() < 0.5 * ratios.mean()
    assert len(pyplot.get_fignums()) == 2


@pytest.mark.slow
def test_calcium(pyplot):
    shares = run("calcium")["shares"]
    assert shares["prepared"] > 0.9
    assert shares["traces as they are"] < shares["prepared"]
    assert len(pyplot.get_fignums()) == 2


@pytest.mark.slow
def test_spectrogram(pyplot):
    names = run("spectrogram")
    assert abs(len(names["events"]) - len(names["sung"])) <= 0.2 * len(names["sung"])
    assert np.mean(np.array(names["near"]) < 0.1) > 0.9
    assert len(pyplot.get_fignums()) == 3


@pytest.mark.slow
def test_trials(pyplot):
    names = run("trials")
    assert 0.4 < names["late"] - names["early"] < 0.6  # 25 bins of 50 a second
    assert len(names["followed"]) == 10
    assert set(names["condition"][sorted(names["followed"])]) == {1}


@pytest.mark.slow
def test_gaps(pyplot):
    names = run("gaps")
    assert names["error"] < 0.3
    assert names["naive"] > 0.8


@pytest.mark.slow
def test_penalties(pyplot):
    names = run("penalties")
    used = [int((names["shares"](names[fit]) > 0.005).sum()) for fit in ("plain", "apart")]
    assert used[0] > used[1] == 2
    assert names["sweep"].suggested["x_ortho"] is not None


@pytest.mark.slow
def test_consensus(pyplot):
    names = run("consensus")
    match = match_motifs(names["planted"].components, names["stable"].components_)
    assert match.similarity.min() > 0.8
    assert len(pyplot.get_fignums()) == 3


@pytest.mark.slow
def test_behaviour(pyplot):
    """One motif comes before running, and the other has nothing to do with it."""
    names = run("behaviour")
    p = names["p"]
    assert p.min() < 0.05 < p.max()
    events = names["events"].where(motif=names["runs"])["time"]
    apart = np.abs(np.array(names["truly"])[:, None] - events).min(axis=1)
    assert np.median(apart) < 0.15


@pytest.mark.slow
def test_discover(pyplot):
    names = run("discover")
    assert names["found"].n_components == 2
    assert names["nothing"].n_components == 0


@pytest.mark.slow
def test_stream(pyplot):
    errors = run("stream")["errors"]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3
    assert errors[0] > 3 * errors[3]


@pytest.mark.slow
def test_below_zero(pyplot):
    similar = run("below_zero")["similar"]
    assert similar["moved up"] < min(similar["kept"], similar["cut off"]) - 0.1


def test_there_are_a_dozen_on_data_of_our_own():
    """None of them is a placeholder: they download nothing."""
    own = sorted(EXAMPLES.glob("plot_*.py"))
    assert len(own) >= 12
    assert not [path.name for path in own if "fetch_" in path.read_text()]
    assert all(f'run("{path.stem[5:]}")' in Path(__file__).read_text() or path.stem in
               ("plot_figure1", "plot_drums") for path in own)  # fmt: skip


def test_what_is_not_run_is_at_least_python():
    compile((EXAMPLES / "elsewhere.py").read_text(), "elsewhere.py", "exec")
