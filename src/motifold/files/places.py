"""Which files are one and the same, and where else a result may go."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

AnyPath = str | os.PathLike[str]


def same_file(one: AnyPath, other: AnyPath) -> bool:
    """Whether two names stand for one file, or would if it were there; links are followed."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return _place(one) == _place(other)


def lies_within(path: AnyPath, folder: AnyPath) -> bool:
    """Whether ``path``, which need not be there, is a place inside of an existing folder."""
    if not os.path.isdir(folder):
        return False
    parents = Path(os.path.realpath(path)).parents
    return any(parent.exists() and os.path.samefile(parent, folder) for parent in parents)


def refuse_replacing(path: AnyPath, source: AnyPath) -> None:
    """Raise if what is written to ``path`` would take the place of its own source."""
    if os.path.exists(source) and (same_file(path, source) or lies_within(path, source)):
        raise ValueError(
            f"{os.fspath(path)} is the recording itself, {os.fspath(source)}, or a part of it, and "
            "would replace it: give another path."
        )


def saved_somewhere(path: AnyPath, save: Callable[[Path], None]) -> tuple[Path, OSError | None]:
    """Call ``save`` with the path, and where that fails with others: a result is not to be lost.

    Returns
    -------
    place : path
        Where it is.
    error : OSError or None
        Why it is not at ``path``.

    Raises
    ------
    OSError
        That of ``path``, if it could be saved nowhere.
    """
    try:
        save(Path(path))
    except OSError as error:
        for place in _elsewhere(Path(path)):
            try:
                save(place)
            except OSError:
                continue
            return place, error
        raise
    return Path(path), None


def _place(path: AnyPath) -> tuple[object, str]:
    """The folder, by its identity if it is there, and the name in it."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        found = os.stat(folder)
    except OSError:
        return os.path.normcase(folder), os.path.normcase(name)
    return (found.st_dev, found.st_ino), os.path.normcase(name)


def _elsewhere(path: Path) -> Iterator[Path]:
    """Other places, the nearest first; none of them has a file yet, and nobody knows their names.

    Among the temporary files it is a folder that only this user can look into.
    """
    other = f"{path.stem}-{secrets.token_hex(4)}{path.suffix}"
    for folder in (path.parent, Path.cwd()):
        yield folder.absolute() / other
    with contextlib.suppress(OSError):
        private = Path(tempfile.mkdtemp(prefix="motifold-"))
        yield private / path.name
        shutil.rmtree(private, ignore_errors=True)  # asked for the next place: this one was none
    with contextlib.suppress(RuntimeError):  # nobody's home
        yield Path.home() / other
