"""The package as it is handed out: built once for all tests of a session."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest
from environments import run
from pages import ROOT


@pytest.fixture(scope="session")
def sdist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def wheel(sdist, tmp_path_factory) -> Path:
    """Built from the unpacked sdist, which must therefore be complete."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (built,) = folder.glob("*.whl")
    return built
