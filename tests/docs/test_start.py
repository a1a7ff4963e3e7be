"""What a new reader needs first is on the first pages, and spelt in one way."""

from __future__ import annotations

import re
import tomllib

import pytest
from pages import ROOT, blocks, name_of, pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FIRST = ("README.md", "docs/index.md", "docs/getting-started.md")


@pytest.mark.parametrize("name", FIRST)
def test_it_says_how_to_install(name):
    installs = [
        command
        for block in blocks(ROOT / name)
        if block.language == "sh"
        for command in block.commands
        if command[:2] == ["pip", "install"]
    ]
    assert installs == [["pip", "install", "."], ["pip", "install", "motifold[plots,io]"]]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_extras_are_spelt_in_one_way(page):
    """As our messages spell them; it also works after ``pip install .`` in a clone."""
    spelt = re.findall(r"pip install [^\n`]*\.\[", page.read_text())
    assert not spelt, f'{name_of(page)}: write "motifold[…]"'
    for extras in re.findall(r"motifold\[([\w, ]+)\]", page.read_text()):
        known = set(PROJECT["optional-dependencies"])
        assert {extra.strip() for extra in extras.split(",")} <= known, f"{name_of(page)}: {extras}"


def test_the_start_page_tells_where_the_repository_is():
    """There is one place for it, and the page does not say that there is none when there is."""
    says_none = "no public\naddress yet" in (ROOT / "docs" / "index.md").read_text()
    assert says_none == ("Repository" not in PROJECT["urls"])
