"""Which names are one file, and where a result goes when its place is none."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from motifold.files import lies_within, refuse_replacing, same_file, saved_somewhere


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("a")
    (tmp_path / "soft").symlink_to("a")
    os.link("a", "hard")
    (tmp_path / "nowhere").symlink_to("new")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "way").symlink_to("deep")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "a"), ("a", "./deep/../a"), ("a", "soft"), ("a", "hard"), ("soft", "hard"),
        ("new", "./new"), ("new", "nowhere"), ("way/new", "deep/new"), ("no/new", "no/./new"),
        ("deep", "way"),
    ],
)  # fmt: skip
def test_one_file(folder, one, other):
    assert same_file(one, other)
    assert same_file(folder / other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "b"), ("a", "new"), ("new", "newer"), ("deep/new", "new"), ("a", "nowhere")],
)
def test_two_files(folder, one, other):
    assert not same_file(one, other)
    assert not same_file(other, one)


def test_within_a_folder(folder):
    for path in ("deep/x", "deep/er", "deep/er/no/x", "way/er/x", "deep/er/../x"):
        assert lies_within(path, "deep")
        assert lies_within(path, folder / "way")
    for path in ("deep", "deep/../x", "deeper/x", "a"):
        assert not lies_within(path, "deep")
    assert not lies_within("a/x", "a"), "it is no folder"
    (folder / "deep" / "out").symlink_to("../a")
    assert not lies_within("deep/out", "deep"), "what is written is outside"


def test_a_source_is_not_replaced(folder):
    refuse_replacing("b", "a")
    refuse_replacing("new", "new")  # a name that is no file
    for path, source in [("hard", "a"), ("deep/er/x", "deep")]:
        with pytest.raises(ValueError, match=rf"{path} is the recording itself, {source}, or"):
            refuse_replacing(path, source)


# --- elsewhere ----------------------------------------------------------------------------------


class Disk:
    """Saves where there is room."""

    def __init__(self, room):
        self.room, self.tried = room, []

    def __call__(self, path):
        self.tried.append(path)
        if not self.room(path):
            raise OSError(28, f"No space left on device {len(self.tried)}", str(path))
        path.write_text("kept")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The folders that there are: of the output, the current one, the temporary one, home."""
    for name in ("out", "here", "temporary", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_place_that_was_asked_for(places):
    disk = Disk(lambda path: True)
    assert saved_somewhere("model.npz", disk) == (Path("model.npz"), None)
    assert disk.tried == [Path("model.npz")]


@pytest.mark.parametrize("room", ["out", "here", "temporary", "home"])
def test_the_next_place_that_has_room(places, room):
    asked = places / "out" / "model.npz"
    disk = Disk(lambda path: path != asked and room in path.parts)
    place, error = saved_somewhere(asked, disk)
    assert place.read_text() == "kept"
    assert place.is_absolute()
    assert place.is_relative_to(places / room)
    assert place.suffix == ".npz"
    assert str(error).endswith(f"device 1: '{asked}'")
    found = [path for path in places.rglob("*") if path.parent != places]
    assert set(found) <= {place, place.parent}, "nothing else is left"
    if room == "temporary":
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_no_room_at_all(places):
    disk = Disk(lambda path: False)
    with pytest.raises(OSError, match="device 1"):
        saved_somewhere(places / "out" / "model.npz", disk)
    assert len(disk.tried) == 5
    assert not [path for path in places.rglob("*") if path.parent != places]


def test_what_is_no_matter_of_the_disk_is_not_tried_again(places):
    def save(path):
        raise ValueError("it cannot be saved")

    with pytest.raises(ValueError, match="cannot be saved"):
        saved_somewhere("model.npz", save)
