"""Every public name is on a page of the reference, and its docstring has an example that runs."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import motifold

API = Path(__file__).parents[2] / "docs" / "api"
ROOMS = (
    "findings",
    "solvers",
    "prepare",
    "datasets",
    "plots",
    "io",
    "exports",
    "sound",
    "report",
    "reproduce",
    "streaming",
    "forecast",
    "dask",
)
# Not functions or classes: the pages name them in a sentence.
CONSTANTS = {"motifold.__version__", "motifold.solvers.SOLVERS"}


def public_names() -> list[str]:
    """Each object once, by the shortest name it is imported by."""
    names = {f"motifold.{name}": getattr(motifold, name) for name in motifold.__all__}
    for room in ROOMS:
        module = import_module(f"motifold.{room}")
        for name in module.__all__:
            known = any(getattr(module, name) is value for value in names.values())
            if not known:
                names[f"motifold.{room}.{name}"] = getattr(module, name)
    return sorted(names)


def listed_names() -> list[str]:
    """What the pages list in their tables."""
    names = []
    for page in sorted(API.glob("*.md")):
        for module, body in re.findall(
            r"\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n(.*?)```", page.read_text(), re.S
        ):
            names += [f"{module}.{name}" for name in re.findall(r"^   (\w[\w.]*)$", body, re.M)]
    return names


def find(name: str) -> object:
    path, _, attribute = name.rpartition(".")
    return getattr(import_module(path), attribute)


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text() for page in API.glob("*.md"))
    assert set(public_names()) - CONSTANTS <= set(listed_names())
    assert all(f"`{name}`" in text for name in CONSTANTS)


def test_no_name_is_listed_twice_or_in_vain():
    listed = listed_names()
    assert len(listed) == len(set(listed))
    for name in listed:
        assert find(name) is not None


@pytest.mark.parametrize("name", listed_names())
def test_every_name_has_an_example(name):
    sections = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.getdoc(find(name)) or "", flags=re.M)
    assert "Examples" in sections, f"{name}: its docstring needs a section Examples"
    assert ">>> " in sections[sections.index("Examples") + 1]


def test_every_command_has_an_example_or_needs_none():
    from motifold.cli import main

    simple = {"demo", "reproduce", "bench", "doctor"}
    for name in main.list_commands(None):
        command = main.get_command(None, name)
        assert name in simple or f"motifold {name} " in (command.help or ""), name
