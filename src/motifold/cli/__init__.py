"""``motifold``: the command line.

Built with click: it is light (no further dependencies), kept up, completes names in the shell, and
has a runner for tests. A command is one file of this folder with a function ``command``, and one
line in ``_COMMANDS``. At import such a file may import click and the files with an underscore
alone, so that ``motifold --help`` answers at once; what the command needs, it imports when it runs.
"""

from __future__ import annotations

import errno
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from motifold import __version__
from motifold.cli._help import Context
from motifold.cli._said import remember
from motifold.cli._shared import EXIT_DATA, Failure, told
from motifold.cli._terminal import interruptible, shown_in_colour, visible

_COMMANDS = (
    "demo",
    "info",
    "discover",
    "fit",
    "transform",
    "events",
    "features",
    "export",
    "significance",
    "separate",
    "report",
    "explore",
    "sweep",
    "reproduce",
    "bench",
    "doctor",
    "warmup",
)


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"motifold.cli.{cmd_name}").command
        command.context_class = Context
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; of a name that is none, what it may have been."""
        near = get_close_matches(args[0], _COMMANDS, n=1)
        if near and near[0] != args[0] and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]}?")
        remember(ctx, args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C, SIGTERM and errors end it in one way."""
        with interruptible():
            try:
                return super().invoke(ctx)
            except click.ClickException as error:
                error.message = visible(error.message)  # type: ignore[misc]
                raise shown_in_colour(error) from error.__cause__
            except OSError as error:  # of what is printed: on a full disk, say
                if error.errno == errno.EPIPE:  # nobody reads on: click ends in silence
                    raise
                raise shown_in_colour(Failure(visible(told(error)), EXIT_DATA)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="motifold")
def main() -> None:
    """Patterns that recur in long multichannel recordings, by convolutive NMF.

    \b
    A first try:      motifold demo
    Your own sound:   motifold fit speech.wav -k 8 -l 0.4s --report speech.html
    Its parts:        motifold separate drums.wav -k 3 -l 150ms -o parts/
    Your own table:   motifold fit counts.csv --time seconds -k 5 -l 20

    \b
    Completion of names, by a line in the start file of the shell:
      bash   eval "$(_MOTIFOLD_COMPLETE=bash_source motifold)"
      zsh    eval "$(_MOTIFOLD_COMPLETE=zsh_source motifold)"
      fish   _MOTIFOLD_COMPLETE=fish_source motifold | source
    """
