"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place beside ``path`` to write to, which is renamed to it when the block has ended well."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    yield part
    os.replace(part, target)
