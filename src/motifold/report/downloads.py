"""Tables to take away, inside the page: CSV files as ``data:`` links."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path

from motifold.findings.table import Table
from motifold.report.markup import Markup, join, tag


def downloads(source: str, tables: Mapping[str, Table]) -> Markup:
    """A line with a link for each table; files are named after the recording."""
    stem = re.sub(r"[^\w.-]+", "_", Path(source).stem).strip("_.") or "recording"
    links = [_link(f"{stem}-{name}.csv", name, table) for name, table in tables.items()]
    separated = [part for link in links for part in (", ", link)][1:]
    return tag("p", "Download: ", join(*separated), class_="downloads")


def _link(file: str, name: str, table: Table) -> Markup:
    text = table.to_csv().encode()
    source = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text).decode()}"
    rows = f"{len(table)} row{'' if len(table) == 1 else 's'}"
    return tag("a", f"{name} (CSV, {rows})", href=source, download=file)
