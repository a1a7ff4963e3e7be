"""The package as it is handed out: built once for all tests of a session.

With ``MOTIFOLD_DIST`` (``make dist``) it is what lies in that folder that is tried.
"""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest
from environments import run
from pages import ROOT

BUILT = os.environ.get("MOTIFOLD_DIST")


@pytest.fixture(scope="session")
def sdist(tmp_path_factory) -> Path:
    folder = ROOT / BUILT if BUILT else tmp_path_factory.mktemp("sdist")
    if not BUILT:
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
    if BUILT:
        (handed_out,) = (ROOT / BUILT).glob("*.whl")
        assert handed_out.read_bytes() == built.read_bytes()
    return built
