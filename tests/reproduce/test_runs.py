"""The command end to end on small data, interrupted and resumed; on the real data where it is."""

from __future__ import annotations

import csv
import json
import os
import re
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import DATA
from PIL import Image

from motifold.cli import main
from motifold.datasets import make_sequences
from motifold.io import Recording
from motifold.reproduce import experiments, runs
from motifold.reproduce.experiments import DataSet, Experiment


def tiny(T: int, K: int = 2, L: int = 4, N: int = 8, **axes):
    def load(_):
        return Recording(make_sequences(T, N, K, L, random_state=0).X, "made up", **axes)

    return load


SMALL = {
    "synthetic": Experiment(
        "synthetic",
        "Synthetic data",
        1.0,
        tuple(
            DataSet(f"T{T}", f"T = {T}", 2, 4, tiny(n), n**0.5)
            for T, n in [(500, 60), (2500, 70), (10000, 80), (50000, 90)]
        ),
    ),
    "songbird": Experiment(
        "songbird", "Songbird spectrogram", 1.0, (DataSet("song", "songbird", 2, 4, tiny(80)),)
    ),
    "speech": Experiment(
        "speech",
        "Speech",
        1.0,
        (
            DataSet(
                "digits",
                "spoken digits",
                2,
                4,
                tiny(200, N=257, rate=62.5, feature_axis=np.linspace(0, 4000, 257)),
            ),
        ),
    ),
}


@pytest.fixture
def small(monkeypatch):
    for name, experiment in SMALL.items():
        monkeypatch.setitem(experiments.EXPERIMENTS, name, experiment)


@pytest.fixture
def fitted(monkeypatch):
    """The keys of the fits that were really run."""
    keys = []
    fit = runs._fit

    def record(X, data, key, *rest):
        keys.append((data.name, *key))
        return fit(X, data, key, *rest)

    monkeypatch.setattr(runs, "_fit", record)
    return keys


@pytest.fixture
def undrawn(monkeypatch):
    """No figures: for tests of what is fitted, and of what is not."""
    monkeypatch.setattr("motifold.reproduce.figures.draw_figures", lambda *_: [])


def run(*arguments: str):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_songbird(small, fitted, tmp_path):
    answer = run("songbird", "--time-limit", "0.6", "--seeds", "2", "--out", str(tmp_path))
    assert answer.exit_code == 0, answer.output
    assert len(fitted) == len(set(fitted)) == 12
    for name in ("figure3.png", "songbird_motifs.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    claims = (tmp_path / "claims.md").read_text()
    # What is told has the same words, but no line wider than the terminal.
    printed = answer.stdout.partition("# The paper")[2].partition("Written: ")[0]
    assert max(map(len, printed.splitlines())) <= 100
    assert len(re.findall("^    verdict: ", printed, re.MULTILINE)) == 4
    words, told = (set(re.findall("[a-z]+", text)) for text in (claims, printed))
    assert words - told <= {"data"}, "the name of a first column is not told"
    # Not a bar: it is no terminal.
    lines = [line for line in answer.stderr.splitlines() if line.startswith("songbird ")]
    assert [line.split(":")[0] for line in lines] == [f"songbird {i}/12" for i in range(1, 13)]
    assert "songbird, MU published, start 1: loss 0." in lines[0]
    assert "%|" not in answer.output
    assert "0.6 s of fitting in all, which gives each fit: songbird 0.05 s" in claims
    table = [line for line in claims.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4 + 2 + 1
    assert all(line.count("|") == 4 for line in table[:6])


def test_the_file_of_curves(small, undrawn, tmp_path):
    run("songbird", "--time-limit", "0.6", "--seeds", "2", "--out", str(tmp_path))
    with open(tmp_path / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "experiment", "data", "algorithm", "acceleration", "seed", "iteration", "seconds", "loss",
    ]  # fmt: skip
    curves: dict[tuple, list] = {}
    for row in rows:
        key = (row["algorithm"], row["acceleration"], row["seed"])
        curves.setdefault(key, []).append(row)
    assert len(curves) == 12
    firsts = {seed: set() for seed in "01"}
    for (_, _, seed), curve in curves.items():
        assert [int(row["iteration"]) for row in curve] == list(range(len(curve)))
        seconds = [float(row["seconds"]) for row in curve]
        assert seconds == sorted(seconds)
        assert float(curve[-1]["loss"]) < float(curve[0]["loss"])
        firsts[seed].add(round(float(curve[0]["loss"]), 6))
    # The same start for all six, and another one for another seed.
    assert [len(losses) for losses in firsts.values()] == [1, 1]
    assert firsts["0"] != firsts["1"]


def test_resumes_after_ctrl_c(small, undrawn, fitted, tmp_path, monkeypatch):
    arguments = ("songbird", "--time-limit", "0.3", "--seeds", "1", "--out", str(tmp_path))
    fit = runs._fit

    def interrupted(X, data, key, *rest):
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return fit(X, data, key, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "_fit", interrupted)
        answer = run(*arguments)
    assert answer.exit_code == 130
    assert "the same command goes on" in answer.output
    assert not (tmp_path / "claims.md").exists()
    first = fitted.copy()
    fitted.clear()
    answer = run(*arguments)
    assert answer.exit_code == 0, answer.output
    assert len(first) == 3
    assert len(fitted) == 3
    assert not set(first) & set(fitted)
    fitted.clear()
    run(*arguments)
    assert not fitted


def test_what_was_made_otherwise_is_made_again(small, undrawn, fitted, tmp_path):
    common = ("songbird", "--seeds", "1", "--out", str(tmp_path), "--time-limit")
    run(*common, "0.3")
    fitted.clear()
    (tmp_path / "runs/songbird/song-MU-published-0.npz").write_bytes(b"PK broken")
    answer = run(*common, "0.3")
    assert "song-MU-published-0.npz is damaged" in answer.output
    assert fitted == [("song", "MU", "published", 0)]
    fitted.clear()
    run(*common, "0.36")
    assert len(fitted) == 6


def test_a_damaged_file_is_told_and_never_taken_for_a_fit(tmp_path):
    store = runs.RunStore(tmp_path, "songbird")
    store.start(runs.Plan(SMALL["songbird"], 1, 0.3))
    course = [
        np.arange(50),
        np.linspace(0, 1, 50),
        np.linspace(1, 0.2, 50),
        np.ones((2, 3, 4), "f4"),
    ]
    key = ("MU", "published", 0)
    store.save(runs.Run("songbird", "song", *key, *course), 0.5, "of the problem")
    path = store.path("song", *key)
    data, rng, lost = path.read_bytes(), np.random.default_rng(0), 0
    for place in rng.integers(len(data), size=100):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = store.load("song", key, 0.5, "of the problem")
        if found is None:
            lost += 1
            assert all(path.name in str(warning.message) for warning in told)
        else:  # a bit that means nothing, as those of the time of day
            for name, value in zip(("iteration", "seconds", "loss"), course, strict=False):
                np.testing.assert_array_equal(getattr(found, name), value)
    assert lost > 50
    (store.folder / "plan.json").write_text('{"seeds": 1')
    with pytest.warns(UserWarning, match=r"plan\.json is damaged"):
        assert store.plan(SMALL["songbird"]) is None


def test_fits_of_an_unfinished_plan_are_not_mixed_with_older_ones(
    small, undrawn, tmp_path, monkeypatch
):
    common = ("--seeds", "1", "--out", str(tmp_path), "--time-limit")
    run("songbird", *common, "0.3")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "_fit", interrupted)
        run("songbird", *common, "0.36")
    run("speech", *common, "0.3")
    claims = (tmp_path / "claims.md").read_text()
    assert "## Speech" in claims
    assert "## Songbird" not in claims


def test_experiments_gather_in_a_folder(small, tmp_path):
    for name in ("songbird", "speech"):
        answer = run(name, "--time-limit", "0.3", "--seeds", "1", "--out", str(tmp_path))
        assert answer.exit_code == 0, answer.output
    claims = (tmp_path / "claims.md").read_text()
    assert "## Songbird spectrogram" in claims
    assert "## Speech" in claims
    assert "## Synthetic data" not in claims
    for name in ("figure3", "figure4", "figure5"):
        assert (tmp_path / f"{name}.png").exists()


@pytest.mark.slow
def test_all_on_small_data(small, fitted, tmp_path):
    answer = run("all", "--seeds", "1", "--time-limit", "0.6", "--out", str(tmp_path))
    assert answer.exit_code == 0, answer.output
    assert len(fitted) == 6 * 6
    claims = (tmp_path / "claims.md").read_text()
    assert claims.count("\n## ") == 3
    assert (tmp_path / "figure2.png").exists()


def test_the_time_is_divided():
    plan = runs.Plan(SMALL["synthetic"], seeds=3, time_limit=90.0)
    total = sum(18 * plan.seconds_each(data) for data in plan.experiment.data_sets)
    assert total == pytest.approx(90)
    assert plan.n_runs == 72
    assert len(set(plan.fit_keys())) == 18


def test_rounding_of_the_data_is_no_other_problem():
    data = SMALL["songbird"].data_sets[0]
    X = data.load(None).X
    same = runs._fingerprint(X, data)
    assert runs._fingerprint(X * (1 + 1e-12), data) == same
    assert runs._fingerprint(X * 1.01, data) != same
    assert runs._fingerprint(X[:-1], data) != same


def test_the_start_is_scaled_to_the_data():
    X = make_sequences(100, 8, 2, 4, random_state=0).X

    def loss(factor: float) -> float:
        W, H = runs.random_start(X, 2, 4, seed=3)
        X_hat = np.zeros_like(X)
        for t in range(100):
            for lag in range(min(4, t + 1)):
                X_hat[t] += factor * H[t - lag] @ W[:, lag]
        return float(np.linalg.norm(X - X_hat))

    assert loss(1.0) < min(loss(0.99), loss(1.01))


def test_no_data_and_a_bad_experiment(tmp_path):
    (tmp_path / "empty").mkdir()
    answer = run("songbird", "--out", str(tmp_path / "out"), "--data", str(tmp_path / "empty"))
    assert answer.exit_code == 3
    assert "has no MackeviciusData.mat" in answer.output
    assert run("nonsense").exit_code == 2
    assert run("songbird", "--time-limit", "0").exit_code == 2


def needs_data():
    names = ("MackeviciusData.mat", "spoken_digits_two_speakers_8k.wav")
    absent = [name for name in names if not (DATA / name).exists()]
    return pytest.mark.skipif(bool(absent), reason=f"put {absent} into {DATA}")


@pytest.mark.slow
@needs_data()
def test_all_on_the_papers_data(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_warm_up", lambda *_: None)  # half a minute, so that times are fair
    answer = run(
        "all", "--seeds", "1", "--time-limit", "3", "--out", str(tmp_path), "--data", str(DATA)
    )
    assert answer.exit_code == 0, answer.output
    for name in ("figure2", "figure3", "figure4", "figure5"):
        with Image.open(tmp_path / f"{name}.png") as image:
            assert len(image.convert("RGB").getcolors(2**24)) > 100  # no empty page
    plans = {name: json.loads((tmp_path / "runs" / name / "plan.json").read_text())
             for name in os.listdir(tmp_path / "runs")}  # fmt: skip
    assert set(plans) == {"synthetic", "songbird", "speech"}
