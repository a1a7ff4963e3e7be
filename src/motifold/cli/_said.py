"""The command that was given, as it is told in a report: without the folders of this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource


def command_line() -> str:
    """The command that is running, with what was given to it; absolute paths by their names."""
    context = click.get_current_context()
    words = ["motifold", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += _words_of(parameter, context.params.get(name))
    return shlex.join(words)


def _words_of(parameter: click.Parameter, value: Any) -> list[str]:
    if not isinstance(parameter, click.Option):
        return [_word(part) for part in (value if isinstance(value, tuple) else [value])]
    option = max(parameter.opts, key=len)
    if parameter.is_flag:
        return [option if value or not parameter.secondary_opts else parameter.secondary_opts[0]]
    values = value if parameter.multiple else [value]
    return [word for part in values for word in (option, *_all(part))]


def _all(value: Any) -> list[str]:
    return [_word(part) for part in (value if isinstance(value, tuple) else [value])]


def _word(value: Any) -> str:
    text = str(value)
    return Path(text).name if Path(text).is_absolute() else text
