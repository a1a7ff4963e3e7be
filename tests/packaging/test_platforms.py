"""The page that says where it runs has the versions that the package states."""

from __future__ import annotations

import re
import tomllib

import oldest
from pages import ROOT

PAGE = ROOT / "docs" / "platforms.md"


def test_lowest_versions():
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+), \w+ \d{4} \| ", PAGE.read_text(), re.MULTILINE)
    told = dict(rows)
    python = told.pop("Python")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f">={python}" == project["requires-python"]
    assert set(told) == {"numpy", "scipy", "scikit-learn", "matplotlib", "zarr"}
    stated = oldest.oldest()
    assert told == {name: stated[name] for name in told}
