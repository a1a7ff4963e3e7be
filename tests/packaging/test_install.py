"""The wheel, built from the sdist, installs in an empty environment and works there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pages import ROOT, blocks, shape_of

SMOKE = """
import numpy as np
from motifold import CNMF, load
from motifold.datasets import make_sequences

X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
model = CNMF(n_components=2, n_lags=8, n_init=3, random_state=0).fit(X)
assert model.converged_ and model.loss_ < 0.5
model.save("model.npz")
again = load("model.npz")
assert np.array_equal(again.components_, model.components_)
np.save("counts.npy", X)
"""

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    """Run a command without our sources on the path; its output, or a failure that has it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    """Built from the unpacked sdist, which must therefore be complete."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (built,) = folder.glob("*.whl")
    return built


def test_the_sdist_has_what_a_maintainer_needs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "Makefile",
        "constraints.txt", "requirements-dev.txt", "docs/conf.py", "tests/reference.py",
        "examples/plot_figure1.py", "benchmarks/run.py", "src/motifold/report/page.css",
    ):  # fmt: skip
        assert name in names, name
    assert not [name for name in names if name.startswith(("docs/_build", "docs/gallery"))]
    assert not [name for name in names if name.endswith((".mat", ".wav", ".pyc"))]


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0].partition("-")[0] for name in names}
    assert tops == {"motifold"}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".css", ".js", ".cu", ".cuh") or path.name == "py.typed"
    }
    assert sources <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def installed(what: str, folder: Path) -> Path:
    """Where the programs are of an environment that has this, and what this needs, only."""
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [bin / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", what, cwd=folder)
    run(*pip, "check", cwd=folder)
    return bin


def test_it_installs_in_an_empty_environment_and_works(wheel, tmp_path):
    bin = installed(str(wheel), tmp_path)
    run(bin / "python", "-W", "error", "-c", SMOKE, cwd=tmp_path)
    assert "motifold" in run(bin / "motifold", "doctor", cwd=tmp_path)
    told = run(bin / "motifold", "fit", "counts.npy", "-k", 2, "-l", 8, "-o", "m.npz", cwd=tmp_path)
    assert "m.npz" in told
    assert "2" in run(bin / "motifold", "info", "m.npz", cwd=tmp_path)


def test_getting_started_leads_to_its_picture(wheel, tmp_path):
    """Its blocks one after the other, in an environment that has what its first one installs."""
    page = ROOT / "docs" / "getting-started.md"
    first, *others = blocks(page)
    ((pip, install, what),) = first.commands
    assert (pip, install) == ("pip", "install")
    bin = installed(what.replace(".", str(wheel), 1), tmp_path)
    python = "".join(block.code for block in others if block.language == "python")
    printed = run(bin / "python", "-W", "error", "-c", python, cwd=tmp_path)
    shown = [block.code for block in others if block.language == "text" and block.after_python]
    assert shape_of(printed) == shape_of("".join(shown))
    for block in others:
        for command in block.commands if block.language == "sh" else []:
            run(bin / command[0], *command[1:], cwd=tmp_path)
    assert (tmp_path / "events.csv").is_file()
    (name,) = re.findall(r"savefig\(\"(.*?)\"", python)
    assert f"](images/{name})" in page.read_text()
    made = plt.imread(tmp_path / name)
    picture = plt.imread(ROOT / "docs" / "images" / name)
    assert made.shape == picture.shape
    # Fonts and last digits may differ a little from machine to machine.
    assert np.abs(made - picture).mean() < 0.01
