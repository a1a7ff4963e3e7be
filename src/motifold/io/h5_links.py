"""Where the values of an HDF5 dataset lie: in this file, at the end of few steps, or it is refused.

HDF5 itself follows links, external storage and virtual datasets wherever they lead, and without an
end; so every step is looked at before it is asked to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from motifold.io.guards import RecordingError, require

_MAX_LINKS = 100  # soft links on the way to one object, those within links counted
_MAX_DEPTH = 8  # virtual datasets over virtual datasets
_MAX_PIECES = 100_000  # of a virtual dataset, those of its sources counted
_LISTED = 20


def follow(path: Path, group: Any, key: str) -> Any:
    """The object at ``key``, a step at a time, so that no link leads out of the file."""
    return _follow(path, group, key, [])


def _follow(path: Path, group: Any, key: str, links: list[str]) -> Any:
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
            links.append(part)
            if len(links) > _MAX_LINKS:
                raise RecordingError(f"{path}: {key!r} is a chain of links without an end.")
            found = _follow(path, found, link.path, links)
        else:
            found = found[part]
    return found


def leaves(path: Path, dataset: Any) -> list[Any]:
    """The datasets of this file that hold the values: itself, or the sources of a virtual one.

    Raises where values lie in another file, or where sources go in a circle.
    """
    found: dict[int, Any] = {}
    _walk(path, dataset, dataset.name, {}, (), found)
    return list(found.values())


def _walk(
    path: Path,
    dataset: Any,
    key: str,
    known: dict[int, int],
    trail: tuple[int, ...],
    found: dict[int, Any],
) -> int:
    """Number of pieces the dataset is read in; ``trail`` has what is being walked now."""
    h5py = require("h5py", "io")
    if not isinstance(dataset, h5py.Dataset):
        raise RecordingError(f"{path}: {key!r}, the source of a virtual dataset, is no dataset.")
    here = int(h5py.h5o.get_info(dataset.id).addr)
    if here in trail or len(trail) >= _MAX_DEPTH:
        what = "its own source" if here in trail else f"virtual more than {_MAX_DEPTH} times over"
        raise RecordingError(
            f"{path}: the virtual dataset {key!r} is {what}, which is not read. Copy the values "
            "into an ordinary dataset (h5repack, or h5py)."
        )
    if here in known:
        return known[here]
    if dataset.external:
        raise _elsewhere(path, key)
    pieces = 1
    if dataset.is_virtual:
        pieces = 0
        for source in dataset.virtual_sources():
            # HDF5 puts numbers in place of %b: names that are not known before.
            if source.file_name != "." or "%" in source.dset_name:
                raise _elsewhere(path, key)
            inner = follow(path, dataset.file, source.dset_name)
            pieces += _walk(path, inner, source.dset_name, known, (*trail, here), found)
            if pieces > _MAX_PIECES:
                raise RecordingError(
                    f"{path}: the virtual dataset {key!r} has more than {_MAX_PIECES} pieces, "
                    "which is not read. Copy the values into an ordinary dataset (h5repack)."
                )
    else:
        found[here] = dataset
    known[here] = pieces
    return pieces


def _elsewhere(path: Path, key: str) -> RecordingError:
    return RecordingError(
        f"{path}: the values of {key!r} lie in another file, which is not read. Copy them into one "
        "file first (h5repack, or h5py)."
    )
