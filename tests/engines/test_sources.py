"""Only the engine reads X, through a source, and no oftener than it must.

The data of these tests exists nowhere: a source makes its rows when it is asked, and keeps a record
of every question. Whoever gets at X in another way, by whatever spelling, gets nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from motifold import CNMF
from motifold.data.sources import Source
from motifold.datasets import make_sequences

T, N, K, L = 6000, 8, 2, 5


class Recorded:
    """Rows on demand."""

    chunk, slow = 1, True

    def __init__(self, X: np.ndarray) -> None:
        self._make = lambda a, b: X[a:b].copy()
        self.shape, self.dtype = X.shape, X.dtype
        self.asked: list[tuple[int, int]] = []

    def rows(self, a: int, b: int) -> np.ndarray:
        self.asked.append((a, b))
        rows = self._make(a, b)
        rows.flags.writeable = False
        return rows

    def scans(self) -> float:
        """How often the whole has been read."""
        return sum(b - a for a, b in self.asked) / self.shape[0]


def recording(dtype=np.float64) -> np.ndarray:
    return make_sequences(T, N, K, L, noise=0.05, random_state=0).X.astype(dtype)


def test_what_is_asked_is_all_that_a_source_is():
    assert isinstance(Recorded(recording()), Source)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.parametrize("acceleration", ["auto", None])
def test_a_fit_reads_the_source_and_nothing_else(solver, acceleration, dtype):
    """The same bits as from an array, with lags, segments, a start on less, revival, centring."""
    X = recording(dtype)
    options = {"solver": solver, "acceleration": acceleration, "center": True, "x_ortho": 1e-3}
    options |= {"random_state": 0, "max_iter": 6, "tol": 0, "n_init": 2}
    lengths = [4000, 1500, 500]
    plain = CNMF(K + 1, L, **options).fit(X, lengths=lengths)
    source = Recorded(X)
    model = CNMF(K + 1, L, **options).fit(source, lengths=lengths)
    np.testing.assert_array_equal(model.components_, plain.components_)
    np.testing.assert_array_equal(model.activations_, plain.activations_)
    np.testing.assert_array_equal(model.history_.loss, plain.history_.loss)
    np.testing.assert_array_equal(model.transform(source), plain.transform(X))
    assert model.score(source) == plain.score(X)
    assert source.asked


def test_long_motifs_read_the_source_too():
    X = recording()[:1500]
    plain = CNMF(2, 200, random_state=0, max_iter=3, tol=0).fit(X)
    model = CNMF(2, 200, random_state=0, max_iter=3, tol=0).fit(Recorded(X))
    np.testing.assert_array_equal(model.components_, plain.components_)


def test_bad_values_of_a_source_are_told_with_their_place():
    X = recording()
    X[4321, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first at row 4321, column 3"):
        CNMF(K, L).fit(Recorded(X), lengths=[4000, 2000])


@pytest.mark.parametrize("acceleration", ["auto", None])
def test_the_data_is_not_read_oftener_than_it_must(acceleration):
    """One look, one for the start, two an iteration: nothing twice for the same factors."""
    scans = []
    for max_iter in (2, 3, 7):
        source = Recorded(recording())
        CNMF(K, L, random_state=0, acceleration=acceleration, tol=0, max_iter=max_iter).fit(source)
        scans.append(source.scans())
    taken_back = 1  # an extrapolated step that was repeated, at most
    assert (scans[2] - scans[1]) / 4 <= 2 + 2 * taken_back / 4
    # Checks and facts; C of the start; the same after the start on less, and its own reading.
    start = 2 if acceleration is None else 3 + 16 * 2 / 6
    # The certificate at the end needs P and B of the last activations.
    end = 1 if acceleration is None else 3
    assert scans[0] <= start + 2 * 2 + end


def test_given_motifs_are_matched_with_the_data_once():
    source = Recorded(recording())
    given = np.random.default_rng(0).random((K, L, N))
    options = {"random_state": 0, "tol": 0, "max_iter": 1, "acceleration": None}
    CNMF(K, L, **options).fit(source, components_init=given)
    # Facts, C of the start, P and C of the iteration, P of the certificate.
    assert source.scans() == pytest.approx(5)
