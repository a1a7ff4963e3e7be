"""HDF5, by the path of a dataset. Links out of the file are not followed.

A dataset that lies in the file as it is (contiguous, not compressed) is mapped into memory; others
are read lazily.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from motifold.io.guards import RecordingError, check_expansion, check_numbers, guard, require
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording

OPTIONS = {"key", "orientation"}
_MAX_LINKS = 20
_LISTED = 20


def read(path: Path, options: Options) -> Recording:
    """The dataset that ``key`` names, or the only table of numbers in the file."""
    with guard(path, "an HDF5 file"), open_file(path) as file:
        key = options.key if options.key is not None else only_table(path, file)
        dataset = find_dataset(path, file, key, options.max_bytes)
        X = orient(mapped(path, dataset), path, options.orientation)
    rate = None if options.rate is None else float(options.rate)
    return Recording(X, str(path), rate)


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[Any]:
    """The file, for reading alone. After an error it is closed; else datasets may be read later."""
    file = require("h5py", "io").File(path, "r", locking=False)
    try:
        yield file
    except BaseException:
        file.close()
        raise


def find_dataset(path: Path, file: Any, key: str, max_bytes: int | None = None) -> Any:
    """The dataset of that path, if all of it lies in this file."""
    h5py = require("h5py", "io")
    dataset = _follow(path, file, key, 0)
    if not isinstance(dataset, h5py.Dataset):
        inside = ", ".join(list(dataset)[:_LISTED]) if hasattr(dataset, "keys") else ""
        raise RecordingError(f"{path}: {key!r} is no dataset. Name one with key: {inside}.")
    virtual = dataset.virtual_sources() if dataset.is_virtual else []
    if dataset.external or any(source.file_name != "." for source in virtual):
        raise RecordingError(
            f"{path}: the values of {key!r} lie in another file, which is not read. Copy them "
            "into one file first (h5repack, or h5py)."
        )
    check_numbers(dataset.dtype, path)
    stored = dataset.id.get_storage_size()
    check_expansion(path, dataset.size * dataset.dtype.itemsize, stored, max_bytes)
    return dataset


def mapped(path: Path, dataset: Any) -> Any:
    """A memory map of the dataset's values, or the dataset itself where that cannot be."""
    h5py = require("h5py", "io")
    offset = dataset.id.get_offset()  # None unless it is contiguous
    plain = dataset.dtype.kind in "fiu" and 0 not in dataset.shape
    # A type of odd width or padding is one that h5py converts as it reads.
    if offset is None or not plain or h5py.h5t.py_create(dataset.dtype) != dataset.id.get_type():
        return dataset
    return np.memmap(path, dataset.dtype, mode="r", offset=offset, shape=dataset.shape)


def _follow(path: Path, group: Any, key: str, depth: int) -> Any:
    """The object at ``key``, a step at a time, so that no link leads out of the file."""
    h5py = require("h5py", "io")
    found = group.file if key.startswith("/") else group
    for part in [part for part in key.split("/") if part not in ("", ".")]:
        link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
        if link is None:
            inside = ", ".join(list(found)[:_LISTED]) if isinstance(found, h5py.Group) else "none"
            raise RecordingError(
                f"{path}: there is no {key!r}: {found.name!r} has no {part!r}. It has: {inside}."
            )
        if isinstance(link, h5py.ExternalLink):
            raise RecordingError(
                f"{path}: {part!r} is a link into another file, {link.filename!r}, which is not "
                "followed. Read that file itself, or copy the data into this one."
            )
        if isinstance(link, h5py.SoftLink):
            if depth >= _MAX_LINKS:
                raise RecordingError(f"{path}: {key!r} is a chain of links without an end.")
            found = _follow(path, found, link.path, depth + 1)
        else:
            found = found[part]
    return found


def only_table(path: Path, file: Any) -> str:
    """The path of the one dataset that has two dimensions and numbers."""
    tables = list_tables(file)
    if len(tables) != 1:
        named = "; ".join(f"{name} {shape}" for name, shape in tables[:_LISTED])
        raise RecordingError(
            f"{path}: it has {len(tables)} tables of numbers; name one with key. {named}"
        )
    return tables[0][0]


def list_tables(file: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the two-dimensional datasets of numbers; links are not followed."""
    h5py = require("h5py", "io")
    found: list[tuple[str, tuple[int, ...]]] = []

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 2 and item.dtype.kind in "fiub":
            found.append((name, item.shape))

    file.visititems(note)
    return found
