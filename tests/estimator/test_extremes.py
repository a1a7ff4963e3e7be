"""Data and starts in extreme units: scaled exactly, or refused with advice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF
from motifold.data.sources import StoredSource
from motifold.data.sources.kinds import Sliced
from motifold.engines.cpu import statistics

T, N, K, L = 30, 4, 2, 3
_RNG = np.random.default_rng(0)
X, MASK = _RNG.random((T, N)) + 0.1, _RNG.random((T, N)) > 0.2
W, H = _RNG.random((K, L, N)) + 0.1, _RNG.random((T, K)) + 0.1


def fitted(data, *, acceleration=None, mask=None, loss="frobenius", **given) -> CNMF:
    options = {"acceleration": acceleration, "beta_loss": loss, "random_state": 0}
    model = CNMF(K, L, max_iter=10, tol=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, mask=mask, **given)


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize("exponent", [-900, -200, 200, 900])
@pytest.mark.parametrize("acceleration", [None, "auto"])
def test_a_power_of_two_that_moves_between_the_factors_changes_nothing(
    acceleration, exponent, mask
):
    one = fitted(X, acceleration=acceleration, mask=mask, components_init=W, activations_init=H)
    start = {"components_init": np.ldexp(W, exponent), "activations_init": np.ldexp(H, -exponent)}
    other = fitted(X, acceleration=acceleration, mask=mask, **start)
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-12)
    np.testing.assert_allclose(other.activations_, one.activations_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.history_.objective, one.history_.objective, rtol=1e-9)


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("given", ["components_init", "activations_init"])
def test_one_factor_may_be_of_any_size(given, size, mask):
    start = {given: (W if given == "components_init" else H) * size}
    model = fitted(X, mask=mask, **start)
    one = fitted(X, mask=mask, **{given: start[given] / size})
    np.testing.assert_allclose(model.history_.loss, one.history_.loss, rtol=1e-6)
    assert np.isfinite(model.activations_).all()
    assert np.isfinite(model.scales_).all()


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e100), (np.float32, 1e20)])
def test_a_start_far_from_the_data_is_refused(dtype, size):
    advice = r"components_init and activations_init.*motif 0.*give them in its units"
    with pytest.raises(ValueError, match=advice):
        fitted(X.astype(dtype), components_init=W, activations_init=H * size)
    with pytest.raises(ValueError, match=advice):
        fitted(X.astype(dtype) / dtype(size), components_init=W, activations_init=H)


def test_zeros_in_a_start_are_of_no_size():
    none = np.zeros_like(W)
    none[1] = W[1] * 2.0**300
    model = fitted(X, components_init=none, activations_init=H * 2.0**-300)
    assert np.isfinite(model.history_.objective).all()


ORDINARY_SIZES = [
    *((np.float32, size) for size in (1e-8, 1e-4, 1e4, 1e8)),
    *((np.float64, size) for size in (1e-40, 1e-10, 1e10, 1e40)),
]


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize(("dtype", "size"), ORDINARY_SIZES)
@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_a_fixed_motif_may_be_of_any_ordinary_size(solver, dtype, size, mask):
    """Its activations make up for it. (MU hardly moves from a start that is so far off.)"""
    exponent = int(np.log2(size))
    data, start, options = X.astype(dtype), W.astype(dtype), {"solver": solver, "max_iter": 20}
    one, other = (
        CNMF(K, L, fixed_components=[1], normalize=False, tol=0, random_state=0, **options)
        for _ in range(2)
    )
    small = np.ldexp(start, [[[0]], [[exponent]]]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one.fit(data, mask=mask, components_init=start)
        other.fit(data, mask=mask, components_init=small)
    assert np.array_equal(other.components_[1], small[1])
    assert other.loss_ <= (1.0 if solver == "mu" else 1.02 * one.loss_)
    found = other.transform(data, mask=mask)
    assert np.isfinite(found).all()
    X_hat = other.inverse_transform(found)
    seen = np.ones_like(MASK) if mask is None else mask
    loss = np.linalg.norm((data - X_hat)[seen]) / np.linalg.norm(data[seen])
    assert loss <= 1.001 * other.loss_


def test_a_fixed_motif_that_is_extreme_is_refused():
    model = CNMF(K, L, fixed_components=[1], max_iter=3)
    with pytest.raises(ValueError, match="motif 1, which is to be held fixed"):
        model.fit(X, components_init=W * 1e200)


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, 127), (np.float64, 1023)])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", "itakura-saito", 3.0])
@pytest.mark.parametrize("held", [np.asarray, csr_array], ids=["array", "sparse"])
def test_sums_of_data_near_the_largest_number_do_not_overflow(held, loss, dtype, exponent, mask):
    if (held, loss) == (csr_array, "itakura-saito"):
        pytest.skip("there is no such fit")
    data = np.tile(X / 4, (20, 1)).astype(dtype)
    mask = None if mask is None else np.tile(mask, (20, 1))
    one, huge = (
        fitted(held(np.ldexp(data, power)), mask=mask, acceleration="auto", loss=loss)
        for power in (0, exponent)
    )
    np.testing.assert_allclose(huge.history_.loss, one.history_.loss, rtol=1e-3)
    assert np.isfinite(huge.activations_).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_whose_activations_could_not_be_told_is_refused(dtype):
    data = (X / X.max() * 0.9 * np.finfo(dtype).max).astype(dtype)
    with pytest.raises(ValueError, match=r"too large for float.*Divide X"):
        fitted(data)


WAYS = {
    "array": (lambda data: data, {}),
    "sparse": (csr_array, {}),
    "on disk": (lambda data: StoredSource(Sliced(data, "X"), limit=48 * data[:1].nbytes), {}),
    "by FFT": (lambda data: data, {}),
    "device": (lambda data: data, {"device": "cuda:twin"}),
}


@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize("solver", ["hals", "mu", "anls", "kullback-leibler", "itakura-saito", 3.0])
@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -126), (np.float64, -1022)])
@pytest.mark.parametrize("way", WAYS)
def test_data_of_the_smallest_numbers_loses_no_digits(
    monkeypatch, way, dtype, least, solver, masked
):
    """Its products with activations did: a fit ended at a loss of 0.2 instead of 1e-8, or rose."""
    if (way, solver) in {("device", "anls"), ("sparse", "itakura-saito")}:
        pytest.skip("there is no such fit")
    if way == "by FFT":
        monkeypatch.setattr(statistics, "best_way", lambda *sizes: "transforms")
    numbers = np.random.default_rng(0).integers(1, 256, (60, N)) / 256
    if solver != "itakura-saito":
        numbers[np.random.default_rng(1).random(numbers.shape) < 0.3] = 0
    mask = np.random.default_rng(2).random(numbers.shape) > 0.2 if masked else None
    held, options = WAYS[way]
    options = options | (
        {"solver": solver} if solver in ("hals", "mu", "anls") else {"beta_loss": solver}
    )
    ordinary, tiny = (CNMF(K, L, max_iter=15, tol=0, random_state=0, **options) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ordinary.fit(held(np.ldexp(numbers, least // 2).astype(dtype)), mask=mask)
        tiny.fit(held(np.ldexp(numbers, least).astype(dtype)), mask=mask)
    np.testing.assert_array_equal(tiny.components_, ordinary.components_)
    np.testing.assert_array_equal(tiny.history_.loss, ordinary.history_.loss)
    told = np.ldexp(tiny.activations_.astype(np.float64), least // 2 - least)
    largest = ordinary.activations_.max()
    np.testing.assert_allclose(told, ordinary.activations_, atol=2**-20 * largest)
