"""Each extra alone, in an environment that begins empty: ``make extras`` (minutes, and a network).

What it brings is enough for what it is for. ``EXTRAS=io,nwb`` chooses; those of a GPU take
gigabytes, and are installed only where they are named.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from environments import Environment
from pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LARGE = {"cuda12", "cuda13"}
CHOSEN = os.environ.get("EXTRAS", "").replace(",", " ").split() or sorted(set(EXTRAS) - LARGE)

FIT = """
import numpy as np
from motifold import CNMF
from motifold.datasets import make_sequences

X = make_sequences(300, 20, 2, 8, activation_probability=0.05, random_state=0).X
np.save("counts.npy", X)
model = CNMF(2, 8, random_state=0, max_iter=30, tol=0).fit(X)
model.origin_ = {"source": "counts.npy", "rate": 20.0, "options": {}, "starts": [0.0]}
model.save("model.npz")
"""
BEGIN = (
    "import numpy as np, motifold; X = np.load('counts.npy'); model = motifold.load('model.npz')\n"
)
# What an extra is for, in short.
PROGRAMS = {
    "plots": "from motifold.plots import plot_factors\n"
    "plot_factors(model, X).savefig('factors.png')",
    "data": "import pooch\nfrom motifold.datasets import fetch_songbird, fetch_spoken_digits",
    "io": """
import h5py, polars, soundfile, zarr
from motifold.io import read

with h5py.File("a.h5", "w") as file:
    file["X"] = X
zarr.save_array("a.zarr", X)
frame = polars.DataFrame({f"n{i}": X[:, i] for i in range(X.shape[1])})
frame.write_parquet("a.parquet")
frame.write_csv("a.csv")
options = {"orientation": "time_first"}
found = [read("a.h5", key="X", **options), read("a.zarr", **options)]
found += [read("a.parquet"), read("a.csv")]
assert all(np.allclose(recording.X[0:300], X) for recording in found)
soundfile.write("a.wav", np.sin(np.arange(8000) / 9), 8000)
assert read("a.wav").X.shape[1] > 9
""",
    "nwb": """
import h5py
from motifold.io import events_to_nwb, read

with h5py.File("a.nwb", "w") as file:  # of three units; to read them needs no pynwb
    file["units/spike_times"] = np.arange(30) / 10
    file["units/spike_times_index"] = [10, 20, 30]
    file["units/id"] = [0, 1, 2]
assert read("a.nwb", bin_size=0.1).X.sum() == 30
try:
    events_to_nwb(motifold.find_events(model, rate=20), "e.nwb", duration=0.4)
except ImportError as error:
    assert "pip install pynwb" in str(error)
""",
    "pynapple": """
from motifold.io import events_to_pynapple
from pynapple import TsdFrame

events = motifold.find_events(model, rate=20)
assert sum(len(times) for times in events_to_pynapple(events).values()) == len(events)
model.transform(TsdFrame(t=np.arange(300) / 20, d=X))
""",
    "sound": """
import mido, soundfile
from motifold.sound import from_audio

sound = np.sin(np.cumsum(np.linspace(0.1, 1, 16000)))
soundfile.write("a.flac", sound, 8000)
assert from_audio(sound, 8000, kind="mel").X.shape[1] > 9
""",
    "explore": "import bokeh, holoviews, panel\nimport motifold.explorer.page",
    "dask": """
import motifold.dask
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            fit = motifold.dask.CNMF(2, 8, client=client, random_state=0, max_iter=3, tol=0).fit(X)
            assert fit.components_.shape == (2, 8, 20)
""",
    "all": "import panel, pynapple, librosa, distributed, zarr, matplotlib, h5py, pooch, mido",
    "cuda12": "import cupy",
    "cuda13": "import cupy",
}


@pytest.fixture(scope="module")
def fitted(wheel, tmp_path_factory) -> Path:
    """A model and its data, made where nothing but the package is installed."""
    environment = Environment(tmp_path_factory.mktemp("base"))
    environment.install(str(wheel))
    environment.run("python", "-W", "error", "-c", FIT)
    return environment.folder


def test_every_extra_has_its_program():
    assert set(PROGRAMS) == set(EXTRAS)


@pytest.mark.parametrize("extra", CHOSEN)
def test_an_extra_alone(extra, wheel, fitted, tmp_path):
    environment = Environment(tmp_path)
    environment.install(f"{wheel}[{extra}]")
    for name in ("counts.npy", "model.npz"):
        (tmp_path / name).write_bytes((fitted / name).read_bytes())
    (tmp_path / "program.py").write_text(BEGIN + PROGRAMS[extra])
    environment.run("python", "program.py")
    assert "motifold" in environment.run("motifold", "doctor")
