"""The directive ``command-line``: what ``motifold COMMAND --help`` says, for every command."""

from __future__ import annotations

from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from motifold.cli import main

_WIDTH = 78  # characters that fit the page


def help_text(name: str | None = None) -> str:
    """The help of one command, or of the program itself."""
    settings = {**main.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = click.Context(main, info_name="motifold", **settings)
    if name is None:
        return main.get_help(context)
    command = main.get_command(context, name)
    if command is None:
        raise ValueError(f"motifold has no command {name!r}")
    return command.get_help(click.Context(command, info_name=name, parent=context))


class CommandLine(SphinxDirective):
    """A section for each command, in the order of the program's own list."""

    def run(self) -> list[nodes.Node]:
        shown: list[nodes.Node] = [_block(help_text())]
        for name in main.list_commands(click.Context(main)):
            section: Any = nodes.section(ids=[f"motifold-{name}"])
            section += nodes.title(text=f"motifold {name}")
            section += _block(help_text(name))
            shown.append(section)
        return shown


def _block(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
