"""A file is read and no other: what leads out of an HDF5 file, or in circles, is refused."""

from __future__ import annotations

import os

import h5py
import numpy as np
import pytest

from motifold.io import RecordingError, read

SHAPE = (16, 4)
PRIVATE = np.frombuffer(b"PRIVATE!" * 64, "<f8").reshape(SHAPE)
MATLAB = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PRIVATE.tofile("private.bin")
    with h5py.File("private.h5", "w") as file:
        file["x"] = PRIVATE


def virtual(group, name, *sources, file="."):
    """A dataset made of these, one above the other."""
    rows = SHAPE[0] // len(sources)
    layout = h5py.VirtualLayout(SHAPE, "<f8")
    for i, source in enumerate(sources):
        whole = h5py.VirtualSource(file, source, shape=SHAPE, dtype="<f8")
        layout[i * rows : (i + 1) * rows] = whole[:rows]
    group.create_virtual_dataset(name, layout)


def outside(file):
    stored = [(os.path.abspath("private.bin"), 0, PRIVATE.nbytes)]
    file.create_dataset("inner", SHAPE, "<f8", external=stored)


def stored_outside(file):
    outside(file)
    virtual(file, "outer", "inner")


def one_of_many(file):
    outside(file)
    file["plain"] = np.ones(SHAPE)
    virtual(file, "outer", "plain", "inner")


def two_deep(file):
    outside(file)
    virtual(file, "middle", "inner")
    virtual(file, "outer", "middle")


def linked(file):
    file["inner"] = h5py.ExternalLink("private.h5", "x")
    virtual(file, "outer", "inner")


def group_linked(file):
    file["there"] = h5py.ExternalLink("private.h5", "/")
    virtual(file, "outer", "there/x")


def softly_linked(file):
    file["there"] = h5py.ExternalLink("private.h5", "x")
    file["inner"] = h5py.SoftLink("there")
    virtual(file, "outer", "inner")


def virtual_over_another(file):
    virtual(file, "inner", "x", file="private.h5")
    virtual(file, "outer", "inner")


def numbered(file):
    """As many sources as there are, counted by HDF5: inner0, inner1 and so on."""
    stored = [(os.path.abspath("private.bin"), 0, PRIVATE.nbytes)]
    file.create_dataset("inner0", SHAPE, "<f8", external=stored)
    file["inner%b"] = np.ones(SHAPE)  # what the name says to who does not count
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple(SHAPE, (unlimited, SHAPE[1]))
    space.select_hyperslab((0, 0), (unlimited, 1), SHAPE, SHAPE)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_virtual(space, b".", b"inner%b", h5py.h5s.create_simple(SHAPE))
    h5py.h5d.create(file.id, b"outer", h5py.h5t.IEEE_F64LE, space, plan)


@pytest.mark.parametrize(
    "build",
    [
        stored_outside, one_of_many, two_deep, linked, group_linked, softly_linked,
        virtual_over_another, numbered,
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["h5", "mat", "nwb"])
def test_nothing_of_another_file_comes_out(build, ending):
    path, options = f"a.{ending}", {"key": "outer"}
    with h5py.File(path, "w", userblock_size=512 if ending == "mat" else 0) as file:
        build(file)
        if ending == "nwb":
            series = file.create_group("acquisition/series")
            series["starting_time"] = 0.0
            series["starting_time"].attrs["rate"] = 10.0
            series["data"] = h5py.SoftLink("/outer")
            options = {"key": "series"}
    if ending == "mat":
        options["orientation"] = "time_first"
        with open(path, "r+b") as raw:
            raw.write(MATLAB)
    with pytest.raises(RecordingError, match="another file"):
        read(path, **options)


def itself(file):
    virtual(file, "outer", "outer")


def ring(file):
    virtual(file, "inner", "outer")
    virtual(file, "outer", "inner")


def soft_ring(file):
    file["there"] = h5py.SoftLink("outer")
    virtual(file, "outer", "there")


def long_chain(file):
    file["v0"] = np.ones(SHAPE)
    for i in range(40):
        virtual(file, f"v{i + 1}", f"v{i}")
    file["outer"] = h5py.SoftLink("v40")


def doubling(file):
    file["v0"] = np.ones(SHAPE)
    for i in range(7):
        virtual(file, f"v{i + 1}", *[f"v{i}"] * 8)
    file["outer"] = h5py.SoftLink("v7")


def doubling_links(file):
    group = file.create_group("g")
    group["l0"] = h5py.SoftLink("/g")
    for i in range(25):
        group[f"l{i + 1}"] = h5py.SoftLink(f"/g/l{i}/l{i}")
    group["x"] = np.ones(SHAPE)
    file["outer"] = h5py.SoftLink("/g/l25/x")


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (itself, "its own source"),
        (ring, "its own source"),
        (soft_ring, "its own source"),
        (long_chain, "times over"),
        (doubling, "pieces"),
        (doubling_links, "without an end"),
    ],
)
def test_what_has_no_end_is_refused(build, told):
    with h5py.File("a.h5", "w") as file:
        build(file)
    with pytest.raises(RecordingError, match=told):
        read("a.h5", key="outer")


def test_a_missing_source_is_no_data():
    """HDF5 would give zeros."""
    with h5py.File("a.h5", "w") as file:
        virtual(file, "outer", "gone")
    with pytest.raises(RecordingError, match="gone"):
        read("a.h5", key="outer")


def test_virtual_datasets_of_one_file_are_read():
    X = np.arange(64.0).reshape(SHAPE)
    with h5py.File("a.h5", "w") as file:
        file["parts/plain"] = X
        virtual(file, "middle", "parts/plain")
        virtual(file, "outer", "/middle")
    np.testing.assert_array_equal(np.asarray(read("a.h5", key="outer").X), X)


def test_to_look_for_series_opens_no_other_file(monkeypatch):
    """A link into a pipe: whoever opened it would wait for ever."""
    os.mkfifo("pipe")
    with h5py.File("a.nwb", "w") as file:
        series = file.create_group("acquisition/series")
        series["data"] = np.ones(SHAPE)
        series["timestamps"] = h5py.ExternalLink("pipe", "x")
        file["units"] = h5py.ExternalLink("pipe", "x")
    with pytest.raises(RecordingError, match="another file"):
        read("a.nwb", key="series")
    with pytest.raises(RecordingError, match="another file"):
        read("a.nwb", bin_size=0.1)
