"""``CNMF.estimate``: of any recording and model, without reading or changing what is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from motifold import ANLS, CNMF
from motifold.data.sources.kinds import Sliced
from motifold.datasets import make_sequences
from motifold.engines.demand import Demand
from motifold.forecast import foretelling
from motifold.forecast.estimate import duration
from motifold.forecast.excerpts import Whole
from motifold.forecast.pilots import Pilot, _further
from motifold.io import Recording

T, N, K, L = 3000, 12, 2, 6
X = make_sequences(T, N, K, L, random_state=0).X
SEEN = np.random.default_rng(0).random(X.shape) > 0.1
LITTLE = 0.02  # seconds: the numbers do not matter


def estimate(data, *, parameters=None, **given):
    settings = {"random_state": 0, **(parameters or {})}
    return CNMF(K, L, **settings).estimate(data, seconds=LITTLE, **given)


def with_nan():
    return np.where(SEEN, X, np.nan)


def mapped(folder, dtype):
    file = np.memmap(folder / "x.raw", dtype, "w+", shape=X.shape)
    file[:] = X
    return file


KINDS = {
    "array": lambda folder: (X, {}),
    "single": lambda folder: (X.astype(np.float32), {}),
    "counts": lambda folder: (X.astype(np.int16), {}),
    "turned": lambda folder: (np.asfortranarray(X), {}),
    "numbers": lambda folder: (X.tolist(), {}),
    "sparse": lambda folder: (csr_array(X), {}),
    "by columns": lambda folder: (csc_array(X), {}),
    "mapped": lambda folder: (mapped(folder, np.float64), {}),
    "mapped counts": lambda folder: (mapped(folder, np.int16), {}),
    "mask": lambda folder: (with_nan(), {"mask": SEEN}),
    "masked": lambda folder: (np.ma.masked_array(X, ~SEEN), {}),
    "segments": lambda folder: ([X[:1000], X[1000:1100], X[1100:]], {}),
    "masks": lambda folder: ([X[:1000], X[1000:]], {"mask": [SEEN[:1000], SEEN[1000:]]}),
    "lengths": lambda folder: (X, {"lengths": [100] * 30}),
    "ids": lambda folder: (X, {"segments": np.repeat([0, 1], [1000, 2000])}),
    "recording": lambda folder: (Recording(X, "made up", lengths=(1000, 2000), rate=10.0), {}),
    "holes": lambda folder: (Recording(with_nan(), "made up", missing="mask"), {}),
    "sparse recording": lambda folder: (Recording(csr_array(X), "made up"), {}),
    "support": lambda folder: (X, {"activation_support": SEEN[:, :K]}),
    "start": lambda folder: (
        X,
        {"components_init": np.ones((K, L, N)), "activations_init": np.ones((T, K))},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_of_any_recording(kind, tmp_path):
    data, given = KINDS[kind](tmp_path)
    found = estimate(data, **given)
    assert (found.n_samples, found.n_features) == (T, N)
    assert (found.n_components, found.n_lags) == (K, L)
    assert found.dtype == ("float32" if kind == "single" else "float64")
    assert 0 < found.iteration_seconds < found.fit_seconds
    assert found.memory > 0
    assert found.read > 0


def test_of_stores_and_frames(tmp_path):
    zarr = pytest.importorskip("zarr")
    pandas = pytest.importorskip("pandas")
    stored = zarr.create_array(str(tmp_path / "x.zarr"), shape=X.shape, chunks=(500, N), dtype="f4")
    stored[:] = X
    assert estimate(stored).read_from_disk == 0  # there is room for all of it
    found = estimate(stored, parameters={"memory_limit": "460KB"})
    assert 0 < found.read_from_disk <= found.read == 2 * X.size * 4
    assert "disk" in str(found)
    assert estimate(pandas.DataFrame(X)).n_samples == T


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "mu"},
        {"solver": ANLS(h_passes="exact")},
        {"acceleration": None, "max_iter": 20},
        {"beta_loss": "kullback-leibler"},
        {"beta_loss": 1.5, "l1_H": 1e-3, "l1_W": 1e-3},
        {"background": True, "boundary": "valid", "center": True},
        {"x_ortho": 1e-3, "ortho_H": 1e-3},
        {"allow_negative": True},
        {"n_jobs": 2, "n_init": 3},
    ],
    ids=str,
)
def test_of_any_model(parameters):
    found = estimate(X, parameters=parameters)
    assert found.fit_seconds > found.iteration_seconds > 0
    assert found.n_starts == parameters.get("n_init", 1)


def test_fixed_motifs():
    given = {"components_init": np.ones((K, L, N))}
    assert estimate(X, parameters={"fixed_components": [0]}, **given).n_iter >= 1


def test_on_the_twin_of_a_gpu():
    found = estimate(X[:600], parameters={"device": "cuda:twin", "max_iter": 5})
    assert found.engine == "cuda:twin, HALS"
    assert found.device_memory > X[:600].nbytes
    assert "on the GPU" in str(found)


def test_the_model_is_left_as_it_is():
    def callback(state):
        raise AssertionError("it is not the user's fit")

    rng = np.random.RandomState(0)
    model = CNMF(K, L, random_state=rng, callback=callback, verbose=1)
    before = {**vars(model)}
    expected = rng.get_state()[1].copy()
    model.estimate(X, seconds=LITTLE)
    assert vars(model) == before
    np.testing.assert_array_equal(rng.get_state()[1], expected)


class Asked:
    """A recording that is nowhere: its rows are made when they are asked for, and counted."""

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, T: int) -> None:
        self.shape, self.rows = (T, N), 0

    def __getitem__(self, rows):
        self.rows += rows.stop - rows.start
        return np.random.default_rng(rows.start).random((rows.stop - rows.start, N), np.float32)

    def as_rows(self, name):
        return Sliced(self, name)


def test_little_is_read():
    X = Asked(10**8)
    model = CNMF(K, L, random_state=0, memory_limit="14GB")
    found = model.estimate(X, seconds=LITTLE)
    assert X.rows < 0.02 * 10**8
    assert found.n_samples == 10**8
    assert found.read_from_disk > 10**9
    assert found.iteration_seconds > 1


def test_what_is_wrong_is_told():
    for wrong in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="seconds must be a number above zero"):
            CNMF(K, L).estimate(X, seconds=wrong)
    with pytest.raises(ValueError, match=r"no table of \(time, features\)"):
        estimate(X[0])
    with pytest.raises(ValueError, match="NaN"):
        estimate(np.full(X.shape, np.nan))
    with pytest.raises(ValueError, match="ortho_H is for squared error"):
        estimate(X, parameters={"beta_loss": 1, "ortho_H": 1.0})


def test_an_excerpt_has_something_that_is_observed():
    seen = np.zeros(X.shape, bool)
    seen[-3:] = True
    assert Whole.of(X, mask=seen).excerpt(100, L).missing_share < 1
    assert estimate(X, mask=seen).n_iter >= 1


def test_excerpts_are_evenly_spaced_and_stay_within_segments():
    numbers = np.arange(1.0, T + 1)[:, None] * np.ones(N)
    found = Whole.of(numbers, lengths=[1000, 2000]).excerpt(4 * 20 * L, L)
    firsts = [part[0, 0] for part in found.X]
    assert len(firsts) == 4
    assert np.ptp(np.diff(firsts)) < T / 4
    assert not any(part[0, 0] <= 1000 < part[-1, 0] for part in found.X)
    assert found.n_samples == sum(len(part) for part in found.X)


# --- the cost model -------------------------------------------------------------------------------


def pilots(fixed: float, each: float, bins, n_iter=50.0):
    """What fits of excerpts would have taken."""
    times = [fixed + each * n for n in bins]
    return [
        Pilot(n, 6 * t, t, 1.2 * t, 60 * t, n_iter, 10 * t)
        for n, t in zip(bins, times, strict=True)
    ]


def told(monkeypatch, model, found, T=100_000, **where):
    """The estimate from such pilots, all of them whole fits."""
    monkeypatch.setattr(foretelling, "probe", lambda *args: None)
    monkeypatch.setattr(foretelling, "_to_the_end", lambda *args: found)
    monkeypatch.setattr(foretelling, "_at_length", lambda *args: [])
    whole = Whole.of(np.broadcast_to(np.float32(1), (T, N)))
    place = foretelling.Where("CPU, HALS", 2, Demand(10**6), **where)
    return foretelling.foretold(model, whole, place, 1.0)


def test_times_are_taken_to_all_of_the_recording(monkeypatch):
    found = told(monkeypatch, CNMF(K, L, n_init=3), pilots(2e-3, 1e-6, [1000, 16_000]))
    one = 2e-3 + 1e-6 * 100_000
    assert found.iteration_seconds == pytest.approx(one)
    assert found.n_iter == 50
    assert found.fit_seconds == pytest.approx(3 * one * (6 + 49 * 1.2 + 10))


def test_neither_term_is_below_zero(monkeypatch):
    falling = [*pilots(1e-3, 0, [4000]), *pilots(2e-3, 0, [1000])]
    assert told(monkeypatch, CNMF(K, L), falling).iteration_seconds > 1e-3
    steep = [*pilots(0, 1e-6, [1000]), *pilots(0, 2e-6, [4000])]
    assert told(monkeypatch, CNMF(K, L), steep).iteration_seconds > 0.1


def test_limits_of_the_fit_are_limits_of_the_estimate(monkeypatch):
    measured = pilots(2e-3, 1e-6, [1000, 16_000], n_iter=500.0)
    assert told(monkeypatch, CNMF(K, L, max_iter=30), measured).n_iter == 30
    assert told(monkeypatch, CNMF(K, L, tol=0, max_iter=70), measured).n_iter == 70
    limited = told(monkeypatch, CNMF(K, L, max_time=5), measured)
    assert limited.fit_seconds == pytest.approx(5.5)
    assert "max_time ends it" in str(limited)


def test_a_residual_that_has_not_come_far_is_followed():
    m = np.arange(1.0, 41)
    series = _further(m, 0.1 * 0.95**m, 1e-3)  # its end is after 90
    assert 60 < series < 300
    power = _further(m, 0.5 / m, 1e-3)  # after 500
    assert 150 < power < 1000
    assert _further(m, np.full(40, np.inf), 1e-3) == math.inf
    assert _further(m, 0.1 / m, 0.0) == math.inf
    assert _further(m, 1e-4 / m, 1e-3) == pytest.approx(40)


def test_a_part_that_keeps_its_transforms_does_not_mislead(monkeypatch):
    """Of the whole they would not fit, and are made anew in every pass."""
    slow = told(monkeypatch, CNMF(3, 200), pilots(0, 1e-6, [4000, 20_000]), T=10_000_000)
    assert slow.iteration_seconds > 10.2


def test_it_says_what_is_short(monkeypatch):
    monkeypatch.setattr(foretelling, "available_bytes", lambda: 10**5)
    found = told(monkeypatch, CNMF(K, L), pilots(2e-3, 1e-6, [1000, 16_000]))
    assert not found.fits
    assert "are all there is" in str(found)
    assert "acceleration=None" in found.notes[-1]


def test_durations():
    assert [duration(s) for s in (0.9994, 1.0, 99.4, 99.6, 3600 * 100)] == [
        "999 ms",
        "1 s",
        "99 s",
        "1.7 min",
        "100 h",
    ]


@pytest.mark.slow
def test_seconds_are_about_right():
    """Within a factor of four here, where anything may run beside; measured in docs/."""
    X = make_sequences(30_000, 100, 5, 20, random_state=0).X.astype(np.float32)
    model = CNMF(5, 20, random_state=0, tol=0, max_iter=25)
    found = model.estimate(X)
    took = model.fit(X).history_.seconds[-1]
    assert 1 / 4 < found.fit_seconds / took < 4
