"""The steps of a preparation, against slow and obvious twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse

from motifold.io import Recording
from motifold.prepare import Preparation, ScaleFeatures, Smooth, SquareRoot, SubtractBaseline

STEPS = {
    "smooth": Smooth(1.5),
    "causal": Smooth(1.5, causal=True),
    "long": Smooth(30.0),
    "std": ScaleFeatures(),
    "mean-variance": ScaleFeatures(by="mean-variance"),
    "max": ScaleFeatures(by="max"),
    "root": SquareRoot(),
    "baseline": SubtractBaseline(),
    "all": Preparation([SubtractBaseline(0.2), SquareRoot(), Smooth(1.0), ScaleFeatures()]),
}
each = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)


def counts(seed: int = 0, T: int = 40, N: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).poisson(0.7, (T, N)).astype(float)


def with_gaps(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[10:20, 2] = np.nan
    return X


def smoothed_slowly(X, width, causal, lengths):
    """By its definition, entry by entry."""
    done, edges = np.full(X.shape, np.nan), np.r_[0, np.cumsum(lengths)]
    for t, n in np.ndindex(*X.shape):
        if np.isnan(X[t, n]):
            continue
        i = np.searchsorted(edges, t, side="right")
        total = mass = 0.0
        for s in range(edges[i - 1], edges[i]):
            if np.isnan(X[s, n]) or abs(s - t) > np.ceil(4 * width) or (causal and s > t):
                continue
            weight = np.exp(-0.5 * ((s - t) / width) ** 2)
            total, mass = total + weight * X[s, n], mass + weight
        done[t, n] = total / mass
    return done


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [0.6, 2.5, 50.0])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_smoothing_is_its_definition(causal, width, gaps, sparse):
    X = with_gaps(counts()) if gaps else counts()
    expected = smoothed_slowly(X, width, causal, [25, 15])
    given = csr_array(X) if sparse else X
    step = Smooth(width / 20, rate=20, causal=causal)
    found = step.fit_transform(given, lengths=[25, 15])
    assert issparse(found) == sparse
    found = found.toarray() if sparse else found
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    by_ids = step.transform(X, segments=[0] * 25 + [1] * 15)
    np.testing.assert_allclose(by_ids, expected, rtol=1e-10, atol=1e-12)
    first, second = step.transform([X[:25], X[25:]])
    np.testing.assert_array_equal(np.concatenate([first, second]), by_ids)


def test_a_constant_stays_one_and_causal_sees_no_future():
    X = np.full((30, 2), 3.0)
    np.testing.assert_allclose(Smooth(4.0).fit_transform(X), X)
    X[20:] = 9.0
    found = Smooth(4.0, causal=True).fit_transform(X)
    np.testing.assert_allclose(found[:20], 3.0)
    assert found[20, 0] > 3.0


def test_scales_are_what_they_are_called():
    X = with_gaps(counts(T=200)) + 1
    std, mean = np.nanstd(X, axis=0), np.nanmean(X, axis=0)
    for by, expected in {
        "std": std,
        "mean-variance": np.sqrt(mean**2 + std**2),
        "max": np.nanmax(X, axis=0),
    }.items():
        step = ScaleFeatures(by=by).fit(X)
        np.testing.assert_allclose(step.scale_, expected)
        np.testing.assert_allclose(step.transform(X), X / expected)
    power = np.nanmean(np.square(ScaleFeatures(by="mean-variance").fit_transform(X)), axis=0)
    np.testing.assert_allclose(power, 1.0)


def test_what_hardly_varies_is_not_blown_up():
    X = counts(T=400)
    X[:, 0] = 0
    X[7, 0] = 1e-6
    X[:, 1] = 0
    step = ScaleFeatures().fit(X)
    assert step.scale_[0] == step.scale_[1] == pytest.approx(0.1 * np.median(step.scale_[2:]), 0.2)
    exact = ScaleFeatures(least=0).fit(X)
    np.testing.assert_allclose(exact.scale_[[0, 2]], X.std(axis=0)[[0, 2]])
    assert exact.scale_[1] == 1.0
    assert ScaleFeatures().fit(np.ones((4, 2))).scale_.tolist() == [1.0, 1.0]


def test_the_baseline_is_a_quantile_and_nothing_falls_below_zero():
    X = with_gaps(np.random.default_rng(0).normal(size=(101, 4)))
    step = SubtractBaseline(0.3).fit(X)
    np.testing.assert_allclose(step.baseline_, np.nanquantile(X, 0.3, axis=0))
    found = step.transform(X)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X))
    np.testing.assert_allclose(np.nanmin(found), 0)
    with pytest.raises(ValueError, match="baseline of a feature is negative"):
        step.transform(csr_array(X))
    nothing = np.full((5, 2), np.nan)
    assert SubtractBaseline().fit(nothing).baseline_.tolist() == [0.0, 0.0]


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_gaps_stay_and_nothing_is_changed(step, dtype):
    X = with_gaps(counts()).astype(dtype)
    before = X.copy()
    X.flags.writeable = False
    found = step.fit_transform(X)
    assert found.dtype == dtype
    assert not np.shares_memory(found, X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X))
    assert np.nanmin(found) >= 0
    double = step.fit_transform(before.astype(np.float64))
    np.testing.assert_allclose(found, double, rtol=1e-5, atol=1e-6)


@each
@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_data_stays_sparse(step, kind):
    X = with_gaps(counts(T=60) * (counts(1, T=60) > 1))
    given = kind(X)
    before = given.copy()
    found = step.fit_transform(given)
    assert type(found) is kind
    expected = step.fit_transform(X)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(given.toarray(), before.toarray())


@each
def test_a_masked_array_hides_entries(step):
    X = with_gaps(counts())
    masked = np.ma.array(np.nan_to_num(X, nan=99.0), mask=np.isnan(X))
    np.testing.assert_allclose(step.fit_transform(masked), step.fit_transform(X))


def test_new_data_is_scaled_by_what_was_learnt():
    X, new = counts(0), 10 * counts(1)
    preparation = Preparation([SquareRoot(), ScaleFeatures()]).fit(X)
    np.testing.assert_allclose(preparation.transform(new), np.sqrt(new) / np.sqrt(X).std(axis=0))


def test_names_of_features_come_out_again():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(counts(), columns=list("abcde"))
    step = Preparation([SquareRoot(), Smooth(2.0)]).set_output(transform="pandas").fit(frame)
    assert step.get_feature_names_out().tolist() == list("abcde")
    assert step.transform(frame).columns.tolist() == list("abcde")


def test_mistakes_are_told():
    X = counts()
    X[3, 2] = -1
    with pytest.raises(ValueError, match=r"SquareRoot: the first is -1, at row 3, column 2"):
        SquareRoot().fit(X)
    with pytest.warns(UserWarning, match="0.1 time bins, which changes next to nothing"):
        Smooth(0.001, rate=100).fit(X)
    with pytest.raises(ValueError, match="list of segments already"):
        Smooth(1.0).fit([X, X], lengths=[40, 40])
    with pytest.raises(ValueError, match="lengths must add up"):
        Smooth(1.0).fit(X, lengths=[10, 10])
    with pytest.raises(ValueError, match="seconds"):
        Smooth(-1.0).fit(X)
    with pytest.raises(ValueError, match="by"):
        ScaleFeatures(by="median").fit(X)
    with pytest.raises(TypeError, match="no step of a preparation"):
        Preparation([str]).fit(X)


def test_a_recording_would_lose_its_segments():
    recording = Recording(np.ones((30, 3)), "made up", lengths=(10, 20))
    with pytest.raises(TypeError, match=r"recording\.X, and recording\.lengths"):
        Smooth(2.0).fit(recording)
