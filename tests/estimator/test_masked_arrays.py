"""numpy's masked arrays: what they hide is missing, wherever X is taken, or there is an error."""

from __future__ import annotations

import numpy as np
import pytest

import motifold
from motifold import CNMF, fit_with_checkpoint
from motifold.data.sentinels import is_sentinel
from motifold.findings import (
    event_triggered_average,
    find_events,
    sequenciness,
)
from motifold.findings.decomposition import stacked
from motifold.io import Recording

rng = np.random.default_rng(0)
GOOD = rng.random((60, 5))
HIDDEN = rng.random(GOOD.shape) < 0.15
FILLED = np.where(HIDDEN, 50.0, GOOD)
MASKED = np.ma.masked_array(FILLED, HIDDEN)


def model(**more):
    return CNMF(2, 3, random_state=0, tol=1e-2, **more)


def same(a, b):
    np.testing.assert_array_equal(a.components_, b.components_)
    np.testing.assert_array_equal(a.activations_, b.activations_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_fit_transform_and_score(dtype):
    X = (10 * MASKED).astype(dtype)
    plain = np.ma.getdata(X)
    fitted = model().fit(plain, mask=~HIDDEN)
    same(model().fit(X), fitted)
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(plain, mask=~HIDDEN))
    assert fitted.score(X) == fitted.score(plain, mask=~HIDDEN)
    H = model().fit_transform(X)
    np.testing.assert_array_equal(H, model().fit_transform(plain, mask=~HIDDEN))


def test_segments():
    expected = model().fit(FILLED, mask=~HIDDEN, lengths=[30, 30])
    same(model().fit([MASKED[:30], MASKED[30:]]), expected)
    same(model().fit(MASKED, lengths=[30, 30]), expected)
    some = model().fit([FILLED[:30], MASKED[30:]])
    shown = np.where(np.arange(60)[:, None] < 30, True, ~HIDDEN)
    same(some, model().fit(FILLED, mask=shown, lengths=[30, 30]))


def test_both_masks_count():
    given = rng.random(GOOD.shape) < 0.9
    expected = model().fit(FILLED, mask=given & ~HIDDEN)
    same(model().fit(MASKED, mask=given), expected)
    same(model().fit(MASKED, mask=np.ma.masked_array(given, ~given)), expected)
    halves = [MASKED[:30], MASKED[30:]]
    expected = model().fit(FILLED, mask=given & ~HIDDEN, lengths=[30, 30])
    same(model().fit(halves, mask=[given[:30], given[30:]]), expected)
    same(model().fit(halves, mask=given), expected)
    with pytest.raises(ValueError, match="shape of X"):
        model().fit(MASKED, mask=given[:50])


def test_a_masked_array_that_hides_nothing_is_an_array():
    same(model().fit(np.ma.masked_array(GOOD)), model().fit(GOOD))
    recording = Recording(np.ma.masked_array(GOOD), "made up").checked()
    assert recording.mask is None
    assert type(recording.X) is np.ndarray


def test_sweep():
    options = {"n_components": 2, "n_lags": 3, "n_seeds": 1, "n_null": 0, "progress": False}
    found = motifold.sweep(MASKED, tol=1e-2, n_jobs=1, **options).table["loss"]
    assert (
        found == motifold.sweep(FILLED, mask=~HIDDEN, tol=1e-2, n_jobs=1, **options).table["loss"]
    )


@pytest.mark.parametrize("missing", ["error", "mask"])
@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_recording(missing, dtype):
    recording = Recording((10 * MASKED).astype(dtype), "made up", missing=missing).checked()
    np.testing.assert_array_equal(recording.mask, ~HIDDEN)
    assert recording.X.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert np.isnan(recording.X[HIDDEN]).all()


def test_a_checkpoint_is_of_data_and_mask(tmp_path):
    def interrupt(state):
        raise KeyboardInterrupt

    path = tmp_path / "a.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(model(callback=interrupt), MASKED, path)
    if not path.exists():
        pytest.fail("there is no checkpoint to go on from")
    with pytest.raises(ValueError, match="X differs"):
        fit_with_checkpoint(model(), FILLED, path)
    with pytest.raises(ValueError, match="X differs"):
        fit_with_checkpoint(model(), np.ma.masked_array(FILLED, ~HIDDEN), path)
    same(fit_with_checkpoint(model(), MASKED, path), model().fit(MASKED))


def test_what_has_no_mask_refuses_them():
    fitted = model().fit(GOOD)
    for use in (
        lambda: sequenciness(model(), MASKED, n_shuffles=1),
        lambda: find_events(fitted, np.ma.masked_less(fitted.activations_, 0.1)),
        lambda: model().fit(GOOD, activations_init=np.ma.masked_less(fitted.activations_, 0.1)),
    ):
        with pytest.raises(ValueError, match="masked array"):
            use()


def test_pictures_and_averages_leave_them_out():
    shown = stacked([MASKED[:30], MASKED[30:]])
    np.testing.assert_array_equal(np.isnan(shown), HIDDEN)
    events = find_events(model().fit(GOOD))
    mean = event_triggered_average(MASKED, events, (-2, 2), rate=1).mean
    with_nan = np.where(HIDDEN, np.nan, GOOD)
    expected = event_triggered_average(with_nan, events, (-2, 2), rate=1).mean
    np.testing.assert_array_equal(mean, expected)


# --- numbers that stand for no number ------------------------------------------------------------


@pytest.mark.parametrize("value", [-9999, -999.0, np.float32(-9.96921e36), -32768, 1e20, 1e30])
def test_known_numbers(value):
    assert is_sentinel(value)


@pytest.mark.parametrize("value", [0.0, -1.0, 999.0, 9999.0, -998.0, 1.5e20, 65535, 1e300, np.inf])
def test_other_numbers(value):
    assert not is_sentinel(value)


def test_an_error_says_what_a_negative_number_may_be():
    with pytest.raises(ValueError, match=r"row 3, column 1: -9999\.0.*missing value.*mask"):
        model().fit(np.where(np.arange(300).reshape(60, 5) == 16, -9999.0, GOOD))
    with pytest.raises(ValueError, match="be set to zero") as caught:
        model().fit(GOOD - 0.5)
    assert "shift" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_warning_says_what_a_huge_number_may_be(dtype):
    X = np.where(HIDDEN, 1e20, GOOD).astype(dtype)
    with pytest.warns(UserWarning, match=r"1e\+20 often stands for a missing value"):
        model().fit(X)
    model().fit(X, mask=~HIDDEN)
    model().fit(1e20 * np.round(GOOD, 1).astype(dtype))  # data that is all so large
