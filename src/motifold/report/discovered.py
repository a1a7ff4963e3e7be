"""The page of a discovery: summary, motifs, table, events."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from motifold.files import check_writable, write_whole
from motifold.findings.profiles import sort_features
from motifold.report.document import document
from motifold.report.markup import Markup, join, tag
from motifold.report.pictures import picture

if TYPE_CHECKING:
    from motifold.findings.discovery import Discovery
    from motifold.findings.table import Table

_SHOWN_EVENTS = 2000


def write_discovery(path: str | os.PathLike[str], found: Discovery) -> None:
    """Write the page, whole or not at all."""
    check_writable(path)
    title = "What the recording holds"
    body = join(
        tag("header", tag("h1", title)),
        tag("section", tag("h2", "Summary"), [tag("p", p) for p in found.summary().split("\n")]),
        _motifs(found),
        tag("section", tag("h2", "Verdicts"), _table(found.table)),
        tag("section", tag("h2", "Events"), _events(found)),
    )
    write_whole(Path(path), document(title, body))


def _motifs(found: Discovery) -> Markup | None:
    if len(found.motifs) == 0:
        return None
    from motifold.plots import plot_motifs

    order = sort_features(found.motifs).order
    titles = [f"motif {k}: {verdict}" for k, verdict in enumerate(found.verdicts)]
    figure = plot_motifs(found.motifs[:, :, order], rate=found.rate, titles=titles)
    shown = picture(
        figure,
        "The motifs: lags from left to right, features sorted by motif and lag.",
        "Sharpened motifs, each on its own scale. Features are sorted by motif and lag of their "
        "peak: any set of motifs looks like sequences so; the verdicts rest on the tests.",
    )
    return tag("section", tag("h2", "Motifs"), shown)


def _events(found: Discovery) -> Markup:
    events = found.events
    more = len(events) - _SHOWN_EVENTS
    shown = type(events)(events.records[:_SHOWN_EVENTS], events.columns)
    unit = "bins" if found.rate is None else "seconds"
    told = f"{len(events)} events; times in {unit} from the start of the segment."
    return join(
        tag("p", told + (f" The first {_SHOWN_EVENTS} are shown." if more > 0 else "")),
        _table(shown),
    )


def _table(table: Table) -> Markup:
    rows = [[_cell(record[name]) for name in table.columns] for record in table]
    head = tag("tr", [tag("th", name) for name in table.columns])
    lines = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", lines)), class_="scroll")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
