"""The oldest versions that we say we work with, as constraints for pip.

``make test-oldest`` installs them. They are read from ``pyproject.toml`` and
``requirements-dev.txt``, so that there is no second list that could say something else.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[\w+\])?\s*>=\s*(?P<version>[\w.]+)$")


def requirements() -> list[str]:
    """All that the package, its extras and its tests ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    stated = [line.partition("#")[0].strip() for line in lines]
    asked = [*project["dependencies"], *(line for name in extras for line in extras[name])]
    return [*(line for line in asked if not line.startswith("motifold[")), *filter(None, stated)]


def oldest() -> dict[str, str]:
    """Library to its lowest version; where two places name one, they must agree."""
    found: dict[str, str] = {}
    for line in requirements():
        bound = _BOUND.match(line)
        if bound is None:
            continue
        name, version = bound["name"].lower(), bound["version"]
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lowest versions: {found[name]} and {version}.")
    return found


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in oldest().items())
