"""The page of promises: each one names tests, and all of them exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT

import motifold

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


@pytest.mark.slow
def test_the_tests_exist():
    """pytest itself is asked for them by name; of what is not there it says so."""
    named = sorted(set(_TEST.findall(PAGE.read_text())))
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    options = ["--collect-only", "-p", "no:cacheprovider", "-W", "ignore"]
    command = [sys.executable, "-m", "pytest", *options, *named]
    shown = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    absent = re.findall(r"not found: .*/(tests/\S+)", shown.stdout + shown.stderr)
    assert not absent
    collected = {line.partition("[")[0] for line in shown.stdout.splitlines() if "::" in line}
    assert set(named) <= collected, shown.stdout + shown.stderr
