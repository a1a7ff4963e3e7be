"""Events: peaks by the stated rule; averages around them at any rate."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import skew

from motifold import CNMF
from motifold.findings import (
    Table,
    dissimilarity,
    event_triggered_average,
    find_consensus,
    find_events,
    significance,
    sort_features,
    start_agreement,
)
from motifold.findings.hidden import observed_share


@pytest.fixture
def model() -> CNMF:
    """Two motifs of six lags and two segments of 40 and 30 bins; activations are set by hand."""
    model = CNMF(2, 6, random_state=0, tol=0, max_iter=2)
    model.fit(np.random.default_rng(0).random((70, 3)), lengths=[40, 30])
    model.activations_ = np.zeros((70, 2))
    return model


@pytest.mark.parametrize("ask", [find_events, start_agreement])
def test_data_in_the_place_of_the_model_is_told(ask):
    with pytest.raises(TypeError, match="not of type ndarray: the model comes first"):
        ask(np.ones((20, 3)))


def test_peaks_times_and_segments(model):
    H = model.activations_
    H[[3, 20, 45], 0] = [1.0, 2.0, 1.5]
    H[60, 1] = 0.7
    events = find_events(model, rate=10.0)
    old = ["motif", "segment", "time", "bin", "strength"]
    assert events.columns == [*old, "start", "peak", "observed", "partial"]
    assert [{name: record[name] for name in old} for record in events] == [
        {"motif": 0, "segment": 0, "time": 0.3, "bin": 3, "strength": 1.0},
        {"motif": 0, "segment": 0, "time": 2.0, "bin": 20, "strength": 2.0},
        {"motif": 0, "segment": 1, "time": 0.5, "bin": 45, "strength": 1.5},
        {"motif": 1, "segment": 1, "time": 2.0, "bin": 60, "strength": 0.7},
    ]
    assert events["observed"].tolist() == [1.0] * 4
    assert not events["partial"].any()
    assert events["start"].tolist() == events["time"].tolist()
    strongest = np.square(model.components_).sum(axis=2).argmax(axis=1)
    expected = events["time"] + strongest[events["motif"]] / 10
    np.testing.assert_allclose(events["peak"], expected)
    assert list(events.to_pandas()["bin"]) == [3, 20, 45, 60]


def test_refractory_gap_keeps_the_stronger(model):
    model.activations_[[10, 12, 15], 0] = [1.0, 1.2, 1.1]
    model.components_[:] = 0
    model.components_[:, 0] = 1.0  # as sharp as can be: three bins
    assert find_events(model)["bin"].tolist() == [12, 15]
    model.components_[:] = 1.0  # below one half from lag 4 on
    assert find_events(model)["bin"].tolist() == [12]
    assert find_events(model, refractory=4)["bin"].tolist() == [12]
    assert find_events(model, refractory=4, rate=0.5)["bin"].tolist() == [10, 12, 15]
    # Segments do not shadow each other.
    model.activations_[:] = 0
    model.activations_[[39, 41], 0] = 1.0
    assert find_events(model, refractory=10, partial=True)["bin"].tolist() == [39, 41]


def test_threshold_is_a_share_of_the_typical_strength(model):
    # Σh²/Σh = (1 + 1 + 0.1225) / 2.35 = 0.903: 0.3 of it is 0.27, 0.4 of it is 0.36.
    model.activations_[[2, 12, 22], 0] = [1.0, 1.0, 0.35]
    assert find_events(model)["bin"].tolist() == [2, 12, 22]
    assert find_events(model, threshold=0.4)["bin"].tolist() == [2, 12]
    # A motif cut off by the end may be huge: it does not raise the bar for the others.
    model.activations_[38, 0] = 1000.0
    assert find_events(model)["bin"].tolist() == [2, 12, 22]
    events = find_events(model, partial=True)
    assert events["bin"].tolist() == [2, 12, 22, 38]
    assert events["partial"].tolist() == [False, False, False, True]


def test_no_events_and_other_recordings(model):
    assert len(find_events(model)) == 0
    H = np.zeros((12, 2))
    H[0, 1] = H[11, 1] = 1.0
    assert find_events(model, H)["bin"].tolist() == [0]
    assert find_events(model, H, partial=True)["bin"].tolist() == [0, 11]
    events = find_events(model, [H, H], partial=True)
    assert events["segment"].tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="one column per motif"):
        find_events(model, H[:, :1])
    with pytest.raises(ValueError, match="rate"):
        find_events(model, rate=0)
    with pytest.raises(ValueError, match=r"positive number.*'50Hz'"):
        find_events(model, rate="50Hz")


# --- what rests on little ---------------------------------------------------------------------


def made(T=400, seed=0, gap=()):
    """Two sequences of six lags in ten features, their starts, and a fit of it with a gap."""
    rng = np.random.default_rng(seed)
    X = 0.02 * rng.random((T, 10))
    starts = {0: list(range(10, T - 20, 37)), 1: list(range(25, T - 20, 41))}
    for k, rows in starts.items():
        for t in rows:
            for n in range(5):
                X[t + n, 5 * k + n] += 1.0
    mask = np.ones(X.shape, dtype=bool)
    for a, b in gap:
        mask[a:b] = False
    return X, mask, starts


@pytest.fixture(scope="module")
def with_a_gap():
    X, mask, _ = made(gap=[(100, 112), (200, 203)])
    return X, mask, CNMF(2, 6, random_state=0, n_init=3).fit(X, mask=mask)


def test_the_model_knows_what_was_missing(with_a_gap):
    X, mask, model = with_a_gap
    expected = observed_share(model, mask)
    np.testing.assert_array_equal(model.observed_, expected)
    power = np.square(model.components_.astype(float))
    for t in (0, 97, 105, 199, 398):
        there = power[:, : 400 - t].sum(axis=(1, 2))
        seen = (power[:, : 400 - t] * mask[t : t + 6]).sum(axis=(1, 2))
        np.testing.assert_allclose(model.observed_[t], seen / there, rtol=1e-6)
    assert CNMF(2, 6, random_state=0, max_iter=2, tol=0).fit(X).observed_ is None
    # A second fit of the same object forgets.
    again = CNMF(2, 6, random_state=0, max_iter=2, tol=0).fit(X, mask=mask)
    assert again.fit(X).observed_ is None


def test_an_activation_in_a_gap_is_no_event_and_sets_no_threshold(with_a_gap):
    X, mask, fitted = with_a_gap
    model = deepcopy(fitted)
    before = find_events(model)
    model.activations_[105] = 1e6  # nothing is observed there
    events = find_events(model)
    assert 105 not in events["bin"]
    assert events["bin"].tolist() == before["bin"].tolist()
    # The same by a mask, by NaN in X, and for the same numbers given as another recording's.
    forgetful = deepcopy(model)
    forgetful.observed_ = None
    assert 105 in find_events(forgetful)["bin"]
    for given in (
        find_events(forgetful, mask=mask),
        find_events(forgetful, X=np.where(mask, X, np.nan)),
        find_events(model, model.activations_.copy()),
    ):
        assert given["bin"].tolist() == before["bin"].tolist()
    assert 0.5 <= events["observed"].min() < 1
    with pytest.raises(ValueError, match="mask"):
        find_events(model, mask=mask[:-1])


def test_sorting_and_agreement_leave_gaps_out(with_a_gap):
    _, mask, fitted = with_a_gap
    model = deepcopy(fitted)
    model.components_[1, :, 0] = model.components_[0, :, 0] / 2  # of both, mostly of motif 0
    owner = sort_features(model).motif[0]
    model.activations_[105, 1] = 1e6
    assert sort_features(model).motif[0] == owner == 0
    assert dissimilarity(model, model) == pytest.approx(0, abs=1e-9)
    assert dissimilarity(model, fitted) < 0.2
    model.observed_ = None
    assert sort_features(model).motif[0] == 1
    assert sort_features(model, mask=mask).motif[0] == 0
    assert dissimilarity(model, fitted, mask=mask) < 0.2
    assert dissimilarity(model, fitted) > 0.2


def test_a_motif_of_gaps_alone_takes_no_part_in_a_consensus(with_a_gap):
    fits = [deepcopy(with_a_gap[2]) for _ in range(3)]
    assert find_consensus(fits).found.tolist() == [3, 3]
    for fit in fits:
        fit.activations_[:, 1] = 0
        fit.activations_[105, 1] = 1e6
    assert find_consensus(fits).found.tolist() == [3]


def test_significance_counts_what_is_observed():
    X, mask, _ = made(gap=[(100, 160), (300, 330)])
    motifs = np.zeros((2, 6, 10))
    for n in range(5):
        motifs[0, n, n] = motifs[1, n, 5 + n] = 1.0
    junk = X.copy()
    junk[~mask] = 50 * np.random.default_rng(1).random((~mask).sum())
    junk[310] = np.nan
    found = significance(junk, motifs, mask=mask, n_null=60, random_state=0)
    zero = significance(np.where(mask, X, 0), motifs, mask=mask, n_null=60, random_state=0)
    np.testing.assert_array_equal(found.p_value, zero.p_value)
    np.testing.assert_array_equal(found.null, zero.null)
    masked = np.ma.masked_array(junk, ~mask)
    np.testing.assert_array_equal(
        significance(masked, motifs, n_null=60, random_state=0).null, found.null
    )
    assert found.significant.all()
    # Against the definition: the skewness over the bins of which half is seen, in a circle.
    rows = np.arange(400)[:, None] + np.arange(6)
    seen = mask[:, 0][rows % 400].mean(axis=1) >= 0.5
    C = np.einsum("tln,kln->tk", np.where(mask, X, 0)[rows % 400], motifs)[seen]
    np.testing.assert_allclose(found.statistic, skew(C), rtol=1e-6)
    nothing = significance(X, motifs, mask=np.zeros_like(mask) | (rows[:, :1] < 2), n_null=60)
    assert not nothing.tested.any()
    assert np.isnan(nothing.p_value).all()


# --- the ends of segments ----------------------------------------------------------------------


def test_cut_off_is_what_its_own_lags_reach_beyond(model):
    """A motif that fills the first three of six lags is whole three bins before the end."""
    model.components_[:] = 0
    model.components_[:, :3] = 1.0
    model.activations_[[5, 37, 67], 0] = [1.0, 1.0, 1.0]
    assert find_events(model)["bin"].tolist() == [5, 37, 67]
    model.activations_[:] = 0
    model.activations_[[5, 38, 68], 0] = [1.0, 1.0, 9.0]
    assert find_events(model)["bin"].tolist() == [5]
    events = find_events(model, partial=True)
    assert (events["bin"].tolist(), events["partial"].tolist()) == (
        [5, 38, 68],
        [False, True, True],
    )


def test_partial_events_are_more_and_not_others(model):
    rng = np.random.default_rng(3)
    model.activations_ = rng.gamma(0.3, size=(70, 2))
    whole, all_ = find_events(model), find_events(model, partial=True)
    assert all_.where(partial=False) == whole
    assert len(all_) > len(whole)
    # One that is spread over the bins before the end is one.
    model.components_[:] = 0
    model.components_[:, :4] = 1.0
    model.activations_[:] = 0
    model.activations_[[36, 37], 0] = [0.6, 0.5]
    assert find_events(model, partial=True)["bin"].tolist() == [36]


# --- what is one occurrence ---------------------------------------------------------------------


def shapes():
    """Motifs of eight lags: one lag alone, a sequence, bumps of one and two bins."""
    lags = np.arange(8)[:, None]
    peaks = np.array([2, 3, 4, 5])
    return {
        "one lag": np.where(lags == 0, 1.0, 0.0) * np.ones(4),
        "sequence": (lags == 2 * np.arange(4)) * 1.0,
        "narrow": np.exp(-0.5 * (lags - peaks) ** 2.0),
        "wide": np.exp(-0.125 * (lags - peaks) ** 2.0),
    }


@pytest.mark.parametrize("name", shapes())
def test_empty_lags_do_not_change_the_events(name):
    motif = shapes()[name]
    rng = np.random.default_rng(0)
    H = rng.gamma(0.3, size=(300, 1)) * (rng.random((300, 1)) < 0.3)
    found = []
    for padding in (0, 9, 40):
        model = CNMF(1, 8 + padding, random_state=0, max_iter=1, tol=0)
        model.fit(np.ones((300, 4)))
        model.components_ = np.pad(motif, ((0, padding), (0, 0)))[None]
        found.append(find_events(model, H, partial=True))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 10


@pytest.mark.parametrize("name", shapes())
def test_two_near_each_other_and_one_that_is_blurred(name):
    motif = shapes()[name]
    model = CNMF(1, 16, random_state=0, max_iter=1, tol=0).fit(np.ones((60, 4)))
    model.components_ = np.pad(motif, ((0, 8), (0, 0)))[None] / np.linalg.norm(motif)
    H = np.zeros((60, 1))
    H[[10, 15], 0] = 1.0  # five bins apart, where half of n_lags would be eight
    H[[30, 31, 32], 0] = [0.35, 0.2, 0.45]  # one occurrence, of which parts came early and late
    assert find_events(model, H)["bin"].tolist() == [10, 15, 32]
    # Not only by hand: the activations that a model finds in such data.
    X = model.inverse_transform(H)
    H = model.transform(X)
    assert find_events(model, H)["bin"].tolist() in ([10, 15, 31], [10, 15, 32], [10, 15, 30])


def test_recall_and_precision_where_the_truth_is_known():
    """Three tenths of the events follow another by 3 to 7 bins; n_lags is twice what is needed."""
    rng = np.random.default_rng(0)
    T, hits, n_found, n_true = 1200, 0, 0, 0
    for motif in shapes().values():
        motif = np.pad(motif, ((0, 8), (0, 0)))[None] / np.linalg.norm(motif)
        gaps = np.where(rng.random(80) < 0.3, rng.integers(3, 8, 80), rng.integers(8, 40, 80))
        true = np.cumsum(gaps)
        true = true[true < T - 20]
        H = np.zeros((T, 1))
        H[true, 0] = np.exp(0.25 * rng.normal(size=len(true)))
        model = CNMF(1, 16, random_state=0, max_iter=1, tol=0).fit(np.ones((T, 4)))
        model.components_ = motif
        X = model.inverse_transform(H) + 0.03 * np.abs(rng.normal(size=(T, 4)))
        found = find_events(model, model.transform(X))["bin"]
        hits += sum(int(np.abs(found - t).min() <= 1) for t in true)
        n_found += len(found)
        n_true += len(true)
    assert hits / n_true > 0.9
    assert hits / n_found > 0.95


# --- clock, and what is explained ----------------------------------------------------------------


def test_times_are_on_the_clock(model):
    model.activations_[[3, 45], 0] = 1.0
    events = find_events(model, rate=10.0, starts=(100.0, 250.5))
    assert events["time"].tolist() == [100.3, 251.0]
    assert events["start"].tolist() == [0.3, 0.5]
    for wrong in ([1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="starts"):
            find_events(model, starts=wrong)


def test_an_average_meets_events_on_the_clock():
    signal = [np.arange(50.0)[:, None], 1000 + np.arange(80.0)[:, None]]
    rows = [(0, 101.0), (1, 203.0), (5, 201.0)]  # the last: of a recording in more segments
    events = Table([{"motif": 0, "segment": s, "time": t} for s, t in rows])
    average = event_triggered_average(signal, events, (0, 0.1), rate=10, starts=[100.0, 200.0])
    np.testing.assert_allclose(average.mean[0, 0, 0], (10 + 1030 + 1010) / 3)
    beyond = Table([{"motif": 0, "segment": 0, "time": t} for t in (90.0, 150.0, 101.0)])
    average = event_triggered_average(signal, beyond, (0, 0.1), rate=10, starts=[100.0, 200.0])
    assert average.counts.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="starts"):
        event_triggered_average(signal, events, (0, 1), rate=10, starts=[100.0])
    with pytest.raises(ValueError, match="segment 5"):
        event_triggered_average(signal, events, (0, 1), rate=10)


def test_what_an_event_explains():
    model = CNMF(1, 3, random_state=0, max_iter=1, tol=0).fit(np.ones((30, 2)))
    model.components_ = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    H = np.zeros((30, 1))
    H[[5, 20], 0] = [2.0, 1.0]
    X = model.inverse_transform(H)

    def explained(X):
        return find_events(model, H, X=X, threshold=0.3)["explained"]

    assert explained(X).tolist() == [1.0, 1.0]
    X[20, 1] = 1.0  # 1 of 3 is of something else
    np.testing.assert_allclose(explained(X), [1, 2 / 3])
    X[5, 0] = np.nan  # what is missing does not count
    np.testing.assert_allclose(explained(X), [1, 2 / 3])
    assert explained(csr_array(np.nan_to_num(X)))[1] == pytest.approx(2 / 3)


# --- averages -----------------------------------------------------------------------------------


def test_average_of_a_signal_at_its_own_rate():
    rng = np.random.default_rng(0)
    signal = [rng.normal(size=(300, 2)), rng.normal(size=(200, 2))]
    rows = [(0, 0, 0.5), (0, 1, 0.25), (0, 0, 2.9), (3, 1, 1.0)]
    events = Table([{"motif": m, "segment": s, "time": t} for m, s, t in rows])
    average = event_triggered_average(signal, events, (-0.1, 0.2), rate=100)
    assert average.motifs.tolist() == [0, 3]
    np.testing.assert_allclose(average.times, np.arange(-10, 21) / 100)
    a, b, c = signal[0][40:71], signal[1][15:46], signal[0][280:300]
    np.testing.assert_allclose(average.mean[1], signal[1][90:121])
    np.testing.assert_allclose(average.mean[0, :20], (a[:20] + b[:20] + c) / 3)
    np.testing.assert_allclose(average.mean[0, 20:], (a[20:] + b[20:]) / 2)
    assert average.counts[0].tolist() == [3] * 20 + [2] * 11
    three = np.stack([a[:20], b[:20], c])
    np.testing.assert_allclose(
        average.standard_error[0, :20], three.std(axis=0, ddof=1) / np.sqrt(3)
    )
    assert np.isnan(average.standard_error[1]).all()


def test_average_leaves_out_what_is_missing():
    signal = np.arange(10.0)
    signal[5] = np.nan
    events = Table([{"motif": 0, "segment": 0, "time": t} for t in (5.0, 7.0)])
    average = event_triggered_average(signal, events, (-1, 1), rate=1)
    np.testing.assert_allclose(average.mean[0, :, 0], [5, 7, 7])
    with pytest.raises(ValueError, match="empty"):
        event_triggered_average(signal, Table([], ["motif", "segment", "time"]), (0, 1), rate=1)
    far = Table([{"motif": 0, "segment": 4, "time": 0.0}])
    with pytest.raises(ValueError, match="segment 4"):
        event_triggered_average(signal, far, (0, 1), rate=1)
    with pytest.raises(ValueError, match="window"):
        event_triggered_average(signal, events, (1, 1), rate=1)


def test_an_average_as_it_was_called_in_0_1():
    """With the rate by place: understood, with a warning at the caller's line."""
    signal, events = np.arange(100.0), Table([{"motif": 0, "segment": 0, "time": 3.0}])
    with pytest.warns(FutureWarning, match=r"takes rate=10 by name now") as told:
        found = event_triggered_average(signal, events, (-1, 1), 10)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(
        found.mean, event_triggered_average(signal, events, (-1, 1), rate=10).mean
    )
    for wrong in ({"rate": 10}, {}):  # Python's own words
        with pytest.raises(TypeError, match="argument"):
            event_triggered_average(signal, events, (-1, 1), *[10] * (2 - len(wrong)), **wrong)
