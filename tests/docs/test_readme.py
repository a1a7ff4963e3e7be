"""The README's table of features: a test behind each yes of ours, and the peers' page agrees."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

README = ROOT / "README.md"
PEERS = ROOT / "docs" / "coming-from" / "peers.md"
_PROVED = re.compile(r'^\[([^\]]+)\]\((tests/[\w/]+\.py) "(test_\w+)"\)$')


def table(text: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose title begins so; "" is the name of the feature."""
    lines = iter(text.splitlines())
    header = next(line for line in lines if line.startswith(first))
    names = [name.strip() for name in header.strip("|").split("|")]
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.append(dict(zip(names, cells, strict=True)))
    return rows


OURS = table(README.read_text(), "| | motifold |")


@pytest.mark.parametrize("row", OURS, ids=lambda row: row[""])
def test_what_we_say_yes_to_has_a_test(row):
    ours = row["motifold"]
    if row[""] == "language" or ours == "no":
        return
    proved = _PROVED.match(ours)
    assert proved, f"no link to a test: {ours}"
    _, path, name = proved.groups()
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), ours


def test_the_table_is_that_of_the_page_of_peers():
    whole = {row[""]: row for row in table(PEERS.read_text(), "| | motifold |")}
    assert len(OURS) > 8
    for row in OURS:
        there = whole[row[""]]
        proved = _PROVED.match(row["motifold"])
        mine = {**row, "motifold": proved[1] if proved else row["motifold"]}
        assert mine == {name: there[name] for name in row}, row[""]
