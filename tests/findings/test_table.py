"""Tables of results, as a terminal shows them."""

from __future__ import annotations

import pytest

from motifold.findings import Table

RECORDS = [
    {"n_components": k, "n_lags": 20, "seed": seed, **{f"measure_{i}": k + i / 7 for i in range(9)}}
    for k in (1, 2)
    for seed in range(2)
]
KEYS = ["n_components", "n_lags", "seed"]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    lines = Table(RECORDS).text(width, KEYS).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0] == "In all rows: n_lags 20."
    headers = [line.split() for line in lines if "measure" in line]
    assert len(headers) > 1
    assert all(names[:2] == ["n_components", "seed"] for names in headers)
    shown = [name for names in headers for name in names[2:]]
    assert shown == [f"measure_{i}" for i in range(9)]


def test_what_fits_stays_in_one_piece():
    table = Table([{"motif": 0, "p": 0.5}, {"motif": 1, "p": 0.25}])
    assert table.text(80, ["motif"]) == repr(table)
    assert Table(table.records[:1]).text(80) == repr(Table(table.records[:1]))
    assert Table([], ["motif", "p"]).text(80) == repr(Table([], ["motif", "p"]))


def test_long_tables_say_how_many_rows_more():
    table = Table([{"a": i, "b": i} for i in range(30)])
    assert table.text(80).splitlines()[-1] == "… 10 rows more"
    assert repr(table).splitlines()[-1] == "… 10 rows more"
