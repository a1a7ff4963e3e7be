"""The sweep: what it measures, that it resumes, and what it suggests from tables known."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.findings import Sweep, Table, dissimilarity, sweeping
from motifold.findings.choices import (
    choose_n_components,
    choose_n_lags,
    find_crossover,
    range_notes,
)
from motifold.findings.overlap import x_ortho_cost
from motifold.findings.trial import FoldPrediction

X = make_sequences(300, 12, 2, 6, activation_probability=0.05, noise=0.05, random_state=0).X
QUICK = {"tol": 1e-2, "max_iter": 60, "progress": False, "n_jobs": 1}
GRID = {"n_components": [2, 3], "n_lags": 6, "n_seeds": 3, "test": None, "n_null": 100}


@pytest.fixture(scope="module")
def fresh():
    return motifold.sweep(X, **GRID, **QUICK)


def test_measures_are_those_of_the_fits(fresh):
    models = [
        CNMF(2, 6, tol=1e-2, max_iter=60, random_state=seed, n_jobs=1).fit(X) for seed in range(3)
    ]
    rows = fresh.table.where(n_components=2)
    assert rows["seed"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(rows["loss"], [model.loss_ for model in models])
    expected = [x_ortho_cost([X], m.components_, m.activations_) for m in models]
    np.testing.assert_allclose(rows["x_ortho_cost"], expected)
    pairs = {(i, j): dissimilarity(models[i], models[j]) for i, j in [(0, 1), (0, 2), (1, 2)]}
    expected = [
        np.mean([value for pair, value in pairs.items() if seed in pair]) for seed in range(3)
    ]
    np.testing.assert_allclose(rows["dissx"], expected, atol=1e-5)  # factors in single precision
    assert rows["n_tested"].tolist() == [2, 2, 2]
    assert len(fresh.motifs) == 3 * (2 + 3)
    assert list(fresh.to_pandas().columns) == fresh.table.columns


def test_processes_make_no_difference(fresh):
    assert motifold.sweep(X, **GRID, **QUICK | {"n_jobs": 2}).table == fresh.table


def test_processes_share_a_gpu(monkeypatch):
    """As many as are worth it, by default; and they make no difference."""
    asked = []
    monkeypatch.setattr(sweeping, "_processes_of_gpu", lambda data, n: asked.append(n) or 2)
    grid = {**GRID, "n_null": 0, "n_seeds": 1, "device": "cuda:twin"}
    shared = motifold.sweep(X, **grid, **QUICK | {"n_jobs": None})
    assert asked == [2]
    assert shared.table == motifold.sweep(X, **grid, **QUICK).table


def test_how_many_processes_share_a_gpu(monkeypatch):
    monkeypatch.setattr(sweeping, "free_cores", lambda: 6)
    small, large = (SimpleNamespace(X=SimpleNamespace(size=n)) for n in (2**20, 2**25))
    assert [sweeping._processes_of_gpu(small, n) for n in (1, 20, 100)] == [1, 2, 6]
    assert sweeping._processes_of_gpu(large, 100) == 1


def test_resumed_after_a_torn_line_and_a_lost_fit(fresh, tmp_path, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    assert motifold.sweep(X, path=path, **GRID, **QUICK).table == fresh.table
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 6
    path.write_bytes(b"".join(lines[:5]) + lines[5][:30])
    lost = sha256(json.loads(lines[1])["key"].encode()).hexdigest()[:24]
    (tmp_path / "sweep.jsonl.fits" / f"{lost}.npz").write_bytes(b"")
    done = []
    from motifold.findings import sweeping

    original = sweeping.run_trials
    monkeypatch.setattr(
        sweeping, "run_trials", lambda *run: done.append(run[1:3]) or original(*run)
    )
    with pytest.warns(UserWarning, match=r"sweep.jsonl: .* damaged \(line 2: .*\.npz is wrong\)"):
        resumed = motifold.sweep(X, path=path, **GRID, **QUICK)
    assert resumed.table == fresh.table
    assert resumed.motifs == fresh.motifs
    assert len(done) == 3  # two lines were lost, and a fit
    done.clear()
    larger = motifold.sweep(X, path=path, **GRID | {"n_components": [1, 2, 3]}, **QUICK)
    assert [point["n_components"] for point, _ in done] == [1, 1, 1]
    assert Table(larger.table.records[3:]) == fresh.table


def test_a_file_of_other_data_is_refused(tmp_path):
    path = tmp_path / "sweep.jsonl"
    options = {"n_components": 1, "n_lags": 2, "n_seeds": 1, "test": None, "n_null": 0}
    motifold.sweep(X, path=path, **options, **QUICK)
    with pytest.raises(ValueError, match="another data"):
        motifold.sweep(X + 1, path=path, **options, **QUICK)
    with pytest.raises(ValueError, match="another n_null"):
        motifold.sweep(X, path=path, **options | {"n_null": 50}, **QUICK)
    other = tmp_path / "notes.txt"
    other.write_text("hello\n")
    with pytest.raises(ValueError, match="not the file of a sweep"):
        motifold.sweep(X, path=other, **options, **QUICK)
    assert other.read_text() == "hello\n"


def test_a_path_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="give a file"):
            motifold.sweep(X, path=path, **GRID, **QUICK)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"n_lags": 5}, "needs n_components"),
        ({"n_components": 2, "n_lags": 5, "nonsense": 1}, "not a parameter"),
        ({"n_components": 2, "n_lags": 5, "random_state": 1}, "by the sweep itself"),
    ],
)
def test_bad_grids(grid, message):
    with pytest.raises(TypeError, match=message):
        motifold.sweep(X, **grid)


@pytest.mark.parametrize("given", ["1-5", 2.5, [1, 0]])
def test_numbers_of_motifs_are_whole(given):
    with pytest.raises(ValueError, match=r"n_components must be a whole number.*range"):
        motifold.sweep(X, n_components=given, n_lags=5)


def test_an_error_says_in_which_run():
    with pytest.raises(ValueError, match="l1_H") as caught:
        motifold.sweep(X, n_components=1, n_lags=3, l1_H=-1.0, test=None, **QUICK)
    assert "seed 0" in caught.value.__notes__[0]


SCRIPT = """
import os, signal, sys, motifold
from motifold.datasets import make_sequences
from motifold.findings.store import RunStore

def add(store, *run, add=RunStore.add):
    add(store, *run)
    if len(store._runs) == 4:
        os.kill(os.getpid(), signal.SIGKILL)

RunStore.add = add
X = make_sequences(600, 20, 3, 10, activation_probability=0.05, random_state=1).X
motifold.sweep(X, n_components=[1, 2, 3, 4], n_lags=10, n_seeds=4, test=None, n_null=200,
               path=sys.argv[1], progress=False, n_jobs=2)
"""


@pytest.mark.slow
def test_killed_in_the_middle(tmp_path):
    path = tmp_path / "sweep.jsonl"
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    command = [sys.executable, "-c", SCRIPT, str(path)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    assert process.wait() == -signal.SIGKILL
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the workers that it left
    assert path.read_bytes().count(b"\n") == 1 + 4
    data = make_sequences(600, 20, 3, 10, activation_probability=0.05, random_state=1).X
    options = {
        "n_components": [1, 2, 3, 4],
        "n_lags": 10,
        "n_seeds": 4,
        "test": None,
        "n_null": 200,
        "progress": False,
    }
    resumed = motifold.sweep(data, path=path, **options)
    whole = motifold.sweep(data, **options)
    assert resumed.table == whole.table


# --- the rules ------------------------------------------------------------------------------


def runs(errors: dict[int, list[float]]) -> Table:
    """A table of runs, two for each held-out block: one stuck, which must not count."""
    return Table(
        [
            {"n_components": K, "block": block, "test_error": e, "train_loss": loss, "dissx": 0.0}
            for K, values in errors.items()
            for block, error in enumerate(values)
            for e, loss in [(error, 0.1), (0.05, 0.2)]
        ]
    )


def suggested_k(table: Table) -> Any:
    return choose_n_components(table).value


def test_k_is_the_smallest_that_is_hardly_above_the_lowest():
    errors = {1: [0.9, 0.7], 2: [0.5, 0.3], 3: [0.31, 0.11], 4: [0.3, 0.1], 5: [0.32, 0.12]}
    assert suggested_k(runs(errors)) == 3  # an excess of 0.01, range 0.6
    errors[3] = [0.33, 0.13]
    assert suggested_k(runs(errors)) == 4  # 0.03 in every block
    errors[3] = [0.36, 0.11]
    assert suggested_k(runs(errors)) == 4  # 0.06 and 0.01: 0.035 ± 0.025
    errors[3] = [0.37, 0.09]
    assert suggested_k(runs(errors)) == 3  # 0.07 and −0.01: 0.03 ± 0.04


def by_what_is_predicted(shares: dict[int, list[float]]) -> Table:
    """A table of runs, two for each held-out block, one of them stuck; errors say 1 motif."""
    return Table(
        [
            {"n_components": K, "block": block, "train_loss": loss, "dissx": 0.0, "predicted": p}
            | {"test_error": 0.5 + K / 10}
            for K, values in shares.items()
            for block, share in enumerate(values)
            for p, loss in [(share, 0.1), (0.9, 0.2)]
        ]
    )


def test_k_is_the_least_beyond_which_motifs_are_not_worth_it():
    weak = {1: [0.004, 0.006], 2: [0.008, 0.01], 3: [0.012, 0.014], 4: [0.011, 0.011]}
    assert suggested_k(by_what_is_predicted(weak)) == 3
    # Of warped motifs every variant predicts a little more, in every block.
    warped = {1: [0.18] * 2, 2: [0.3] * 2, 3: [0.446] * 2, 4: [0.468] * 2, 5: [0.49] * 2}
    assert suggested_k(by_what_is_predicted(warped)) == 3
    # A gain of one block alone is none.
    chance = {1: [0.1, 0.1], 2: [0.1, 0.2]}
    assert suggested_k(by_what_is_predicted(chance)) == 1
    # Two together may be worth it where one is not.
    later = {1: [0.2] * 2, 2: [0.22] * 2, 3: [0.6] * 2}
    assert suggested_k(by_what_is_predicted(later)) == 3


def test_k_counts_a_small_motif_where_it_is_what_is_left():
    clean = {1: [0.92, 0.86], 2: [0.994, 0.992], 3: [0.992, 0.991]}
    assert suggested_k(by_what_is_predicted(clean)) == 2
    # Each of three small ones takes its part of what is left.
    small = {1: [0.7] * 2, 2: [0.8] * 2, 3: [0.9] * 2, 4: [0.998] * 2, 5: [0.9985] * 2}
    assert suggested_k(by_what_is_predicted(small)) == 4
    # Half of a trifle is a trifle.
    exact = {1: [0.45] * 2, 2: [0.998] * 2, 3: [0.9995] * 2}
    assert suggested_k(by_what_is_predicted(exact)) == 2
    # Without noise variants of warped motifs take a third of what is left, each.
    warped = {1: [0.25] * 2, 2: [0.55] * 2, 3: [0.885] * 2, 4: [0.92] * 2, 5: [0.94] * 2}
    assert suggested_k(by_what_is_predicted(warped | {6: [0.98] * 2})) == 3
    # With noise as much is a variant of the others.
    noisy = {1: [0.25] * 2, 2: [0.5] * 2, 3: [0.56] * 2}
    assert suggested_k(by_what_is_predicted(noisy)) == 2


# Of the songbird's neurons: most of it is of the second block, whatever the number of motifs.
UNPROVEN = {
    1: [0.0173, 0.0570, 0.0054, 0.0052],
    2: [0.0297, 0.0575, 0.0080, 0.0055],
    3: [0.0164, 0.0686, 0.0148, 0.0034],
    4: [0.0166, 0.0778, 0.0127, 0.0019],
    5: [0.0228, 0.0455, 0.0205, 0.0047],
}


def with_errors(shares: dict[int, list[float]], errors: dict[int, float]) -> Table:
    records = by_what_is_predicted(shares).records
    return Table([record | {"test_error": errors[record["n_components"]]} for record in records])


def test_where_what_is_predicted_is_chance_the_test_error_decides():
    table = with_errors(UNPROVEN, {1: 0.94, 2: 0.92, 3: 0.90, 4: 0.91, 5: 0.91})
    found = Sweep(table, Table([]))
    assert found.suggested == {"n_components": 3}
    assert found.evidence == {"n_components": "test_error"}
    assert "3 by the test error" in found.notes[0]
    assert "0.027 ± 0.017 with 4 motifs), and suggests 1" in found.notes[0]
    assert "n_components by test_error" in repr(found)
    # It asks for more motifs, never for fewer.
    shares = {1: UNPROVEN[1], 2: [3 * value for value in UNPROVEN[1]], 3: [0.01, 0.3, 0.01, 0.0]}
    fewer = Sweep(with_errors(shares, {1: 0.9, 2: 0.95, 3: 1.0}), Table([]))
    assert fewer.suggested == {"n_components": 2}
    assert fewer.evidence == {"n_components": "predicted"}
    assert "more motifs than 2 may be as good" in fewer.notes[0]


def test_little_that_is_predicted_decides_if_it_is_proven():
    """Of spikes, 15 % of them in sequences: half as much as of the songbird, but of every block."""
    little = {1: [0.003, 0.004], 2: [0.008, 0.01], 3: [0.012, 0.018], 4: [0.012, 0.02]}
    table = with_errors({K: 2 * v for K, v in little.items()}, {1: 0.9, 2: 0.9, 3: 0.9, 4: 0.8})
    found = Sweep(table, Table([]))
    assert found.suggested == {"n_components": 3}
    assert found.evidence == {"n_components": "predicted"}
    assert not found.notes


def test_what_is_predicted_of_a_part_of_the_recording_decides_if_more_motifs_are_not_worth_it():
    """Over the blocks it is not proven, but it says clearly that two are enough."""
    part = {1: [0.2, 0.2, 0.0, 0.0], 2: [0.4, 0.4, 0.0, 0.0], 3: [0.41, 0.4, 0.0, 0.01]}
    table = with_errors(part, {1: 0.9, 2: 0.8, 3: 0.7})
    assert choose_n_components(table).measure == "predicted"
    assert suggested_k(table) == 2
    # Nor is a single block a reason to doubt.
    single = with_errors({K: values[:1] for K, values in part.items()}, {1: 0.9, 2: 0.8, 3: 0.7})
    assert suggested_k(single) == 2


def judged(significant):
    """A table in which 3 motifs predict best; significant ones in each of 4 blocks, for each K."""
    errors = {1: 0.9, 2: 0.6, 3: 0.3, 4: 0.3}
    return Table(
        [
            {"n_components": K, "seed": block, "block": block, "train_loss": 0.5, "n_tested": K}
            | {"test_error": errors[K], "dissx": 0.1, "n_significant": counts[block]}
            for K, counts in significant.items()
            for block in range(4)
        ]
    )


def test_no_motifs_are_suggested_where_hardly_any_is_significant():
    nothing = judged({1: [0, 0, 0, 0], 2: [0, 1, 0, 0], 3: [0, 1, 0, 0], 4: [0, 1, 0, 0]})
    assert suggested_k(nothing) == 0
    assert "motifold.discover" in range_notes(nothing, {"n_components": 0})[0]
    some = judged({1: [1, 0, 0, 0], 2: [0, 1, 1, 0], 3: [0, 1, 1, 0], 4: [0, 1, 0, 0]})
    assert suggested_k(some) == 3
    untested = Table([record | {"n_tested": 0} for record in nothing])
    assert suggested_k(untested) == 3


def test_significant_motifs_beyond_those_that_predict_are_told():
    more = judged({1: [1] * 4, 2: [2] * 4, 3: [3] * 4, 4: [4] * 4})
    told = range_notes(more, {"n_components": 3})
    assert len(told) == 1
    assert "with 4 motifs 4.0 are significant" in told[0]
    assert not range_notes(judged({K: [min(K, 3)] * 4 for K in (1, 2, 3, 4)}), {"n_components": 3})


def test_k_without_test_errors_is_where_seeds_agree():
    records = [
        {"n_components": K, "block": 0, "test_error": np.nan, "train_loss": 0.0, "dissx": d}
        for K, d in [(1, 0.0), (2, 0.2), (3, 0.01), (4, 0.3)]
    ]
    assert suggested_k(Table(records)) == 3


def test_crossover_between_two_weights():
    weights = [0.0, 1e-4, 1e-3, 1e-2, 1e-1]
    losses = [0.1, 0.1, 0.2, 0.6, 0.7]
    costs = [9.0, 5.0, 3.0, 0.5, 0.0]
    table = Table(
        [
            {"x_ortho": w, "loss": np.sqrt(a), "x_ortho_cost": c, "train_loss": 0.0}
            for w, a, c in zip(weights, losses, costs, strict=True)
        ]
    )
    crossover = find_crossover(table)
    np.testing.assert_allclose(crossover.reconstruction, [0, 1 / 6, 5 / 6, 1])
    np.testing.assert_allclose(crossover.x_ortho, [1, 0.6, 0.1, 0])
    # Between 1e-3 and 1e-2 the difference rises from −13/30 to 22/30: crossed at 13/35 of it.
    assert crossover.crossing == pytest.approx(10 ** (-3 + 13 / 35))
    assert crossover.suggested == 1e-3


def test_lags_that_hold_the_longest_motifs():
    rows = [
        (10, 0, 9, 0.6),
        (20, 0, 12, 0.6),
        (20, 1, 20, 0.01),
        (40, 0, 14, 0.7),
        (40, 1, 11, 0.3),
    ]
    table = Table(
        [
            {"n_lags": L, "seed": 0, "motif": m, "onset": 0, "length": length, "share": share}
            for L, m, length, share in rows
        ]
    )
    assert choose_n_lags(table, table).value == 20


def predicted_by(n_lags: dict[int, list[float]], **more: Any) -> Table:
    return Table(
        [
            {"n_components": 2, "n_lags": L, "block": block, "train_loss": 0.5} | more
            | {"test_error": 0.5, "predicted": value}
            for L, values in n_lags.items()
            for block, value in enumerate(values)
        ]
    )  # fmt: skip


def test_lags_are_the_least_that_predict_as_much_as_the_best():
    nearly = {5: [0.02, 0.03], 10: [0.08, 0.08], 20: [0.096, 0.095], 40: [0.1, 0.1]}
    table = predicted_by(nearly)
    assert choose_n_lags(table, Table([])).value == 20
    assert range_notes(table, {"n_lags": 20}) == []
    clearly = predicted_by(nearly | {20: [0.08, 0.085]})
    assert choose_n_lags(clearly, Table([])).value == 40
    assert (
        "40 is the longest tried; motifs may be longer" in range_notes(clearly, {"n_lags": 40})[0]
    )


def test_lags_that_predict_nothing_are_no_answer():
    table = predicted_by({10: [0.001, -0.001], 20: [0.0005, 0.0015], 40: [0.0, 0.001]})
    assert choose_n_lags(table, Table([])).value is None
    assert "no length tried predicts" in range_notes(table, {"n_lags": None})[0]


def test_what_is_predicted_does_not_count_constant_rates():
    """A model that is right but for a constant of each feature and a factor predicts all."""
    X = np.random.default_rng(0).random((50, 4))
    halves = FoldPrediction(X, lambda a, b: 3 * X[a:b] + [0, 1, 5, 9], np.ones((50, 1), bool))
    assert halves.predicted() == pytest.approx(1.0)
    other = np.random.default_rng(1).random((50, 4))
    assert abs(FoldPrediction(X, lambda a, b: other[a:b], np.ones((50, 1), bool)).predicted()) < 0.1
    silent = FoldPrediction(X, lambda a, b: np.zeros((b - a, 4)), np.ones((50, 1), bool))
    assert silent.predicted() == 0.0


def test_what_is_predicted_is_of_all_features_alike():
    """One of four is a hundred times as loud; and one that does not vary is none of them."""
    X = np.random.default_rng(0).random((50, 4)) * [100, 1, 1, 1]
    every = np.ones((50, 1), bool)
    loud = FoldPrediction(X, lambda a, b: X[a:b] * [1, 0, 0, 0], every)
    assert loud.predicted() == pytest.approx(1 / 4)
    X[:, 3] = 7.1
    assert loud.predicted() == pytest.approx(1 / 3)
    constant = FoldPrediction(np.full((50, 4), 0.1), lambda a, b: X[a:b], every)
    assert np.isnan(constant.predicted())


def spikes(seed: int, strength: float) -> np.ndarray:
    """Poisson counts of 40 neurons, two sequences of 20 bins over their rates."""
    rng = np.random.default_rng(seed)
    T, N, K, L = 2000, 40, 2, 20
    rates = np.tile(rng.gamma(1.0, 0.03, N), (T, 1))
    for k in range(K):
        peaks, lags = np.sort(rng.uniform(0, L - 1, N // K)), np.arange(L)[:, None]
        motif = np.zeros((L, N))
        motif[:, k * 20 : (k + 1) * 20] = strength * np.exp(-0.5 * (lags - peaks) ** 2)
        for start in np.flatnonzero(rng.random(T - L) < 0.02):
            rates[start : start + L] += motif
    return rng.poisson(rates).astype(float)


@pytest.mark.slow
def test_lags_on_spikes_are_not_the_longest_tried():
    """By extent they would be: noise fills the window. (docs/how-to/choose.md has more of them.)"""
    quick = {"n_seeds": 4, "n_init": 2, "tol": 1e-2, "n_null": 0, "n_jobs": 1, "progress": False}
    found = motifold.sweep(spikes(1, 0.6), n_components=2, n_lags=[10, 20, 30, 60], **quick)
    assert found.suggested["n_lags"] in (20, 30)
    assert found.notes == []
    nothing = motifold.sweep(spikes(1, 0.0), n_components=2, n_lags=[10, 30], **quick)
    assert nothing.suggested["n_lags"] is None


@pytest.mark.slow
def test_warped_motifs_are_not_taken_for_more():
    rng = np.random.default_rng(2)
    T, N, L = 1200, 30, 16
    lags = np.arange(L)[:, None]
    X = 0.2 * np.abs(rng.standard_normal((T, N)))
    for k in range(2):
        centres = rng.uniform(-5, 5, N // 2)
        starts = np.arange(0, T - 3 * L, 41)
        # Each at times of its own: at one delay from each other the two would be one motif.
        for start in starts + rng.integers(0, 25, len(starts)):
            middle, speed = (L - 1) / 2, rng.uniform(0.8, 1.25)
            shown = np.exp(-0.5 * (lags - middle - speed * centres) ** 2)
            X[start : start + L, k * 15 : (k + 1) * 15] += rng.uniform(0.5, 1.5) * shown
    found = motifold.sweep(
        X, n_components=range(1, 6), n_lags=L, n_seeds=4, n_null=0, n_jobs=1, progress=False
    )
    assert found.suggested == {"n_components": 2}
