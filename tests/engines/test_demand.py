"""What a fit takes of memory, told before: no less than it takes, and not far more."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from motifold import ANLS, CNMF
from motifold.data import memory
from motifold.estimator import advice
from motifold.forecast.excerpts import Whole

T, N, K, L = 60_000, 12, 10, 2
X = np.random.default_rng(0).random((T, N))
WIDE = np.random.default_rng(0).random((2000, 8000))
SEEN = np.random.default_rng(1).random((T, N)) > 0.1
OF_ALL = {"tol": 1e-2, "max_iter": 3, "random_state": 0, "n_jobs": 1}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def taken(model, data, **given) -> int:
    """The peak of what the fit allocates."""
    tracemalloc.start()
    try:
        model.fit(data, **given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


COUPLED = {"x_ortho": 1e-3, "ortho_H": 1e-3, "l2_W": 1e-3}
CASES = {
    "double": (X, {}, {}),
    "single": (X.astype(np.float32), {}, {}),
    "as published": (X, {"acceleration": None}, {}),
    "mu": (X, {"solver": "mu"}, {}),
    "coupled": (X, {"x_ortho": 1e-3}, {}),
    "coupled, single, as published": (
        X.astype(np.float32), {"acceleration": None} | COUPLED, {},
    ),
    "coupled and a mask, single": (
        np.where(SEEN, X, 0).astype(np.float32), COUPLED, {"mask": SEEN},
    ),
    "coupled and a mask": (X, COUPLED, {"mask": SEEN}),
    "background": (X, {"background": True}, {}),
    "background, single": (X.astype(np.float32), {"background": True}, {}),
    "background, as published": (X, {"background": True, "acceleration": None}, {}),
    "ratios, the best of three": (X, {"beta_loss": 1, "n_init": 3}, {}),
    "wide": (WIDE, {}, {}),
    "wide, ratios": (WIDE, {"beta_loss": 1}, {}),
    "counts": ((9 * X).astype(np.int64), {}, {}),
    "mask": (X, {}, {"mask": SEEN}),
    "masked": (np.ma.masked_array(X, ~SEEN), {}, {}),
    "by rows": (csr_array(X * (X > 0.8)), {}, {}),
    "by columns": (csc_array(X * (X > 0.8)), {}, {}),
    "segments": ([X[:20_000], X[20_000:]], {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fit_takes_what_was_told(case, monkeypatch):
    data, parameters, given = CASES[case]
    told = []
    monkeypatch.setattr(
        "motifold.estimator.fitting.warn_if_too_large", lambda demand: told.append(demand.total)
    )
    model = CNMF(K, L, **(OF_ALL | parameters))
    few = [part[:1000] for part in data] if isinstance(data, list) else data.tocsr()[:1000] \
        if hasattr(data, "tocsr") else data[:1000]  # fmt: skip
    model.fit(few, **{name: value[:1000] for name, value in given.items()})  # compiles
    found, expected = taken(model, data, **given), told[-1]
    assert found <= expected <= 2.6 * found + 2**24
    assert model.estimate(data, seconds=0.01, **given).memory == pytest.approx(expected, rel=0.1)


def test_an_exact_fit_leaps_in_double_precision():
    """Whose arrays are beside those of the passes; such a leap takes too long to be measured."""
    for data in (X, X.astype(np.float32)):
        whole = Whole.of(data)
        passes, exact = (CNMF(K, L, solver=ANLS(n))._where(whole).demand for n in (1, "exact"))
        assert exact.total - passes.total == 6 * T * K * 8


def test_too_little_is_warned_of(monkeypatch):
    monkeypatch.setattr(advice, "available_bytes", lambda: 10**7)
    small, model = X[:500], CNMF(K, L, **OF_ALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", advice.ConvergenceWarning)
        model.fit(small)
        CNMF(K, L, device="cuda:twin", **OF_ALL).fit(X[:500])
    with pytest.warns(UserWarning, match=r"up to .* beside X, and 10 MB are available\. Most of"):
        model.fit(X)
    with pytest.warns(UserWarning, match="Give it as float32 or float64"):
        CNMF(1, L, **OF_ALL).fit(np.tile(9 * X, 4).astype(np.int64))


def test_what_is_wrong_is_still_told_by_name():
    for wrong, told in ((X[0], "Expected 2D"), ("text", "text"), (X[:, :0], "minimum of 1")):
        with pytest.raises((TypeError, ValueError), match=told):
            CNMF(K, L).fit(wrong)


def test_what_is_available(tmp_path, monkeypatch):
    limit, files = tmp_path / "memory.max", {"memory.current": "700", "memory.stat": "anon 5\n"}
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", (str(limit), str(tmp_path / "none")))
    free = memory.available_bytes()
    assert 0 < free <= memory.machine_bytes()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    limit.write_text("1000")
    assert memory.available_bytes() == 300
    (tmp_path / "memory.stat").write_text("anon 5\nactive_file 9\ninactive_file 200\n")
    assert memory.available_bytes() == 500  # files that were read may be dropped
    limit.write_text("600")
    assert memory.available_bytes() == 100
    limit.write_text("max")
    assert memory.available_bytes() == pytest.approx(free, rel=0.5)
