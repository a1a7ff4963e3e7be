"""Imports go downwards only, optional libraries stay in their rooms, ``import`` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import motifold

ROOT = Path(motifold.__file__).parent

# From the ground up: a module may import those on lower floors (and of its own room).
FLOORS = [
    ["motifold.kernels", "motifold.matching", "motifold.files"],
    ["motifold.problem", "motifold.parallel"],
    ["motifold.toeplitz", "motifold.subset"],
    ["motifold.spectral", "motifold.missing"],
    ["motifold.statistics"],
    ["motifold.solvers", "motifold.certificate"],
    ["motifold.subproblem"],
    ["motifold.state", "motifold.deconvolve", "motifold.initialize"],
    ["motifold.descent", "motifold.results", "motifold.progress", "motifold.validation"],
    ["motifold.moves"],
    ["motifold.fit"],
    ["motifold._compat"],
    ["motifold.estimator", "motifold.datasets", "motifold.io"],
    ["motifold.stored"],
    ["motifold.persistence", "motifold.findings"],
    ["motifold.plots"],
    ["motifold.demo", "motifold.reproduce", "motifold.checkpoint"],
    ["motifold.report"],
    ["motifold.cli"],
]
LATE = {("motifold.estimator", "motifold.persistence")}  # inside CNMF.save
HOMES = {
    "matplotlib": "motifold.plots",
    "tqdm": "motifold.progress",
    "numba": "motifold.kernels",
    "pooch": "motifold.datasets",
    "requests": "motifold.datasets",
    "click": "motifold.cli",
    **dict.fromkeys(
        ("h5py", "zarr", "polars", "soundfile", "pynwb", "pynapple", "xarray"), "motifold.io"
    ),
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if name != "motifold":
            yield name, path


def room_and_floor(module: str) -> tuple[str, int]:
    for floor, rooms in enumerate(FLOORS):
        for room in rooms:
            if module == room or module.startswith(room + "."):
                return room, floor
    raise AssertionError(f"{module} has no floor: give it one here and in the architecture page")


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: str(value)[-40:])
def test_imports_go_downwards(module, path):
    room, floor = room_and_floor(module)
    for imported in imports(path):
        if not imported.startswith("motifold."):
            continue
        other, below = room_and_floor(imported)
        late = (module, imported) in LATE
        assert other == room or below < floor or late, f"{module} must not import {imported}"


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: str(value)[-40:])
def test_each_library_has_one_home(module, path):
    for imported in imports(path):
        home = HOMES.get(imported.split(".")[0])
        assert home is None or room_and_floor(module)[0] == home


def test_the_solvers_never_read_the_data():
    """Only the statistics, the border and what measures the data know ``segment.X``."""
    readers = {
        module
        for module, path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "X"
        and isinstance(node.value, ast.Name)
        and node.value.id == "segment"
    }
    assert readers == {"motifold.statistics", "motifold.problem"}


def test_import_is_light():
    code = "import sys, motifold; print(*sorted({'numba', 'sklearn', 'scipy'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""


def test_every_public_name_is_there():
    for name in motifold.__all__:
        assert getattr(motifold, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        motifold.nonsense  # noqa: B018
