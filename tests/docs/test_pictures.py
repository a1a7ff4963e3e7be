"""What pages draw: every plot function has its picture, and pictures say what is to be seen."""

from __future__ import annotations

import re
import sys

import pytest
from pages import ROOT, blocks, name_of, pages

import motifold.plots

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
DRAWN = [page for page in pages() if any(block.picture for block in blocks(page))]
# The pages that speak of curves and pictures.
SHOWN = ("choose", "missing", "segments", "events", "prepare", "below-zero", "figures")


def pictures(name: str) -> list[str]:
    return [block.picture for block in blocks(ROOT / "docs" / name) if block.picture]


def test_every_plot_function_has_its_picture():
    functions = [name for name in motifold.plots.__all__ if name.startswith("plot_")]
    assert sorted(pictures("api/plots.md")) == sorted(functions)
    template = (ROOT / "docs" / "_templates" / "autosummary" / "base.rst").read_text()
    assert ".. drawn:: api/plots {{ objname }}" in template


@pytest.mark.parametrize("name", SHOWN)
def test_how_to_pages_show_what_they_speak_of(name):
    assert pictures(f"how-to/{name}.md")


def test_the_curves_of_choosing_are_shown():
    assert pictures("how-to/choose.md") == ["n-components", "lengths", "crossover"]


@pytest.mark.parametrize("page", DRAWN, ids=name_of)
def test_pictures_have_words_and_names_of_their_own(page):
    text = page.read_text()
    for name, body in re.findall(r"^```\{picture\} (\S+)\n(.*?)^```", text, re.M | re.S):
        assert re.search(r"^:alt: \S.{9,}$", body, re.M), f"{name_of(page)}: {name}"
    names = [block.picture for block in blocks(page) if block.picture]
    assert len(names) == len(set(names))


def test_a_picture_runs_after_the_blocks_above_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```{picture} one\n:alt: a curve of it\nx\n```\n\n"
        "<!-- skip: no network -->\n```python\nx = 2\n```\n\n```python\nx = 3\n```\n"
    )
    first, second, third, fourth = blocks(page)
    assert (second.picture, second.code) == ("one", "\nx\n")
    assert [block.runs for block in (first, second, third, fourth)] == [True, True, False, True]


def test_lambda_is_a_word_that_can_be_searched():
    """λ is found by nobody who types "lambda": the word is in a heading of its pages."""
    for name in ("how-to/choose.md", "theory/penalties.md", "coming-from/seqnmf.md"):
        headings = re.findall(r"^#+ .*$", (ROOT / "docs" / name).read_text(), re.M)
        assert any("lambda" in heading for heading in headings), name
