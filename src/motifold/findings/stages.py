"""Long work in stages, each kept in a file when it is done: what was interrupted goes on there."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.files import write_whole

Arrays = dict[str, npt.NDArray[Any]]

_KEY = "belongs_to"


class Stages:
    """Named stages, of which each gives arrays; with a path they are kept.

    ``key`` says what data and settings they belong to: a file of others is refused.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: str) -> None:
        self._path = None if path is None else Path(path)
        self._key = key
        self._kept: Arrays = {}
        if self._path is not None and self._path.exists():
            self._kept = self._read(self._path)

    def __call__(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of a stage: those that were kept, or computed now and kept."""
        begin = f"{name}/"
        if begin not in self._kept:
            found = compute()
            self._kept |= {begin: np.zeros(0)} | {begin + key: a for key, a in found.items()}
            self._write()
        return {
            key.removeprefix(begin): array
            for key, array in self._kept.items()
            if key.startswith(begin) and key != begin
        }

    def _read(self, path: Path) -> Arrays:
        try:
            with np.load(path, allow_pickle=False) as file:
                kept = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{path} cannot be read as the stages of a discovery: {error}. Give another path, "
                "or remove the file."
            ) from error
        if str(kept.pop(_KEY, "")) != self._key:
            raise ValueError(
                f"{path} holds the stages of other data or other settings: give another path, or "
                "remove the file."
            )
        return kept

    def _write(self) -> None:
        if self._path is None:
            return
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{_KEY: np.array(self._key)}, **self._kept)  # type: ignore[arg-type]
        write_whole(self._path, buffer.getvalue())
