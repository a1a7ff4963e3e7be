"""Imports go downwards only, optional libraries stay in their rooms, ``import`` stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import motifold

ROOT = Path(motifold.__file__).parent

# From the ground up: a module may import those on lower floors (and of its own room).
FLOORS = [
    ["motifold.kernels", "motifold.files", "motifold.spectra"],
    ["motifold.model"],
    ["motifold.data"],
    ["motifold.solvers"],
    ["motifold.engines"],
    ["motifold.fit"],
    ["motifold.state", "motifold._compat", "motifold.forecast"],
    ["motifold.estimator", "motifold.datasets", "motifold.io", "motifold.prepare"],
    ["motifold.storage", "motifold.findings", "motifold.dask"],
    ["motifold.streaming", "motifold.exports"],
    ["motifold.plots", "motifold.matching", "motifold.sound"],
    ["motifold.report", "motifold.reproduce"],
    ["motifold.explorer"],
    ["motifold.cli", "motifold.demo"],
    ["motifold.__main__"],
]
LATE = {
    ("motifold.estimator.applying", "motifold.storage.models"),  # inside CNMF.save
    ("motifold.estimator.applying", "motifold.exports.xarrays"),  # inside CNMF.to_xarray
    ("motifold.estimator.streams", "motifold.streaming"),  # inside CNMF.stream
    ("motifold.estimator.streams", "motifold.streaming.partial"),  # inside CNMF.partial_fit
    ("motifold.findings.discovery", "motifold.report.discovered"),  # inside Discovery.report
}
# Private attributes of others that a module may use, until they are arguments or public.
PRIVATE = {
    "motifold.storage.schema": {"_validate_params"},  # scikit-learn's
    "motifold.storage.preparation": {"_validate_params"},
    "motifold.findings.processes": {"_exit"},  # of os
}
ELSEWHERE = {
    ("motifold.engines.cpu.threads", "time"),  # to sleep, not to count
    ("motifold.exports.xarrays", "xarray"),  # to give, not to read
}
HOMES = {
    "matplotlib": "motifold.plots",
    "time": "motifold.fit",  # the one clock
    "tqdm": "motifold.fit",
    "numba": "motifold.kernels",
    "pooch": "motifold.datasets",
    "requests": "motifold.datasets",
    "click": "motifold.cli",
    "cupy": "motifold.engines",
    **dict.fromkeys(("dask", "distributed"), "motifold.engines"),
    "torch": "motifold.engines",
    **dict.fromkeys(("librosa", "mido"), "motifold.sound"),
    **dict.fromkeys(("panel", "holoviews", "bokeh", "tornado"), "motifold.explorer"),
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
        elif isinstance(node, ast.ImportFrom) and node.module == "motifold":
            names = {alias.name for alias in node.names} - {"__version__"}
            yield from (motifold._HOMES.get(name, f"motifold.{name}") for name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def private_names(path: Path) -> tuple[set[str], set[str]]:
    """Private attributes that a module has of its own, and those it asks other objects for."""
    own, asked = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            own.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):  # in the body of a class
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            (own if is_own else asked).add(node.attr)
    return own, asked


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
def test_private_attributes_stay_in_their_module(module, path):
    own, asked = private_names(path)
    assert asked - own == PRIVATE.get(module, set()), "make it public, or an argument"


def test_the_law_sees_what_it_should(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "from motifold import CNMF, __version__, demo\n"
        "class A:\n    _kept = 1\n    def f(self, other):\n"
        "        return self._mine, other._kept, other._theirs, other.part._deep, other.__dict__\n"
    )
    assert set(imports(file)) == {"motifold.estimator", "motifold.demo"}
    own, asked = private_names(file)
    assert asked - own == {"_theirs", "_deep"}


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: str(value)[-40:])
def test_each_library_has_one_home(module, path):
    for imported in imports(path):
        home = HOMES.get(imported.split(".")[0])
        allowed = home is None or room_and_floor(module)[0] == home
        assert allowed or (module, imported) in ELSEWHERE


def test_the_report_counts_nothing():
    """Its numbers are findings; only waveforms are made there."""
    counting = {
        module
        for module, path in modules()
        if room_and_floor(module)[0] == "motifold.report" and "numpy" in imports(path)
    }
    assert counting == {"motifold.report.clips"}


def test_one_clock():
    asking = {module for module, path in modules() if "time" in set(imports(path))}
    assert asking == {"motifold.fit.clock", "motifold.engines.cpu.threads"}


def looks_into_handles(path: Path) -> set[int]:
    """Lines that index, measure or cast a handle, be it a name or an attribute."""
    handles = {"H", "W"}
    return {
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Subscript, ast.Attribute))
        and (
            getattr(node.value, "attr", None) in handles
            or getattr(node.value, "id", None) in handles
        )
    }


def test_the_loop_never_looks_into_a_handle(tmp_path):
    """Whoever stands above the engines asks by name; only the results are arrays again."""
    looked = {
        (module, line)
        for module, path in modules()
        if room_and_floor(module)[0] == "motifold.fit" and module != "motifold.fit.results"
        for line in looks_into_handles(path)
    }
    assert looked == set()
    file = tmp_path / "module.py"
    file.write_text("engine.sweep(H)\nH[0]\nstate.now.H.copy()\nW.any()\nstate.now.W\n")
    assert looks_into_handles(file) == {2, 3, 4}


def test_import_is_light():
    code = "import sys, motifold; print(*sorted({'numba', 'sklearn', 'scipy'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""


def test_every_public_name_is_there():
    for name in motifold.__all__:
        assert getattr(motifold, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        motifold.nonsense  # noqa: B018


def test_rooms_are_reached_by_their_names():
    """As the pages write it: ``import motifold``, then ``motifold.io.read(...)``."""
    code = "import motifold; motifold.io.read, motifold.plots.plot_loss, motifold.sound.separate"
    subprocess.run([sys.executable, "-c", code], check=True)
