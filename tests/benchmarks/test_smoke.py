"""Every script of benchmarks/ still runs, on next to nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Imported by the others.
SHARED = {"harness", "problems", "rivals", "findings_page", "regimes"}
SHARED |= {"long_stream", "streams_page"}
SCRIPTS = sorted({path.stem for path in FOLDER.glob("*.py")} - SHARED)


SCRIPT = """
import runpy, sys
from pathlib import Path
del sys.argv[0]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(nursery, name, tmp_path):
    done = nursery.run(SCRIPT, [FOLDER / f"{name}.py", "--smoke"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())


def test_only_the_harness_looks_inside():
    """Of the package the scripts use what users do; harness.py has the rest."""
    public = {"motifold", "motifold.datasets", "motifold.matching", "motifold.plots"}
    public |= {"motifold.sound", "motifold.cli", "motifold.dask"}
    for path in FOLDER.glob("*.py"):
        lines = [line.split() for line in path.read_text().splitlines()]
        imported = {line[1] for line in lines if line[:1] in (["from"], ["import"])}
        inside = {name for name in imported if name.split(".")[0] == "motifold"} - public
        assert not inside or path.name == "harness.py", f"{path.name}: {sorted(inside)}"


def test_the_findings_on_the_page_are_those_that_are_kept(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from findings_page import KEPT, section

    lines = section(json.loads(KEPT.read_text()))
    assert "\n".join(lines) in (FOLDER.parent / "docs" / "benchmarks.md").read_text()
