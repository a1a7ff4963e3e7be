"""The wheel, built from the sdist, installs in an empty environment and works there."""

from __future__ import annotations

import re
import tarfile
import zipfile
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pytest
from environments import Environment
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


def test_the_sdist_has_what_a_maintainer_needs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "Makefile",
        "SECURITY.md", ".github/workflows/tests.yml", "tests/packaging/extras.py",
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


@dataclass
class Tried:
    """What was told where the package, and what it needs, was installed and nothing else."""

    environment: Environment
    installed: set[str]
    doctor: str
    fit: str
    info: str


@pytest.fixture(scope="module")
def tried(wheel, tmp_path_factory) -> Tried:
    """Of the wheel alone; one environment serves both tests, since to fill one takes a minute."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    environment.install(str(wheel))
    names = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
    installed = set(environment.run("python", "-c", names).lower().split())
    environment.run("python", "-W", "error", "-c", SMOKE)
    options = ("-k", 2, "-l", 8, "-o", "m.npz")
    return Tried(
        environment,
        installed,
        environment.run("motifold", "doctor"),
        environment.run("motifold", "fit", "counts.npy", *options),
        environment.run("motifold", "info", "m.npz"),
    )


def test_it_installs_in_an_empty_environment_and_works(tried):
    assert "motifold" in tried.installed
    assert not tried.installed & {"matplotlib", "h5py", "pooch", "pytest"}
    assert "motifold" in tried.doctor
    assert "m.npz" in tried.fit
    assert "2" in tried.info


def test_getting_started_leads_to_its_picture(tried):
    """Its blocks one after the other, where what its first one installs has been added."""
    page = ROOT / "docs" / "getting-started.md"
    first, *others = blocks(page)
    here, extras = first.commands
    assert here == ["pip", "install", "."]
    assert extras[:2] == ["pip", "install"]
    environment = tried.environment
    # The package is there; to install it anew would be to compile its kernels anew.
    environment.install(extras[2])
    # As it is copied: `runs` has the blocks of pictures, too, which the page shows as code.
    (picture,) = [block for block in others if block.picture]
    python = "".join(block.code for block in others if block.runs)
    printed = environment.run("python", "-W", "error", "-c", python)
    shown = [block.code for block in others if block.language == "text" and block.after_python]
    assert shape_of(printed) == shape_of("".join(shown))
    for block in others:
        for command in block.commands if block.language == "sh" else []:
            environment.run(*command)
    assert (environment.folder / "events.csv").is_file()
    # The page shows what its build draws from this block; who copies it has the same as a file.
    (name,) = re.findall(r"savefig\(\"(.*?)\"", picture.code)
    made = plt.imread(environment.folder / name)[..., :3]
    height, width, _ = made.shape
    assert width > 500
    assert height > 300
    colours = np.unique((made * 255).astype(int).reshape(-1, 3), axis=0)
    assert len(colours) > 50  # motifs, activations, data: not a white page
