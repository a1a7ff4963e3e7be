"""Any stretch as a few columns: what is largest is kept, and little of the table is read."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.explorer.pyramid import Pyramid

T, N = 5003, 7


class Counting:
    """A table that knows how many of its rows were asked for."""

    def __init__(self, values):
        self.values, self.shape, self.read = values, values.shape, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        found = self.values[rows]
        self.read += len(found)
        return found


@pytest.fixture
def values():
    return np.random.default_rng(0).random((T, N)).astype(np.float32)


def test_a_short_table_is_read_as_it_is(values):
    columns = Pyramid.of(values).columns(10, 15, 100)
    np.testing.assert_array_equal(columns.values, values[10:15])
    assert columns.edges.tolist() == [10, 11, 12, 13, 14, 15]


def test_columns_hold_the_largest_of_their_bins(values):
    for pyramid, at_once in ((Pyramid.of(values), 10**9), (Pyramid.of(values, at_once=0), 0)):
        columns = pyramid.columns(100, 4900, 50, at_once)
        assert len(columns.values) == 50
        assert columns.edges[0] <= 100
        assert columns.edges[-1] >= 4900
        for i, row in enumerate(columns.values):
            a, b = columns.edges[i : i + 2]
            np.testing.assert_array_equal(row, values[a:b].max(axis=0))


def test_a_long_stretch_does_not_touch_the_table(values):
    table = Counting(values)
    pyramid = Pyramid.of(table, at_once=0)
    assert table.read == T  # once, to make it
    pyramid.columns(0, T, 100, at_once=1000)
    assert table.read == T
    pyramid.columns(0, 100, 100, at_once=1000)
    assert table.read == T + 100


def test_the_end_is_there_and_nothing_beyond(values):
    columns = Pyramid.of(values, at_once=0).columns(T - 30, T, 100, at_once=0)
    assert columns.edges[-1] == T
    assert columns.values.max() == values[columns.edges[0] :].max()


def test_missing_entries_hide_nothing(values):
    values[3, 2] = np.nan
    values[64:96] = np.nan
    pyramid = Pyramid.of(values, at_once=0)
    assert pyramid.has_nan
    assert pyramid.coarse[0, 2] == np.nanmax(values[: pyramid.step, 2])
    assert np.isnan(pyramid.columns(64, 96, 2, at_once=0).values).all()
    assert not Pyramid.of(values[200:]).has_nan
