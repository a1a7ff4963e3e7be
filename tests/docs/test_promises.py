"""The page of promises: each one names tests, and all of them exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pages import ROOT

PAGE = ROOT / "docs" / "promises.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def rows() -> list[str]:
    """The rows of the tables, without their titles."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("| promise |", "|---"))]


def test_every_promise_names_its_tests():
    assert len(rows()) > 30
    for row in rows():
        _, promise, proof, _ = row.split("|")
        assert promise.strip()
        rest = _TEST.sub("", proof).replace(",", "").strip()
        assert _TEST.search(proof), f"no test for: {promise}"
        assert not rest, f"what is no test: {rest}"


def test_every_section_says_what_is_not_promised():
    _, *sections = PAGE.read_text().split("\n## ")
    assert len(sections) == 7
    for section in sections:
        assert "\nNot promised" in section, section.splitlines()[0]


def collected_from(path: Path) -> set[str]:
    """What pytest collects of a file: functions of the module, by their beginning."""
    if not path.is_file() or not path.name.startswith("test_"):
        return set()
    defined = ast.parse(path.read_text()).body
    names = [node.name for node in defined if isinstance(node, ast.FunctionDef)]
    assert len(names) == len(set(names)), f"{path}: a function hides another of its name"
    return {name for name in names if name.startswith("test")}


def test_the_tests_exist(tmp_path):
    named = sorted(set(_TEST.findall(PAGE.read_text())))
    found = {
        path: collected_from(ROOT / path) for path in {one.partition("::")[0] for one in named}
    }
    assert [one for one in named if one.split("::")[1] not in found[one.split("::")[0]]] == []
    for name in ("test_a.py", "b.py"):
        (tmp_path / name).write_text("def helper(): ...\ndef test_it():\n    def test_in(): ...\n")
    assert collected_from(tmp_path / "test_a.py") == {"test_it"}
    assert collected_from(tmp_path / "b.py") == collected_from(tmp_path / "test_c.py") == set()
