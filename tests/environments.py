"""Empty environments, and programs that run in them without our sources on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pages import ROOT


def run(*command: object, cwd: Path) -> str:
    """Run a command without our sources on the path; its output, or a failure that has it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Environment:
    """An environment of its own, which begins empty."""

    def __init__(self, folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
        self.folder = folder
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")

    def install(self, what: str) -> None:
        """Install this, and what this needs; only what is imported is then compiled."""
        self._pip("install", "--no-compile", "--constraint", ROOT / "constraints.txt", what)
        self._pip("check")

    def run(self, program: str, *arguments: object) -> str:
        """The output of a program of this environment."""
        return run(self.bin / program, *arguments, cwd=self.folder)

    def _pip(self, *arguments: object) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python"]
        run(*pip, "--disable-pip-version-check", "--quiet", *arguments, cwd=self.folder)
