"""The page of a discovery: summary, motifs, table, events."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from motifold import __version__
from motifold.files import check_writable, write_whole
from motifold.report.document import document
from motifold.report.downloads import downloads
from motifold.report.heading import Origin, boxes, heading, section, with_contents
from motifold.report.markup import Markup, join, tag
from motifold.report.pictures import picture

if TYPE_CHECKING:
    from motifold.findings.discovery import Discovery
    from motifold.findings.table import Table

_SHOWN_EVENTS = 2000
_WORDS = {
    "p_recurrence": "p (recurs)",
    "p_order": "p (in order)",
    "n_places": "places compared",
    "n_events": "events",
    "n_features": "features",
    "length": "length (lags)",
    "n_starts": "starts that found it",
    "q_value": "q-value",
}
_FORMATS = {"time": ".3f", "centre": ".3f"} | dict.fromkeys(
    ("p_recurrence", "p_order", "q_value"), ".2g"
)


def write_discovery(
    path: str | os.PathLike[str],
    found: Discovery,
    *,
    recording_name: str | None = None,
    command: str | None = None,
) -> None:
    """Write the page, whole or not at all."""
    check_writable(path)
    name = recording_name or "the recording"
    title = f"What {name} holds"
    summary, *others = found.summary().split("\n")
    sections = [
        section("Summary", *(tag("p", paragraph) for paragraph in others)),
        *([] if len(found.motifs) == 0 else [section("Motifs", _motifs(found))]),
        section("Verdicts", _table(found.table), downloads(name, {"motifs": found.table})),
        section("Events", _events(found, name)),
    ]
    body = join(
        heading(title, Origin(command), _numbers(found), summary),
        with_contents(sections),
        tag("footer", f"Made by motifold {__version__}."),
    )
    write_whole(Path(path), document(title, body))


def _numbers(found: Discovery) -> Markup:
    verdicts = found.verdicts
    told = [
        ("sequences", str(verdicts.count("sequence"))),
        ("synchrony", str(verdicts.count("synchrony"))),
        ("not significant", str(verdicts.count("not significant"))),
        ("events", str(len(found.events))),
        ("false discovery rate", f"{100 * found.fdr:g}%"),
    ]
    return boxes(told)


def _motifs(found: Discovery) -> Markup:
    from motifold.plots import plot_motifs

    titles = [f"motif {k}\n{verdict}" for k, verdict in enumerate(found.verdicts)]
    figure = plot_motifs(found.motifs, rate=found.rate, titles=titles)
    return picture(
        figure,
        "The motifs: lags from left to right, features from top to bottom.",
        "Sharpened motifs, each on its own scale. Features are sorted by motif and lag of their "
        "peak, unless they have an order of their own: any set of motifs looks like sequences when "
        "sorted; the verdicts rest on the tests.",
    )


def _events(found: Discovery, name: str) -> Markup:
    events = found.events
    more = len(events) - _SHOWN_EVENTS
    shown = type(events)(events.records[:_SHOWN_EVENTS], events.columns)
    unit = "bins" if found.rate is None else "seconds"
    told = (
        f"{len(events)} events at a false discovery rate of {100 * found.fdr:g}% (each with its "
        f"q-value); times in {unit} from the start of the segment."
    )
    return join(
        tag("p", told + (f" The first {_SHOWN_EVENTS} are shown." if more > 0 else "")),
        downloads(name, {"events": events}),
        _table(shown, tall=True),
    )


def _table(table: Table, *, tall: bool = False) -> Markup:
    columns = [name for name in table.columns if name != "segment" or any(table[name])]
    rows = [[_cell(name, record[name]) for name in columns] for record in table]
    names = [_WORDS.get(name, name.replace("_", " ")) for name in columns]
    head = tag("tr", [tag("th", name, scope="col") for name in names])
    lines = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    shown = tag("table", tag("thead", head), tag("tbody", lines))
    return tag("div", shown, class_="scroll tall" if tall else "scroll")


def _cell(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return format(value, _FORMATS.get(name, ".4g"))
