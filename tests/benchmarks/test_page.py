"""One command writes the whole page of benchmarks from the numbers that were kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"


@pytest.fixture
def scripts(monkeypatch):
    """The modules of the folder; they import each other by their bare names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    import harness
    import page
    import run

    yield harness, page, run
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").exists():
            del sys.modules[name]


def test_the_page_is_what_its_numbers_say(scripts, tmp_path):
    """Written anew it is the same, and nothing of it is lost."""
    harness, page, _ = scripts
    copy = tmp_path / "benchmarks.md"
    copy.write_text(PAGE.read_text())
    (tmp_path / "images").mkdir()
    said = page.write_page(copy, tmp_path / "images", FOLDER)
    assert copy.read_text() == PAGE.read_text()
    names = harness.section_names(PAGE.read_text())
    assert set(names) >= {"threads", "equivalence", "findings", "penalties", "losses", "streams"}
    assert len(said) == 1 + len(names)


def test_rows_of_several_commits_are_told_so(scripts, tmp_path, monkeypatch):
    harness, *_ = scripts
    import estimate

    monkeypatch.setattr(estimate, "RESULTS", tmp_path / "estimate.json")
    for commit, problem in (("aaa", "one"), ("bbb", "two"), ("ccc", "one")):
        monkeypatch.setattr(harness, "machine", lambda commit=commit: {"commit": commit})
        estimate.keep("predicted", [{"problem": problem}], lambda row: row["problem"])
    part = estimate.kept()["predicted"]
    assert estimate.commits(part) == "commits bbb, ccc"


def test_each_section_tells_its_commit():
    text = PAGE.read_text()
    for name in ("results", "losses", "sound", "equivalence"):
        commit = json.loads((FOLDER / f"{name}.json").read_text())["machine"]["commit"]
        assert f"at commit {commit}" in text, name


def test_every_problem_on_the_page_is_explained(scripts):
    _, _, run = scripts
    results = json.loads((FOLDER / "results.json").read_text())
    named = {row["problem"] for part in ("torchnmf", "others", "sklearn") for row in results[part]}
    explained = {row[0] for row in run.ABOUT}
    for name in named:
        kind, _, size = name.rpartition("-")
        assert name in explained or (size.isdigit() and f"{kind}-T" in explained), name


def test_pictures_can_be_drawn_again(scripts, tmp_path):
    _, _, run = scripts
    curve = [(0.01 * i, 1 / (1 + i)) for i in range(1000)]
    kept = run.thinned(curve)
    assert len(kept) <= 200
    assert (kept[0], kept[-1]) == (curve[0], curve[-1])
    row = {"problem": "song", "curves": {"torchnmf": kept, "hals": kept}}
    run.draw({"machine": {"commit": "abc"}, "torchnmf": [row, {"problem": "old"}]}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["benchmark-song.png"]


def test_other_pages_are_what_their_numbers_say(scripts, tmp_path):
    """How long it takes, and the README."""
    harness, page, _ = scripts
    import estimate

    copies = tmp_path / "how-long.md", tmp_path / "README.md"
    pages = {"estimate": estimate.PAGE, "numbers": ROOT / "README.md"}
    for copy, (name, path) in zip(copies, pages.items(), strict=True):
        copy.write_text(harness.with_section(path.read_text(), name, "to be written"))
    page.write_others(FOLDER, *copies)
    for copy, path in zip(copies, pages.values(), strict=True):
        assert copy.read_text() == path.read_text()
    kept = json.loads((FOLDER / "estimate.json").read_text())
    told = {row["problem"] for row in kept["predicted"]["rows"]}
    assert told == {*estimate.PLAIN, *estimate.VARIANTS}
    times = {T for *_, sizes in estimate.SIZES.values() for T in sizes}
    assert (min(times), max(times)) == (10**3, 10**7)
