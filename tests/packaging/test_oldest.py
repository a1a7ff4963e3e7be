"""The lower bounds that ``make test-oldest`` installs are those that we promise."""

from __future__ import annotations

import sys
import tomllib

import oldest
import pytest
from pages import ROOT


def test_every_library_of_the_package_has_a_lowest_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name in extras for line in extras[name])]
    named = {
        line.partition(">=")[0].partition("[")[0]
        for line in asked
        if not line.startswith("motifold[")
    }
    assert len(named) > 10
    assert named <= set(oldest.oldest())


def test_a_library_with_two_lowest_versions_is_refused(monkeypatch):
    monkeypatch.setattr(oldest, "requirements", lambda: ["h5py>=3.10", "tqdm", "h5py>=3.11"])
    with pytest.raises(ValueError, match=r"h5py has two lowest versions: 3.10 and 3.11"):
        oldest.oldest()


def test_what_runs_here_is_not_older():
    """The suite itself proves nothing about versions that are below the bounds."""
    from importlib.metadata import PackageNotFoundError, version

    from packaging.version import Version

    assert sys.version_info >= (3, 11)
    for name, lowest in oldest.oldest().items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        assert Version(found) >= Version(lowest), name
