"""The command line: light, lazy, and each command in its place."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from commands import run

import motifold.cli
from motifold import __version__
from motifold.cli._terminal import Terminated

FOLDER = Path(motifold.cli.__file__).parent
HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "numpy")
SHARED = sorted({path.stem for path in FOLDER.glob("_*.py")} - {"__init__", "__main__"})


def test_help_is_light():
    code = (
        "import sys\nfrom motifold.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print('LOADED', *[name for name in {HEAVY} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "demo" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "LOADED"


def shared_imports():
    """What the modules that commands may share import: they have to be as light as they are."""
    nodes = [n for name in SHARED for n in ast.parse((FOLDER / f"{name}.py").read_text()).body]
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.parametrize("name", motifold.cli._COMMANDS)
def test_each_command_is_a_light_file_and_explains_itself(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    at_import = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in [*at_import, *shared_imports()]
        for alias in node.names
    }
    names -= {f"motifold.cli.{name}" for name in SHARED}
    assert not [n for n in names if n.split(".")[0] in (*HEAVY, "motifold")]
    answer = run(name, "--help")
    assert answer.exit_code == 0
    assert len(answer.output.splitlines()) > 5


def test_every_file_is_listed():
    files = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    assert files == set(motifold.cli._COMMANDS)


def test_version():
    assert __version__ in run("--version").output


def test_unknown_command():
    answer = run("nonsense")
    assert answer.exit_code == 2
    assert "No such command 'nonsense'" in answer.output


def test_demo_draws(tmp_path):
    answer = run("demo", "--quick", "--output", str(tmp_path / "new"))
    assert answer.exit_code == 0, answer.output
    for name in ("sequences", "losses"):
        assert (tmp_path / "new" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_demo_that_is_ended(tmp_path, monkeypatch, error, code):
    def interrupted(*_):
        raise error

    monkeypatch.setattr("motifold.reproduce.demo.hide_sequences", interrupted)
    answer = run("demo", "--quick", "--output", str(tmp_path))
    assert answer.exit_code == code
    assert "Interrupted. The demo ends here." in answer.output


def test_a_demo_without_a_place(tmp_path, monkeypatch):
    """Refused before the work; a disk that is full afterwards is told in a line."""
    (tmp_path / "losses.png").mkdir()
    answer = run("demo", "--quick", "--output", str(tmp_path))
    assert answer.exit_code == 2
    assert "losses.png" in answer.output

    def full(*_):
        raise OSError(28, "No space left on device", "losses.png")

    monkeypatch.setattr("motifold.reproduce.demo.hide_sequences", full)
    answer = run("demo", "--quick", "--output", str(tmp_path / "new"))
    assert answer.exit_code == 3
    assert answer.output == "Error: losses.png: No space left on device.\n"


@pytest.mark.parametrize("seed", ["-1", "x", str(2**32)])
def test_demo_refuses_a_bad_seed(seed):
    answer = run("demo", "--seed", seed)
    assert answer.exit_code == 2
    assert "--seed" in answer.output


def test_entry_point():
    installed = [
        point for point in entry_points(group="console_scripts") if point.name == "motifold"
    ]
    if not installed:
        pytest.skip("the package was installed before it had a command: install it again")
    assert installed[0].load() is motifold.cli.main
