"""The map of the modules in the docs is the one that the code gives, and says what is so."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def module_map():
    spec = importlib.util.spec_from_file_location("module_map", ROOT / "docs" / "module_map.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_up_to_date(module_map):
    drawn = module_map.TARGET.read_text()
    assert drawn == module_map.draw(), "run: python docs/module_map.py"


def test_every_room_is_drawn(module_map):
    rooms = {
        path.stem if path.suffix == ".py" else path.name
        for path in (ROOT / "src" / "motifold").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    drawn = re.findall(r"<text [^>]*>(\w+)</text>", module_map.TARGET.read_text())
    assert set(drawn) == rooms - {"__init__"}
    assert len(drawn) == len(set(drawn))


# Rooms whose files are told by their kind: a reader, a picture, a command, … each.
BY_KIND = {"cli", "datasets", "io", "plots", "reproduce", "penalties", "sources"}


def test_every_module_is_told_on_the_page():
    page = (ROOT / "docs" / "developers" / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)/` \| (.*) \|$", page, re.M))
    package = ROOT / "src" / "motifold"
    untold = []
    for path in sorted(package.rglob("*.py")):
        room, *folders = path.relative_to(package).parts[:-1] or [""]
        public = room and not path.stem.startswith("_")
        if public and not BY_KIND & {room, *folders} and f"`{path.stem}`" not in rows[room]:
            untold.append(f"{room}/{path.stem}")
    assert not untold


def test_lines_that_follow_from_others_are_left_out(module_map):
    edges = {"top": {"middle", "ground"}, "middle": {"ground"}, "ground": {"top"}}
    level = {"ground": 0, "middle": 1, "top": 2}
    assert module_map.reduced(edges, level) == [("top", "middle"), ("middle", "ground")]


def test_imports_are_read_from_the_code(module_map):
    rooms = [room for floor in module_map.floors() for room in floor]
    edges = module_map.imports(rooms)
    assert edges["kernels"] == set()
    assert "engines" in edges["fit"]
    assert {"estimator", "report"} <= edges["cli"]


def test_the_architecture_page_tells_of_every_room(module_map):
    """A room is named in the table of the page, where its job is told."""
    page = (ROOT / "docs" / "developers" / "architecture.md").read_text()
    told = set(re.findall(r"`(\w+)(?:\.py|/)`", page))
    rooms = {room for floor in module_map.floors() for room in floor}
    assert rooms <= told, "add its row to the table"
