"""discover: number, verdicts, shapes and events in one call; stages that are kept."""

from __future__ import annotations

import inspect
import io
from contextlib import redirect_stderr

import numpy as np
import pytest

import motifold
from motifold.findings.matching import match_motifs
from motifold.findings.stages import Stages

L, N = 12, 16
OPTIONS = {"n_lags": L, "random_state": 0, "n_jobs": 1, "progress": False}


def planted(T=600, noise=0.15, seed=0):
    """Two smooth motifs with eight features each: X, motifs, times."""
    rng = np.random.default_rng(seed)
    motifs = np.zeros((2, L, N))
    for k in range(2):
        features = slice(8 * k, 8 * k + 8)
        motifs[k, :, features] = np.exp(
            -0.5 * (np.arange(L)[:, None] - rng.permutation(8) - 2) ** 2
        )
    times = [np.arange(4, T - 2 * L, 29), np.arange(15, T - 2 * L, 37)]
    X = noise * np.abs(rng.standard_normal((T, N)))
    for k in range(2):
        for t in times[k]:
            X[t : t + L] += motifs[k]
    return X, motifs, times


@pytest.fixture(scope="module")
def found():
    return motifold.discover(planted()[0], rate=10.0, **OPTIONS)


def test_number_verdicts_and_shapes(found):
    _, motifs, _ = planted()
    assert found.n_components == 2
    assert found.verdicts == ["sequence"] * 2
    match = match_motifs(motifs, found.motifs)
    assert match.similarity.min() > 0.97
    # The model is a plain fit, in the same order.
    assert found.model.components_.shape == found.motifs.shape
    assert match_motifs(found.model.components_, found.motifs).order.tolist() == [0, 1]


def test_table_and_events_have_what_they_promise(found):
    assert found.table.columns[:2] == ["motif", "verdict"]
    assert found.table["verdict"].tolist() == found.verdicts
    assert {"p_recurrence", "p_order", "n_events"} <= set(found.table.columns)
    assert {"motif", "time", "q_value"} <= set(found.events.columns)
    assert (found.events["q_value"] <= 0.1).all()


def test_asked_as_it_was_promised():
    """Names and defaults, after X by name alone; what came later has a default, too."""
    promised = {
        "n_lags": inspect.Parameter.empty,
        "n_components": None,
        "rate": None,
        "lengths": None,
        "mask": None,
        "alpha": 0.05,
        "fdr": 0.1,
        "random_state": None,
        "n_jobs": None,
        "progress": True,
    }
    X, *options = inspect.signature(motifold.discover).parameters.values()
    assert X.name == "X"
    assert {option.kind for option in options} == {inspect.Parameter.KEYWORD_ONLY}
    defaults = {option.name: option.default for option in options}
    assert defaults | promised == defaults
    assert list(defaults.values()).count(inspect.Parameter.empty) == 1


def test_a_bar_goes_over_the_stages():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    X = np.random.default_rng(0).poisson(0.1, (240, 8))
    with redirect_stderr(Terminal()) as told:
        motifold.discover(X, n_lags=10, random_state=0, n_jobs=1)
    assert "without quarter 4" in told.getvalue()
    assert "100%" in told.getvalue()
    with redirect_stderr(Terminal()) as told:
        motifold.discover(X, n_lags=10, random_state=0, n_jobs=1, progress=False)
    assert told.getvalue() == ""


def test_events_are_those_planted(found):
    _, motifs, times = planted()
    match = match_motifs(motifs, found.motifs)
    for k, true in enumerate(times):
        mine = found.events.where(motif=int(match.order[k]))
        bins = mine["bin"] - match.shift[k]
        near = np.abs(bins[:, None] - true).min(axis=0)
        assert (near <= 1).mean() > 0.9
        assert len(bins) <= 1.2 * len(true)
        np.testing.assert_allclose(mine["time"], mine["bin"] / 10)
    assert found.table["n_events"].sum() == len(found.events)


def test_summary_tells_the_numbers(found):
    told = found.summary()
    assert "60 s (600 bins), 16 features" in told
    assert "2 recur in their order (sequence), 0 recur without one" in told
    assert f"{len(found.events)} events" in told
    assert "mirror image" in told  # what it does not say


def test_noise_has_none():
    X = np.random.default_rng(1).poisson(0.08, (500, N))
    found = motifold.discover(X, **OPTIONS)
    assert found.n_components == 0
    assert len(found.events) == 0
    assert "sequence" not in found.verdicts


def test_given_number_is_kept():
    found = motifold.discover(planted()[0], n_components=3, **OPTIONS)
    assert len(found.verdicts) == len(found.motifs) == 3
    assert found.n_components == 2


def test_weak_sequences_that_half_a_recording_cannot_prove():
    """Half of the events make a poor motif: tested on halves, each of these had one sequence."""
    for seed in (2, 3):
        X = np.random.default_rng(seed).poisson(0.6 * planted(noise=0.0)[0] + 0.12)
        assert motifold.discover(X, **OPTIONS).n_components == 2


def test_stages_are_kept_and_taken_up(tmp_path, monkeypatch):
    X = planted(T=300)[0]
    path = tmp_path / "stages.npz"
    from motifold.findings import discovering

    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(discovering, "forward_gains", fail)
        with pytest.raises(KeyboardInterrupt):
            motifold.discover(X, path=path, **OPTIONS)
    with monkeypatch.context() as patch:  # all but the tests are there
        patch.setattr(discovering, "sharpen", fail)
        patch.setattr(discovering, "pruned", fail)
        resumed = motifold.discover(X, path=path, **OPTIONS)
    whole = motifold.discover(X, **OPTIONS)
    np.testing.assert_array_equal(resumed.p_order, whole.p_order)
    assert resumed.events == whole.events
    with pytest.raises(ValueError, match="other data or other settings"):
        motifold.discover(X, path=path, **OPTIONS | {"random_state": 1})


def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(b"precious")
    with pytest.raises(ValueError, match="cannot be read as the stages"):
        Stages(path, "key")
    assert path.read_bytes() == b"precious"


@pytest.mark.slow
def test_segments_and_mask():
    X, *_ = planted()
    mask = np.random.default_rng(0).random(X.shape) < 0.95
    found = motifold.discover(np.where(mask, X, np.nan), mask=mask, lengths=[280, 320], **OPTIONS)
    assert found.n_components == 2
    events = found.events
    assert set(events["segment"]) == {0, 1}
    ends = np.where(events["segment"] == 0, 280, 600)
    assert (events["bin"] + L <= ends).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n_lags": 1}, "order needs lags"),
        ({"n_components": 0}, "n_components must be 1"),
        ({"alpha": 1}, "alpha must be between"),
        ({"rate": 0}, "rate must be positive"),
        ({"n_lags": 100}, "Give at least 800 bins"),
        ({"path": "x.npz", "random_state": None}, "path needs random_state"),
    ],
)
def test_says_what_it_cannot_take(options, told):
    with pytest.raises(ValueError, match=told):
        motifold.discover(np.ones((200, 4)), **OPTIONS | options)


def test_report_has_it_all_and_runs_nothing(found, tmp_path):
    path = tmp_path / "found.html"
    found.report(path)
    page = path.read_text(encoding="utf-8")
    assert "script-src 'none'" in page.replace("&#x27;", "'")
    assert page.count("<img") == 1
    assert "<script" not in page
    for line in found.summary().split("\n")[:2]:
        assert line in page
