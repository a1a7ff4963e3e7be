"""The command that was given, as it is told in a report: without the folders of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

_WORDS = "motifold.words"


def remember(context: click.Context, words: Sequence[str]) -> None:
    """Keep the words as they were typed: what is parsed can not always be put into words again."""
    context.meta[_WORDS] = tuple(words)


def command_line() -> str:
    """The command that is running, as it was given; absolute paths by their names."""
    context = click.get_current_context()
    given = context.params.values()
    values = [part for value in given for part in (value if isinstance(value, tuple) else [value])]
    paths = [str(value) for value in values if isinstance(value, Path) and value.is_absolute()]
    words = context.meta.get(_WORDS, (context.info_name or "",))
    return shlex.join(["motifold", *(_without_folder(word, paths) for word in words)])


def _without_folder(word: str, paths: Sequence[str]) -> str:
    """Also where the path follows its option in one word, as in ``--report=/home/me/a.html``."""
    for path in paths:
        if word.endswith(path):
            return word.removesuffix(path) + Path(path).name
    return word
