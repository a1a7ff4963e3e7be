"""What takes X takes it sparse: the findings are those of the same numbers in an array."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.model_selection import cross_val_score

from motifold import CNMF, explained_power, find_consensus, sweep
from motifold.datasets import make_sequences
from motifold.findings import (
    BlockTimeSeriesSplit,
    event_triggered_average,
    find_events,
    sequenciness,
    significance,
)
from motifold.findings.decomposition import Contributions, Decomposition
from motifold.findings.order import correlation_of
from motifold.findings.rows import RowsOnDemand
from motifold.findings.sequential import _scattered

K, L = 2, 6
LENGTHS = [250, 150]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rates = make_sequences(400, 10, K, L, activation_probability=0.05, random_state=0).X
    return np.random.default_rng(1).poisson(0.6 * rates).astype(float)


@pytest.fixture(scope="module")
def model(X) -> CNMF:
    return CNMF(K, L, random_state=0, n_init=3).fit(X, lengths=LENGTHS)


@pytest.fixture
def never_whole(monkeypatch):
    """Whoever makes all of a sparse matrix dense is found out."""
    toarray = sparse.csr_array.toarray

    def guarded(self, *args, **kwargs):
        assert self.shape[0] < 400, "the whole recording was made dense"
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", guarded)


def shapes(X):
    """The same recording in three kinds of sparse: stacked twice, and as a list of segments."""
    layout = {"lengths": LENGTHS}
    parts = [sparse.csr_matrix(X[:250]), sparse.csc_array(X[250:])]
    return [(sparse.csr_array(X), layout), (sparse.coo_array(X), layout), (parts, {})]


def test_significance(X, model):
    expected = significance(X, model, n_null=100, random_state=0, lengths=LENGTHS)
    for given, layout in shapes(X):
        found = significance(given, model, n_null=100, random_state=0, **layout)
        np.testing.assert_allclose(found.statistic, expected.statistic)
        np.testing.assert_allclose(found.null, expected.null)
        np.testing.assert_array_equal(found.p_value, expected.p_value)


def test_explained_power(model, X):
    expected = explained_power(model, X, lengths=LENGTHS)
    for given, layout in shapes(X):
        np.testing.assert_allclose(explained_power(model, given, **layout), expected, rtol=1e-5)


@pytest.mark.usefixtures("never_whole")
def test_a_recording_taken_apart(X, model):
    dense = Decomposition.of(model, X)
    fit = Decomposition.of(model, sparse.csr_array(X))
    assert fit.power.loss == pytest.approx(dense.power.loss)
    np.testing.assert_allclose(fit.power.shares, dense.power.shares)
    np.testing.assert_array_equal(fit.reference(30, 60), X[30:60])
    np.testing.assert_array_equal(fit.counted, dense.counted)
    assert fit.busiest(100) == dense.busiest(100)
    np.testing.assert_array_equal(
        Contributions(fit).block(0, 50)[0], Contributions(dense).block(0, 50)[0]
    )
    with pytest.raises(ValueError, match="must have shape"):
        Decomposition.of(model, sparse.csr_array(X[1:]))


def test_the_correlation_of_features(X, model):
    dense, entries = Decomposition.of(model, X), Decomposition.of(model, sparse.csr_array(X))
    assert correlation_of(entries) == correlation_of(dense)


def test_a_recording_with_missing_entries_taken_apart(X, model):
    mask = np.random.default_rng(0).random(X.shape) > 0.3
    mask[100:130] = False
    dense = Decomposition.of(model, np.where(mask, X, np.nan))
    zeroed = sparse.csr_array(np.where(mask, X, 0))
    with_nan = sparse.csr_array(np.where(mask, X, np.nan))
    for given in (RowsOnDemand(zeroed, mask), with_nan):
        fit = Decomposition.of(model, given)
        assert fit.power.loss == pytest.approx(dense.power.loss)
        np.testing.assert_allclose(fit.power.shares, dense.power.shares, atol=1e-12)
        np.testing.assert_allclose(fit.power.overlaps, dense.power.overlaps, atol=1e-12)
        np.testing.assert_array_equal(fit.reference(90, 140), dense.reference(90, 140))
        np.testing.assert_array_equal(fit.known, dense.known)


@pytest.mark.usefixtures("never_whole")
def test_an_average_around_events(X, model):
    events = find_events(model)
    signal = X - 0.5  # whatever was recorded at the same time
    expected = event_triggered_average(signal, events, (-5, 5), rate=1.0, lengths=LENGTHS)
    given, layout = sparse.csr_array(signal), {"lengths": LENGTHS}
    found = event_triggered_average(given, events, (-5, 5), rate=1.0, **layout)
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.standard_error, expected.standard_error)
    parts = [given[:250], signal[250:]]
    np.testing.assert_allclose(
        event_triggered_average(parts, events, (-5, 5), rate=1.0).mean, expected.mean
    )


def test_consensus(X, model):
    fits = [CNMF(K, L, random_state=seed, tol=1e-2).fit(X, lengths=LENGTHS) for seed in range(3)]
    consensus = find_consensus(fits)
    dense = consensus.fit(X, model, lengths=LENGTHS)
    found = consensus.fit(sparse.csr_array(X), model, lengths=LENGTHS)
    np.testing.assert_allclose(found.components_, dense.components_, atol=1e-6)


@pytest.mark.parametrize("test", ["blocks", "entries", None])
@pytest.mark.parametrize("masked", [False, True])
def test_sweep(X, test, masked):
    options = {"n_components": [1, 2], "n_lags": L, "n_seeds": 2, "tol": 1e-2, "n_null": 20}
    options |= {"test": test, "n_blocks": 3, "lengths": LENGTHS, "n_jobs": 1, "progress": False}
    if masked:
        options["mask"] = np.random.default_rng(0).random(X.shape) > 0.1
    expected, found = sweep(X, **options), sweep(sparse.csr_array(X), **options)
    assert found.table.columns == expected.table.columns
    for name in found.table.columns:
        np.testing.assert_allclose(found.table[name], expected.table[name], rtol=1e-4, atol=1e-8)
    for name in ("onset", "length", "share"):
        np.testing.assert_allclose(found.motifs[name], expected.motifs[name], rtol=1e-4, atol=1e-8)
    assert found.suggested == expected.suggested


def test_a_sweep_goes_on_with_the_same_entries_in_any_format(X, tmp_path):
    options = {"n_components": 1, "n_lags": L, "test": None, "n_null": 0, "max_iter": 5}
    options |= {"n_jobs": 2, "progress": False, "tol": 0, "path": tmp_path / "sweep.jsonl"}
    sweep(sparse.csr_array(X), n_seeds=1, **options)
    size = options["path"].stat().st_size
    sweep(sparse.coo_array(X), n_seeds=1, **options)
    assert options["path"].stat().st_size == size
    other = X.copy()
    other[np.nonzero(X)[0][0]] *= 2
    with pytest.raises(ValueError, match="another data"):
        sweep(sparse.csr_array(other), n_seeds=1, **options)


def test_splits_and_scikit_learns_tools(X):
    cv = BlockTimeSeriesSplit(3, gap=L)
    given = sparse.csr_array(X)
    for one, two in zip(cv.split(given), cv.split(X), strict=True):
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(cv.segments(given), cv.segments(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = CNMF(1, L, tol=1e-1, random_state=0)
        model.set_fit_request(segments=True).set_score_request(segments=True)
        scores = [
            cross_val_score(model, data, cv=cv, params={"segments": cv.segments(X)})
            for data in (X, given)
        ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5)


def test_sequenciness(X):
    model = CNMF(K, L, tol=1e-2)
    result = sequenciness(model, sparse.csr_array(X), n_shuffles=2, random_state=0, lengths=LENGTHS)
    dense = sequenciness(model, X, n_shuffles=2, random_state=0, lengths=LENGTHS)
    assert result.explained == pytest.approx(dense.explained, rel=1e-6)
    for name in ("explained_columns", "explained_features"):  # of other shuffles of the same kind
        assert getattr(result, name).mean() == pytest.approx(getattr(dense, name).mean(), abs=0.06)


def test_each_feature_is_scattered_by_itself(X):
    """The same numbers in each column, at other times, and not the same ones for all."""
    scattered = _scattered(sparse.csr_array(X), np.random.default_rng(0)).toarray()
    np.testing.assert_array_equal(np.sort(scattered, axis=0), np.sort(X, axis=0))
    both = (X[:, :, None] > 0) & (X[:, None, :] > 0)
    after = (scattered[:, :, None] > 0) & (scattered[:, None, :] > 0)
    together, by_chance = (np.triu(part.sum(axis=0), 1).sum() for part in (both, after))
    assert by_chance < 0.7 * together
    assert _scattered(sparse.csr_array((5, 3)), np.random.default_rng(0)).nnz == 0


@pytest.mark.parametrize("background", [False, True])
def test_findings_of_counts_fitted_by_kullback_leibler(X, background):
    """P-values, events and held-out deviances are those of the array."""
    settings = {"beta_loss": "kullback-leibler", "background": background, "tol": 0}
    model = CNMF(K, L, max_iter=40, random_state=0, **settings).fit(X, lengths=LENGTHS)
    options = {"n_components": [1, 2], "n_lags": L, "n_seeds": 2, "max_iter": 5, "n_jobs": 1}

    def events_of(given, layout):
        found = find_events(model, X=given, fdr=0.1, **layout)
        return np.column_stack([found["motif"], found["bin"]])

    def deviances_of(given, layout):
        found = sweep(given, **options, **settings, n_null=20, progress=False, **layout)
        return found.table["test_error"]

    def significance_of(given, layout):
        return significance(given, model, n_null=50, random_state=0, **layout).p_value

    for finding in (events_of, deviances_of, significance_of):
        expected = finding(X, {"lengths": LENGTHS})
        assert len(expected)
        for given, layout in shapes(X):
            np.testing.assert_allclose(finding(given, layout), expected, rtol=1e-4)
