"""A recording in the place of X brings its segments, mask and clock, as if they had been given."""

import numpy as np
import pytest

import motifold
from motifold import CNMF, findings, plots
from motifold.datasets import make_sequences
from motifold.io import Recording

K, L = 2, 6
X = make_sequences(300, 9, K, L, activation_probability=0.04, random_state=0).X
HOLED = X.copy()
HOLED[40:45, 2] = np.nan
MASK = ~np.isnan(HOLED)
CUT = {"lengths": (180, 120)}
CLOCK = {"rate": 10.0, "starts": (5.0, 60.0)}
WHOLE = Recording(X, "made up", **CUT, **CLOCK)
WITH_GAP = Recording(HOLED, "made up", **CUT, **CLOCK, missing="mask")


@pytest.fixture(scope="module")
def model():
    return CNMF(K, L, tol=1e-2, random_state=0).fit(WHOLE)


def same(a, b):
    assert str(a) == str(b)
    for name, value in getattr(a, "__dict__", {}).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(b, name))


FINDINGS = {
    "significance": lambda m, R, **k: motifold.significance(R, m, n_null=200, random_state=0, **k),
    "sequence_test": lambda m, R, **k: motifold.sequence_test(
        R, m, n_null=40, n_flips=40, random_state=0, **k
    ),
    "refit_events": lambda m, R, **k: motifold.refit_events(m, R, random_state=0, **k),
    "sweep": lambda m, R, **k: motifold.sweep(
        R, n_components=K, n_lags=L, n_seeds=1, tol=1e-2, n_null=0, n_jobs=1, progress=False, **k
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_segments_and_mask(model, name):
    ask, clock = FINDINGS[name], {"rate": 10.0} if name == "refit_events" else {}
    same(ask(model, WITH_GAP), ask(model, HOLED, mask=MASK, **CUT, **clock))


def test_a_mask_where_the_power_is_told(model):
    found = motifold.explained_power(model, WITH_GAP)
    same(found, motifold.explained_power(model, HOLED, mask=MASK, **CUT))
    H = model.transform(HOLED, mask=MASK, **CUT)
    X_hat = model.inverse_transform(H, **CUT)
    power, left = (X[MASK] ** 2).sum(), ((X - X_hat)[MASK] ** 2).sum()
    assert found.sum() == pytest.approx(1 - left / power, rel=1e-5)
    hidden = np.where(MASK, X, 1e3)  # what is hidden does not matter
    np.testing.assert_allclose(motifold.explained_power(model, hidden, mask=MASK, **CUT), found)
    masked = np.ma.masked_array(hidden, ~MASK)
    np.testing.assert_allclose(motifold.explained_power(model, masked, **CUT), found)
    parts = [masked[:180], masked[180:]]
    np.testing.assert_allclose(motifold.explained_power(model, parts), found)


def test_sequenciness_says_what_to_do_about_gaps(model):
    with pytest.raises(ValueError, match="has no mask") as caught:
        motifold.sequenciness(model, WITH_GAP)
    assert "mark_junctions(rows)" in str(caught.value)


@pytest.mark.parametrize("given", [WHOLE, WITH_GAP], ids=["whole", "with a gap"])
def test_the_fit_of_a_consensus(model, given):
    agreed = motifold.find_consensus([model, model])
    mask = {} if given is WHOLE else {"mask": MASK}
    found, told = agreed.fit(given, model), agreed.fit(given.X, model, **CUT, **mask)
    np.testing.assert_array_equal(found.components_, told.components_)
    np.testing.assert_array_equal(found.activations_, told.activations_)
    assert found.origin_["starts"] == [5.0, 60.0]


def test_segments(model):
    same(motifold.explained_power(model, WHOLE), motifold.explained_power(model, X, **CUT))
    same(motifold.hold_out(WHOLE, gap=L), motifold.hold_out(X, gap=L, **CUT))


def test_discover():
    options = {"n_lags": L, "n_components": K, "random_state": 0, "n_jobs": 1, "progress": False}
    found = motifold.discover(WHOLE, **options)
    told = motifold.discover(X, rate=10.0, **CUT, **options)
    assert found.summary() == told.summary()
    same(found.events, told.events)


def test_the_clock(model):
    found = motifold.find_events(model, X=WHOLE, random_state=0)
    same(found, motifold.find_events(model, X=X, **CUT, **CLOCK, random_state=0))
    assert found["time"].min() >= 5.0
    around = motifold.event_triggered_average(WHOLE, found, (-1.0, 1.0))
    same(around, motifold.event_triggered_average(X, found, (-1.0, 1.0), **CUT, **CLOCK))


def test_what_is_given_by_name_counts(model):
    in_bins = motifold.find_events(model, X=WHOLE, rate=1.0, starts=[0, 0], random_state=0)
    same(in_bins, motifold.find_events(model, X=X, **CUT, rate=1.0, random_state=0))
    with pytest.raises(ValueError, match="not for the recording, which has its own segments"):
        motifold.explained_power(model, WHOLE, lengths=[100, 200])


@pytest.mark.parametrize("name", ["plot_raster", "plot_factors", "plot_contributions"])
def test_pictures_have_its_clock(model, name):
    figure = getattr(plots, name)(model, WHOLE)
    labels = {axes.get_xlabel() for axes in figure.axes}
    assert any("time (s)" in label for label in labels), labels


def test_frames_of_pynapple(model):
    nap = pytest.importorskip("pynapple")
    frame = nap.TsdFrame(t=5 + np.arange(len(X)) / 10, d=X)
    found = motifold.find_events(model, X=frame, random_state=0)
    told = {"rate": 10.0, "starts": [5.0], "lengths": None}
    plain = motifold.find_events(model, X=X, random_state=0, **told)
    np.testing.assert_allclose(found["time"], plain["time"])
    group = nap.TsGroup({0: nap.Ts(np.arange(5.0))})
    with pytest.raises(TypeError, match="counted in bins first"):
        findings.find_events(model, X=group)
