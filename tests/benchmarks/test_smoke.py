"""Every script of benchmarks/ still runs, on next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import motifold

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Imported by the others.
SHARED = {"harness", "problems", "rivals", "findings_page", "regimes"}
SCRIPTS = sorted({path.stem for path in FOLDER.glob("*.py")} - SHARED)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(name, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--smoke"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())


def test_only_the_harness_looks_inside():
    """Of the package the scripts use what users do; harness.py has the rest."""
    public = {"motifold", "motifold.datasets", "motifold.matching", "motifold.plots"}
    public |= {"motifold.sound", "motifold.cli"}
    for path in FOLDER.glob("*.py"):
        lines = [line.split() for line in path.read_text().splitlines()]
        imported = {line[1] for line in lines if line[:1] in (["from"], ["import"])}
        inside = {name for name in imported if name.split(".")[0] == "motifold"} - public
        assert not inside or path.name == "harness.py", f"{path.name}: {sorted(inside)}"
