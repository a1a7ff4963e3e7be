"""HDF5, by the path of a dataset. Nothing that lies in another file is read.

A dataset that lies in the file as it is (contiguous, not compressed) is mapped into memory; others
are read lazily.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from motifold.io.fills import declared_fills, float_type
from motifold.io.guards import (
    RecordingError,
    check_chunk,
    check_expansion,
    check_numbers,
    guard,
    require,
)
from motifold.io.h5_chunks import PackedChunks, unpacks_here
from motifold.io.h5_links import follow, leaves
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES

OPTIONS = {"key", "orientation", *SPIKES}
_MOST_TEXTS = 10**5  # each of which may be as long as the file
_LISTED = 20


def read(path: Path, options: Options) -> Recording:
    """The dataset that ``key`` names, or the only table of numbers in the file."""
    with guard(path, "an HDF5 file"), open_file(path) as file:
        key = options.key if options.key is not None else only_table(path, file)
        dataset = find_dataset(path, file, key, options.max_bytes)
        X = orient(values_of(path, dataset), path, options.orientation, fills_of(dataset))
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


def find_dataset(
    path: Path, file: Any, key: str, max_bytes: int | None = None, *, texts: bool = False
) -> Any:
    """The dataset of that path, if all of it lies in this file and takes no undue memory.

    It has numbers or, where ``texts`` allows it, a few texts.
    """
    h5py = require("h5py", "io")
    dataset = follow(path, file, key)
    if not isinstance(dataset, h5py.Dataset):
        inside = ", ".join(list(dataset)[:_LISTED]) if hasattr(dataset, "keys") else ""
        raise RecordingError(f"{path}: {key!r} is no dataset. Name one with key: {inside}.")
    is_text = texts and h5py.check_string_dtype(dataset.dtype) is not None
    if not is_text:
        check_numbers(dataset.dtype, path)
    elif math.prod(dataset.shape or ()) > _MOST_TEXTS:
        raise RecordingError(f"{path}: {key!r} has {dataset.shape} texts, too many to be right.")
    stored = 0
    for leaf in leaves(path, dataset):
        size = leaf.id.get_storage_size()
        stored += size
        if leaf.chunks is not None:
            check_chunk(path, math.prod(leaf.chunks) * leaf.dtype.itemsize, size, max_bytes)
    dtype = dataset.dtype if is_text else float_type(dataset.dtype)
    nbytes = math.prod(dataset.shape or ()) * dtype.itemsize
    check_expansion(path, nbytes, stored, max_bytes)
    return dataset


def values_of(path: Path, dataset: Any) -> Any:
    """The dataset's values: a memory map of them where that can be, else read when sliced."""
    h5py = require("h5py", "io")
    if unpacks_here(dataset):
        return PackedChunks(dataset, path)
    offset = dataset.id.get_offset()  # None unless it is contiguous
    plain = dataset.dtype.kind in "fiu" and 0 not in dataset.shape
    # A type of odd width or padding is one that h5py converts as it reads.
    if offset is None or not plain or h5py.h5t.py_create(dataset.dtype) != dataset.id.get_type():
        return dataset
    return np.memmap(path, dataset.dtype, mode="r", offset=offset, shape=dataset.shape)


def fills_of(dataset: Any) -> tuple[float, ...]:
    """Values that the dataset's attributes, as those of netCDF, declare to be missing."""
    return declared_fills(dataset.attrs)


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
