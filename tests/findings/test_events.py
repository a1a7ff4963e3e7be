"""Events: peaks by the stated rule; averages around them at any rate."""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.findings import Table, event_triggered_average, find_events


@pytest.fixture
def model() -> CNMF:
    """Two motifs of six lags and two segments of 40 and 30 bins; activations are set by hand."""
    model = CNMF(2, 6, random_state=0, tol=0, max_iter=2)
    model.fit(np.random.default_rng(0).random((70, 3)), lengths=[40, 30])
    model.activations_ = np.zeros((70, 2))
    return model


def test_peaks_times_and_segments(model):
    H = model.activations_
    H[[3, 20, 45], 0] = [1.0, 2.0, 1.5]
    H[60, 1] = 0.7
    events = find_events(model, rate=10.0)
    assert events.columns == ["motif", "segment", "time", "bin", "strength"]
    assert events.records == [
        {"motif": 0, "segment": 0, "time": 0.3, "bin": 3, "strength": 1.0},
        {"motif": 0, "segment": 0, "time": 2.0, "bin": 20, "strength": 2.0},
        {"motif": 0, "segment": 1, "time": 0.5, "bin": 45, "strength": 1.5},
        {"motif": 1, "segment": 1, "time": 2.0, "bin": 60, "strength": 0.7},
    ]
    assert list(events.to_pandas()["bin"]) == [3, 20, 45, 60]


def test_refractory_gap_keeps_the_stronger(model):
    model.activations_[[10, 12, 15], 0] = [1.0, 1.2, 1.1]
    assert find_events(model)["bin"].tolist() == [12, 15]  # half of six lags
    assert find_events(model, refractory=4)["bin"].tolist() == [12]
    assert find_events(model, refractory=4, rate=0.5)["bin"].tolist() == [10, 12, 15]
    # Segments do not shadow each other.
    model.activations_[:] = 0
    model.activations_[[39, 41], 0] = 1.0
    assert find_events(model, refractory=10)["bin"].tolist() == [39, 41]


def test_threshold_is_a_share_of_the_typical_strength(model):
    # Σh²/Σh = (1 + 1 + 0.1225) / 2.35 = 0.903: 0.3 of it is 0.27, 0.4 of it is 0.36.
    model.activations_[[2, 12, 22], 0] = [1.0, 1.0, 0.35]
    assert find_events(model)["bin"].tolist() == [2, 12, 22]
    assert find_events(model, threshold=0.4)["bin"].tolist() == [2, 12]
    # A motif cut off by the end may be huge: it does not raise the bar for the others.
    model.activations_[38, 0] = 1000.0
    assert find_events(model)["bin"].tolist() == [2, 12, 22, 38]


def test_no_events_and_other_recordings(model):
    assert len(find_events(model)) == 0
    H = np.zeros((12, 2))
    H[0, 1] = H[11, 1] = 1.0
    assert find_events(model, H)["bin"].tolist() == [0, 11]
    events = find_events(model, [H, H])
    assert events["segment"].tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="one column per motif"):
        find_events(model, H[:, :1])
    with pytest.raises(ValueError, match="rate"):
        find_events(model, rate=0)


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
        event_triggered_average(signal, Table([], ["motif", "segment", "time"]), (0, 1), 1)
    far = Table([{"motif": 0, "segment": 4, "time": 0.0}])
    with pytest.raises(ValueError, match="segment 4"):
        event_triggered_average(signal, far, (0, 1), 1)
    with pytest.raises(ValueError, match="window"):
        event_triggered_average(signal, events, (1, 1), 1)
