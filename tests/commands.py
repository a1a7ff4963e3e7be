"""The command line, run in this process."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from motifold.cli import main


def run(*arguments: object, given: str | None = None, **more: Any) -> Result:
    """``motifold ARGUMENTS``, with ``given`` on its standard input."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, words, input=given, **more)


def ok(*arguments: object, given: str | None = None) -> Result:
    """The same, where it must succeed."""
    answer = run(*arguments, given=given)
    assert answer.exit_code == 0, answer.output
    return answer
