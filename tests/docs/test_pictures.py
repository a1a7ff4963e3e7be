"""What pages draw: every plot function has its picture, and pictures say what is to be seen."""

from __future__ import annotations

import re
import sys
import types

import pytest
from pages import ROOT, blocks, name_of, pages

import motifold.plots

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
DRAWN = [page for page in pages() if any(block.picture for block in blocks(page))]
# The pages that speak of curves and pictures.
SHOWN = (
    *(f"how-to/{name}" for name in ("choose", "missing", "segments", "events", "prepare")),
    *(f"how-to/{name}" for name in ("below-zero", "figures", "sound", "large", "how-long")),
    *(f"theory/{name}" for name in ("hals", "mu", "anls", "statistics")),
)


def pictures(name: str) -> list[str]:
    return [block.picture for block in blocks(ROOT / "docs" / name) if block.picture]


def test_every_plot_function_has_its_picture():
    functions = [name for name in motifold.plots.__all__ if name.startswith("plot_")]
    assert sorted(pictures("api/plots.md")) == sorted(functions)
    template = (ROOT / "docs" / "_templates" / "autosummary" / "base.rst").read_text()
    assert ".. drawn:: api/plots {{ objname }}" in template


@pytest.mark.parametrize("name", SHOWN)
def test_pages_show_what_they_speak_of(name):
    assert re.search(r"^```\{(picture|drawn)\} ", (ROOT / f"docs/{name}.md").read_text(), re.M)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "coming-from").glob("*.md")), ids=name_of)
def test_who_comes_from_elsewhere_sees_a_picture(page):
    if page.stem not in ("index", "matlab", "peers"):  # lists and tables
        assert re.search(r"^```\{(picture|drawn)\} ", page.read_text(), re.M)


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


@pytest.mark.parametrize(("given", "drawn"), [("0", False), ("False", False), ("True", True)])
def test_a_quick_build_draws_nothing(given, drawn, monkeypatch, tmp_path):
    """``-D plot_gallery=0`` gives text, which is true in Python."""
    pytest.importorskip("sphinx")
    import pictures as extension

    asked: list[object] = []
    monkeypatch.setattr(extension, "_FOLDER", tmp_path)
    monkeypatch.setattr(extension, "_draw_apart", lambda page: asked.append(page) or "")
    app = types.SimpleNamespace(config=types.SimpleNamespace(plot_gallery=given))
    extension.draw_what_has_changed(app)
    assert bool(asked) == drawn
