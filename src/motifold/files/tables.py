"""Tables as CSV: one way to write numbers and to quote names, for commands, pages and reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Numbers with nine digits; text is quoted where it must be, and None is an empty cell."""
    lines = [columns, *rows]
    return "".join(",".join(_cell(value) for value in line) + "\n" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = str(value)
    if any(sign in text for sign in ',"\r\n'):  # a name from a file
        return '"' + text.replace('"', '""') + '"'
    return text
