"""A live transform: what is given out, when, and how it compares with ``transform``."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import find_peaks

from motifold import CNMF, find_events
from motifold.datasets import make_sequences
from motifold.streaming import Final
from motifold.streaming.live import LiveEvents, rules_of
from motifold.streaming.peaks import RunningPeaks

L = 8
X = make_sequences(500, 15, 2, L, activation_probability=0.04, noise=0.1, random_state=0).X


@pytest.fixture(scope="module")
def model():
    return CNMF(2, L, random_state=0).fit(X[:400])


def followed(stream, X, cuts=()):
    """All that a stream gives for X, handed over in pieces."""
    parts = [stream.push(piece) for piece in np.split(X, list(cuts))] + [stream.flush()]
    return parts, np.concatenate([part.activations for part in parts])


def relative_error(found, H):
    return float(np.linalg.norm(found - H) / np.linalg.norm(H))


def test_it_is_transform_but_for_what_the_latency_costs(model):
    H = model.transform(X)
    errors = []
    for latency in (0, L // 2, L - 1, 2 * L, 3 * L):
        parts, _ = followed(model.stream(latency), X)
        errors.append(relative_error(parts[0].activations, H[: len(parts[0].bins)]))
    assert errors[0] < 0.9  # without the hold it is 40 and the like
    assert errors[2] < 0.1
    assert errors[3] < 3e-3
    assert errors[4] < 1e-3
    assert (np.diff(errors) < 0).all()


def test_with_all_of_a_segment_open_it_is_the_oracles(model):
    short = X[:30]
    _, found = followed(model.stream(latency=40), short)
    W = model.components_.transpose(2, 1, 0)
    np.testing.assert_allclose(found, reference.solve_H(short, W), atol=1e-4 * found.max())


def test_values_do_not_depend_on_how_rows_are_handed_over(model):
    _, whole = followed(model.stream(), X[:120])
    parts, pieces = followed(model.stream(), X[:120], cuts=[1, 2, 3, 50, 50, 119])
    one_by_one = model.stream()
    rows = [one_by_one.push(row) for row in X[:120]] + [one_by_one.flush()]
    np.testing.assert_array_equal(whole, pieces)
    np.testing.assert_array_equal(whole, np.concatenate([part.activations for part in rows]))
    bins = np.concatenate([part.bins for part in parts])
    np.testing.assert_array_equal(bins, np.arange(120))


def test_early_values_and_their_certainty_do_not_either(model):
    whole, rows = model.stream(latency=2), model.stream(latency=2)
    for X_ in (X[:60], X[60:150]):  # what is learnt of the first segment counts in the second
        at_once = whole.push(X_)
        pieces = [rows.push(piece) for piece in np.split(X_, [1, 2, 3, 19, 20, 50])]
        whole.flush(), rows.flush()
        for name in ("activations", "certainty"):
            found = np.concatenate([getattr(piece, name) for piece in pieces])
            np.testing.assert_array_equal(found, getattr(at_once, name))


def test_each_bin_is_given_out_after_the_latency_and_once(model):
    stream = model.stream(latency=5)
    assert [stream.push(row).bins.tolist() for row in X[:8]] == [[]] * 5 + [[0], [1], [2]]
    assert stream.n_open == 5
    assert stream.flush().bins.tolist() == [3, 4, 5, 6, 7]
    assert stream.n_open == 0
    assert len(stream.flush().bins) == 0
    stream.push(X[:6])  # a new segment; bins go on
    assert stream.flush().bins.tolist() == [9, 10, 11, 12, 13]


def test_segments_do_not_see_each_other(model):
    stream = model.stream()
    first = followed(stream, X[:60])[1]
    second = followed(stream, X[60:130])[1]
    H = model.transform(X[:130], lengths=[60, 70])
    np.testing.assert_allclose(np.concatenate([first, second]), H, atol=5e-3 * H.max())
    np.testing.assert_array_equal(second, followed(model.stream(), X[60:130])[1])


def test_memory_is_that_of_the_window(model):
    stream = model.stream()
    sizes = set()
    for _ in range(3):
        stream.push(X)
        sizes.add(sum(a.nbytes for a in vars(stream).values() if isinstance(a, np.ndarray)))
    assert len(sizes) == 1


def test_certainty_grows_with_the_latency_and_tells_the_error(model):
    """It is 1 − (error/size)² of each motif, as measured on data like the fit's."""
    H, told, found = model.transform(X), [], []
    for latency in (0, 2, 5, 2 * L):
        final = model.stream(latency).push(X)
        told.append(final.certainty[0])
        left = np.square(final.activations - H[: len(final.bins)]).sum(axis=0)
        found.append(1 - left / np.square(H).sum(axis=0))
    assert (np.diff([row.mean() for row in told]) > 0).all()
    np.testing.assert_allclose(told, np.clip(found, 0, 1), atol=0.15)
    last = model.stream()
    last.push(X[:40])
    assert (np.diff(last.flush().certainty[-L:], axis=0) <= 0).all()  # cut off: ever less


def test_certainty_is_that_of_the_stream_where_it_is_less_orderly_than_the_fit(model):
    """Rows are missing at random: the first lags of a motif say less than the model thinks."""
    rng = np.random.default_rng(0)
    H = np.zeros((2000, 2))
    H[rng.integers(0, 1990, 120), rng.integers(0, 2, 120)] = 1
    other = model.inverse_transform(H * model.activations_.max())
    cut = other * (rng.random((2000, 1)) < 0.5)
    stream = model.stream(1)
    final, truth = stream.push(cut), model.transform(cut)
    left = np.square(final.activations - truth[: len(final.bins)]).sum(axis=0)
    found = np.clip(1 - left / np.square(truth).sum(axis=0), 0, 1)
    early, late = (np.abs(final.certainty[row] - found).max() for row in (0, -1))
    assert late < 0.1
    assert late < 0.5 * early


def test_a_fit_too_short_for_a_rehearsal_does_not_silence_a_stream():
    model = CNMF(1, L, random_state=0).fit(X[: L + 2])
    final = model.stream(2).push(X[:100])
    assert final.activations.any()
    assert (final.certainty[0] < 1).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"l1_H": 0.3, "l2_H": 0.2, "l2_W": 0.1},
        {"background": True},
        {"boundary": "valid"},
        {"allow_negative": True},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_a_model_may_have(parameters):
    signed = "allow_negative" in parameters
    data = X - 0.3 if signed else X + (0.5 if "background" in parameters else 0)
    model = CNMF(2, L, random_state=0, tol=1e-3, **parameters).fit(data)
    H, (_, found) = model.transform(data), followed(model.stream(), data)
    assert relative_error(found, H) < 0.02


def test_single_precision_comes_out_as_it_went_in():
    model = CNMF(2, L, random_state=0).fit(X.astype(np.float32))
    assert model.stream().push(X[:50].astype(np.float32)).activations.dtype == np.float32


def test_a_later_fit_does_not_change_it():
    model = CNMF(2, L, random_state=0).fit(X[:200])
    stream, expected = model.stream(), followed(model.stream(), X[:100])[1]
    model.fit(X[200:400])
    np.testing.assert_array_equal(followed(stream, X[:100])[1], expected)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (np.full((2, 15), np.nan), "row 20, column 0"),
        (np.full((2, 15), -1.0), "Negative values.*row 20, column 0"),
        (np.zeros((2, 14)), r"\(n_samples, 15\)"),
        (np.array([["a"] * 15]), "must be numbers"),
    ],
)
def test_bad_rows_are_refused_and_nothing_is_taken(model, rows, told):
    stream, expected = model.stream(), followed(model.stream(), X[:60])[1]
    first = stream.push(X[:20])
    with pytest.raises(ValueError, match=told):
        stream.push(rows)
    assert len(stream.push([]).bins) == 0
    found = followed(stream, X[20:60])[1]
    np.testing.assert_array_equal(np.concatenate([first.activations, found]), expected)


def test_what_cannot_be_streamed_is_refused_by_name():
    data = X[:80] + 0.1
    with pytest.raises(ValueError, match="stream: beta_loss='kullback-leibler' cannot"):
        CNMF(1, 4, beta_loss="kullback-leibler", max_iter=3, tol=0).fit(data).stream()
    for name in ("x_ortho", "ortho_H"):
        model = CNMF(2, 4, max_iter=3, tol=0, l1_W=0.1, l1_H=0.1, **{name: 0.1}).fit(data)
        with pytest.raises(ValueError, match=f"stream: {name} cannot"):
            model.stream()
    with pytest.raises(ValueError, match="latency must be"):
        CNMF(1, 4, max_iter=3, tol=0).fit(data).stream(-1)


# --- events ---------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    heights=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    distance=st.integers(1, 9),
    spread=st.booleans(),
)
def test_running_peaks_are_those_of_all_at_once(heights, distance, spread):
    h = np.array(heights, dtype=float)
    # Of equal heights scipy takes any: no two peaks that compete are to be equal.
    h[h > 0] += 1e-3 * np.random.default_rng(0).permutation(len(h))[h > 0] if spread else 0
    if not spread and distance > 1:
        h = np.repeat(h * (1 + 1e-3 * np.arange(len(h))), 2)  # plateaus, of different heights
    padded = np.concatenate([[0.0], h, [0.0]])
    expected = find_peaks(padded, distance=distance)[0] - 1
    peaks = RunningPeaks(distance)
    found = [peak for t, value in enumerate(h.tolist()) for peak in peaks.add(t, value)]
    found += peaks.end()
    if not spread and distance == 1:
        return  # neighbours of the same height are all kept
    assert sorted(peak.t for peak in found) == expected.tolist()
    assert [h[peak.t] for peak in found] == [peak.height for peak in found]


def test_events_are_those_of_find_events(model):
    """With the strength that is typical of the training data, on which they are found here."""
    stream = model.stream(3 * L)
    events = stream.events(rate=10)
    found = []
    for row in X[:400]:
        stream.push(row)
        found += events.take()
    assert found  # they come on the way
    stream.flush()
    found += events.take()
    expected = find_events(model, rate=10)
    early = 400 - 3 * L
    told = {(event["motif"], event["bin"]) for event in found if event["bin"] < early}
    wanted = {(event["motif"], event["bin"]) for event in expected if event["bin"] < early}
    assert told == wanted
    times = {event["bin"]: event["time"] for event in found}
    assert all(times[t] == pytest.approx(t / 10) for t in times)


def test_events_count_segments_and_begin_with_one(model):
    stream = model.stream()
    events = stream.events()
    for part in (X[:100], X[100:200]):
        stream.push(part)
        stream.flush()
    found = events.take()
    assert {event["segment"] for event in found} == {0, 1}
    assert all(event["time"] == event["bin"] - 100 * event["segment"] for event in found)
    stream.push(X[:5])
    with pytest.raises(ValueError, match="where a segment begins; 5 bins are open"):
        stream.events()


@pytest.mark.parametrize("lags", [L, L + 6])
def test_the_rule_of_live_events_is_that_of_find_events(lags):
    """Of the same activations they are the same events, up to the end of each segment."""
    model = CNMF(2, lags, random_state=0).fit(X[:400], lengths=[130, 270])
    events = LiveEvents(rules_of(model, None, 1.0), 0.3, 1.0, 0)
    sure = np.ones_like(model.activations_)
    for a, b in ((0, 130), (130, 400)):
        events.begin(a)
        for part in (slice(a, b - 40), slice(b - 40, b)):
            final = Final(np.arange(400)[part], model.activations_[part], sure[part])
            events.note(final, ending=part.stop == b)
        events.end()
    names = "motif", "segment", "bin", "strength"
    told = [tuple(event[name] for name in names) for event in events.take()]
    expected = find_events(model)
    assert told == [tuple(event[name] for name in names) for event in expected]


def test_where_all_events_of_the_fit_are_cut_off_these_are_typical():
    model = CNMF(1, 6, random_state=0).fit(np.eye(6)[:, :3])
    model.activations_ = np.array([[0.0], [0], [0], [0], [0], [2]])
    assert rules_of(model, None, 1.0)[0].typical == 2
