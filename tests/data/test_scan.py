"""The one look at all of X: several threads tell what one does."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.data import facts, scan
from motifold.data.validation import recording_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_threads_make_no_difference(dtype, size, monkeypatch):
    monkeypatch.setattr(facts, "_LARGE", 0)
    X = (size * np.random.default_rng(0).random((5000, 3))).astype(dtype)
    data = recording_of(X, [3000, 2000], None, None)
    one, several = (scan(data, 2**16, threads=threads) for threads in (1, 4))
    assert one == several
    assert one.squared_norm > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_bad_value_is_told_with_its_place(bad, monkeypatch):
    monkeypatch.setattr(facts, "_LARGE", 0)
    X = np.ones((5000, 3))
    X[4321, 1] = bad
    told = []
    for threads in (1, 4):
        with pytest.raises(ValueError, match="4321") as raised:
            scan(recording_of(X, None, None, None), 2**16, threads=threads)
        told.append(str(raised.value))
    assert told[0] == told[1]
