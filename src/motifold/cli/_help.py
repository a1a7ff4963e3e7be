"""How help looks: click's own, with headings and names in colour where the terminal has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from motifold.cli._terminal import in_colour


class _Formatter(click.HelpFormatter):
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(click.style(prog, bold=True), args, prefix)

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))

    def write_dl(self, rows: Iterable[tuple[str, str]], *widths: Any, **more: Any) -> None:
        # A default that help tells by itself, and the range that click adds, in one bracket.
        coloured = [
            (click.style(name, fg="cyan"), text.replace("]  [", "; ")) for name, text in rows
        ]
        super().write_dl(coloured, *widths, **more)


class Context(click.Context):
    """Of every command: it knows whether there are colours, and formats help in them."""

    formatter_class = _Formatter

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **{"color": in_colour(), **more})
