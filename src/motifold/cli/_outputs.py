"""Where the commands write: looked at before the work, and not the end of it if it is no place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from motifold.cli._shared import EXIT_DATA, Failure, told

TABLE = (".csv", ".txt")
PAGE = (".html", ".htm")


def beside(path: Path, ending: str) -> Path:
    """The file beside another one that has an ending more."""
    return path.parent / (path.name + ending)


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Mapping[str, Path | None],
    *,
    folders: Mapping[str, Path] | None = None,
) -> None:
    """Better no work than no place for its result, or the result in place of what it is made from.

    Files are compared by what they are, not by their names. ``folders`` are outputs, too, which
    are made where they are not there.
    """
    from motifold.files import check_writable, lies_within, same_file

    files = {name: path for name, path in outputs.items() if path is not None}
    places = {**files, **(folders or {})}
    read = {name: path for name, path in inputs.items() if path is not None and path.exists()}
    for option, path in places.items():
        for name, source in read.items():
            if same_file(path, source):
                how = f"is {name} itself"
            elif lies_within(path, source):
                how = f"is in {name}, {source}"
            elif option not in files and lies_within(source, path):
                how = f"has {name} in it, {source}"
            else:
                continue
            raise click.UsageError(
                f"{option}: {path} {how}, which might be replaced. Give another name."
            )
    for (one, path), (other, place) in combinations(places.items(), 2):
        if same_file(path, place):
            raise click.UsageError(
                f"{one} and {other} are the same file, {path}: one would replace the other. Give "
                "another name."
            )
    for path in files.values():
        check_writable(path)
    for folder in (folders or {}).values():
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if there.is_dir():  # what is a file is another kind of complaint
            try:
                check_writable(there / "new")
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(folder)) from error


def check_ending(option: str, path: Path | None, endings: Iterable[str]) -> None:
    """A name that ends as something else does would lie; one without an ending says nothing."""
    if path is not None and path.suffix and path.suffix.lower() not in endings:
        raise click.UsageError(f"{option}: {path} must end in {' or '.join(endings)}.")


def check_no_other_ending(option: str, path: Path, *own: str) -> None:
    """The same where any ending will do but those that are known to be something else."""
    from motifold.io.reading import READERS

    ending = path.suffix.lower()
    if ending in {*READERS, *TABLE, *PAGE} - {*own}:
        raise click.UsageError(f"{option}: {path} ends as another kind of file: give {own[0]}.")


def keep(path: Path, save: Callable[[Path], Any], what: str) -> None:
    """Save a result; if there is no room for it at its place, elsewhere, and fail with its name."""
    from motifold.files import saved_somewhere

    place, error = saved_somewhere(path, save)
    if error is not None:
        raise Failure(f"{told(error, path)} {what} is not lost: it is in {place}", EXIT_DATA)


def keep_text(path: Path, text: str, what: str) -> None:
    """The same with a text file."""
    from motifold.files import write_whole

    keep(path, lambda place: write_whole(place, text), what)
