"""Arrays in npz files: as numpy's own, and quiet where writing fails."""

from __future__ import annotations

import gc
import io
import zipfile

import numpy as np
import pytest

from motifold.files import write_npz

ARRAYS = {
    "a": np.arange(12.0).reshape(3, 4),
    "turned": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array("some"),
    "empty": np.zeros((0, 3), np.float32),
}


@pytest.mark.parametrize("compressed", [False, True])
def test_the_same_bytes_as_numpys(compressed):
    ours, numpys = io.BytesIO(), io.BytesIO()
    write_npz(ours, ARRAYS, compressed=compressed)
    (np.savez_compressed if compressed else np.savez)(numpys, **ARRAYS)
    assert ours.getvalue() == numpys.getvalue()


def test_texts_come_first():
    file = io.BytesIO()
    write_npz(file, {"a": ARRAYS["a"]}, texts={"note.json": b"{}"})
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["note.json", "a.npy"]
        assert archive.read("note.json") == b"{}"
    with np.load(file) as found:
        np.testing.assert_array_equal(found["a"], ARRAYS["a"])


def test_python_objects_are_not_written():
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        write_npz(io.BytesIO(), {"a": np.array([{}], dtype=object)})


class Full(io.BytesIO):
    """A disk on which nothing finds room."""

    def write(self, content):
        raise OSError(28, "No space left on device")


def test_no_archive_is_left_open_where_writing_fails(recwarn):
    file = Full()
    with pytest.raises(OSError, match="No space"):
        write_npz(file, ARRAYS)
    file.close()
    gc.collect()  # numpy's own would complain here that its file is closed
    assert not recwarn.list


class Interrupted(Full):
    """A full disk, and Ctrl-C in the middle of the first array."""

    interrupted = False

    def write(self, content):
        if len(content) == ARRAYS["a"].nbytes and not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt
        return super().write(content) if self.interrupted else io.BytesIO.write(self, content)


def test_a_full_disk_does_not_hide_the_interrupt(recwarn):
    """Closing the archive writes as well, and fails."""
    with pytest.raises(KeyboardInterrupt):
        write_npz(Interrupted(), ARRAYS)
    gc.collect()
    assert not recwarn.list
