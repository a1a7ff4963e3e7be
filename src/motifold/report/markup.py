"""HTML that cannot be spoilt by what is put into it: all text is escaped, but for markup itself."""

from __future__ import annotations

from html import escape
from typing import Any

_VOID = {"img", "input", "meta", "br", "hr"}


class Markup(str):
    """Text that is HTML already, made by this module."""


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element. Children that are no ``Markup`` are escaped, and so are the attributes.

    An attribute's name ends in ``_`` where Python needs it (``class_``); other ``_`` become ``-``.
    None leaves an attribute out, True gives it no value.
    """
    parts = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(label)
        elif value is not None and value is not False:
            parts.append(f'{label}="{escape(str(value), quote=True)}"')
    head = f"<{' '.join(parts)}>"
    if name in _VOID:
        return Markup(head)
    return Markup(f"{head}{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Children after one another; text is escaped, None is nothing."""
    return Markup("".join(_markup(child) for child in children if child is not None))


def _markup(child: Any) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)):
        return join(*child)
    return escape(str(child), quote=True)
