"""One run of a sweep: what its test errors see, and what they must not see."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.data import Segments
from motifold.findings.overlap import activations_of
from motifold.findings.splits import BlockTimeSeriesSplit, mark_junctions, observed_entries
from motifold.findings.trial import Settings, SweepData, fold_error, run_trials

L = 6


@pytest.fixture
def planted() -> tuple[np.ndarray, np.ndarray]:
    """Clean data of two motifs, each feature at one lag; and the motifs."""
    rng = np.random.default_rng(0)
    motifs = np.zeros((2, L, 16))
    for n in range(16):
        motifs[n % 2, rng.integers(L), n] = 1.0
    H = rng.random((200, 2)) * (rng.random((200, 2)) < 0.05)
    X = np.zeros((200, 16))
    for lag in range(L):
        X[lag:] += H[: 200 - lag] @ motifs[:, lag]
    return X, motifs


def data_of(X: np.ndarray) -> SweepData:
    return SweepData.from_arrays([X])


def error_of(X: np.ndarray, motifs: np.ndarray, block: int = 1) -> float:
    model = CNMF(2, L, tol=1e-5)
    model.components_, model.scales_ = motifs, np.ones(2)
    _, test = list(BlockTimeSeriesSplit(4, gap=L).split(X))[block]
    return fold_error(model, data_of(X), test, np.random.default_rng(0))


def test_true_motifs_predict_a_block_and_others_do_not(planted):
    X, motifs = planted
    for block in range(4):
        assert error_of(X, motifs, block) < 0.01
    wrong = np.roll(motifs, 1, axis=2)  # each feature has its neighbour's place
    assert error_of(X, wrong) > 0.5


def test_activations_are_found_as_precisely_as_by_transform(planted):
    X, _ = planted
    model = CNMF(2, L, random_state=0, acceleration=None, tol=0.05, l1_H=0.01, l2_W=0.01).fit(X)
    found = activations_of(X, model.components_, model, scales=model.scales_, lengths=[120, 80])
    np.testing.assert_array_equal(found, model.transform(X, lengths=[120, 80]))
    mask = np.random.default_rng(1).random(X.shape) < 0.9
    found = activations_of(X, model.components_, model, scales=model.scales_, mask=mask)
    np.testing.assert_array_equal(found, model.transform(X, mask=mask))


def test_a_silent_fold_is_not_measured(planted):
    X, motifs = planted
    silent = X.copy()
    silent[50:100] = 0
    assert np.isnan(error_of(silent, motifs))


def test_shares_are_those_of_the_datas_power(planted):
    X, _ = planted
    mask = np.random.default_rng(1).random(X.shape) < 0.9
    data = SweepData.from_arrays([X[:120], X[120:]], [mask[:120], mask[120:]])
    parameters = {"n_components": 2, "n_lags": L, "max_iter": 20, "tol": 0.0}
    run = run_trials(data, parameters, [0], Settings(None, 4, 0, 0.05))[0]
    model = CNMF(**parameters, random_state=0, n_jobs=1).fit(X, lengths=[120, 80], mask=mask)
    parts = list(model.reconstruct_components())
    X_hat = sum(parts)
    expected = [((2 * X - X_hat) * part)[mask].sum() / (X[mask] ** 2).sum() for part in parts]
    np.testing.assert_allclose([motif["share"] for motif in run.motifs], expected)


def test_only_the_block_itself_counts(planted):
    X, motifs = planted
    changed = X.copy()
    changed[: 50 - L] = 5.0  # far from the block of rows 50 to 99
    changed[100 + L :] = 5.0
    assert error_of(changed, motifs) == error_of(X, motifs)
    assert Segments([12, 11]).inner(L).tolist() == (
        [False] * 5 + [True] * 2 + [False] * 5 + [False] * 5 + [True] + [False] * 5
    )


def test_significance_is_tested_on_the_held_out_block(planted, monkeypatch):
    X, _ = planted
    seen = []
    from motifold.findings import trial

    original = trial.significance
    monkeypatch.setattr(
        trial, "significance", lambda X, *a, **b: seen.append(X.copy()) or original(X, *a, **b)
    )
    for seed in range(5):
        (outcome,) = run_trials(
            data_of(X), {"n_components": 2, "n_lags": L}, [seed], Settings("blocks", 4, 50, 0.05)
        )
        block = seed % 4
        assert outcome.measures["block"] == block
        np.testing.assert_array_equal(seen[-1], X[50 * block : 50 * (block + 1)])


def test_a_fit_that_failed_is_a_row_without_test_error(planted, monkeypatch):
    X, _ = planted
    original = CNMF.fit

    def broken(self, data, *args, **options):
        original(self, data, *args, **options)
        if len(data) < len(X):
            self.activations_[3] = np.nan
        return self

    monkeypatch.setattr(CNMF, "fit", broken)
    parameters = {"n_components": 2, "n_lags": L}
    measures = run_trials(data_of(X), parameters, [0], Settings("blocks", 4, 50, 0.05))[0].measures
    assert np.isnan(measures["test_error"])
    assert measures["n_tested"] == 0
    assert measures["loss"] < 1  # of the fit of all data, which did not fail


def test_masked_entries_are_those_measured(planted):
    X, _ = planted
    parameters = {"n_components": 2, "n_lags": L, "max_iter": 30, "tol": 0.0}
    outcome = run_trials(data_of(X), parameters, [2], Settings("entries", 4, 0, 0.05))[0]
    train, _ = list(BlockTimeSeriesSplit(4, gap=L).split(X))[2]
    mask = observed_entries((len(train), 16), 0.1, np.random.default_rng([2, 4]))
    ids = mark_junctions(train)
    model = CNMF(**parameters, random_state=2, n_jobs=1)
    # What is hidden is not seen: any other values there give the same fit.
    model.fit(np.where(mask, X[train], 7.0), segments=ids, mask=mask)
    residual = (X[train] - model.inverse_transform(model.activations_, segments=ids))[~mask]
    expected = np.linalg.norm(residual) / np.linalg.norm(X[train][~mask])
    assert outcome.measures["test_error"] == pytest.approx(expected, rel=1e-6)
