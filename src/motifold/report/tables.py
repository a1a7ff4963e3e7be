"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from motifold.files import versions
from motifold.findings.facts import Facts
from motifold.report.markup import Markup, join, tag

_SHOWN_EVENTS = 2000
_PRINTED_EVENTS = 60  # on paper, where nobody can filter
_STRENGTH = {"id": "least", "type": "number", "min": 0, "step": "any"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def motif_table(facts: Facts) -> Markup:
    """One row for each motif."""
    per_minute = facts.per_minute
    of = "reconstruction" if facts.fit.loss.by_ratios else "power"
    head = ["motif", f"share of {of}", "events"]
    head += [] if per_minute is None else ["events per minute"]
    head += ["p-value", "significant"]
    rows = []
    for k, share in enumerate(facts.shares):
        row: list[Any] = [_named(facts, k), f"{100 * share:.1f}%", str(facts.counts[k])]
        if per_minute is not None:
            row.append(f"{per_minute[k]:.3g}")
        row += _verdict(facts, k)
        rows.append(row)
    return _table(head, rows, None)


def listening(players: list[Markup] | None) -> Markup | None:
    """The players of each motif, where the recording is a sound."""
    if players is None:
        return None
    rows = [tag("li", _swatch(k), pair) for k, pair in enumerate(players)]
    sentence = (
        "Listen: the part of the recording that a motif explains, around its strongest event, "
        "turned into sound with the phase of the recording; beside it the recording there. All "
        "clips are equally loud."
    )
    return join(tag("p", sentence, class_="listening"), tag("ul", rows, class_="listen"))


def _swatch(k: int, ink: str | None = None) -> Markup:
    from motifold.plots.style import colour

    style = f"background:{ink or colour(k)}"
    return join(tag("span", "", class_="swatch", style=style), f" {k}")


def _named(facts: Facts, k: int) -> Markup:
    """The motif with what was said of it in the explorer."""
    if facts.notes is None:
        return _swatch(k)
    note = facts.notes.motifs[k]
    state = " (hidden)" if note.hidden else ""
    if note.merged_into is not None:
        state = f" (counts as {facts.notes.title(note.merged_into)})"
    return join(_swatch(k, note.colour), f" {note.name}" if note.name else "", state)


def _verdict(facts: Facts, k: int) -> list[str]:
    found = facts.significance
    if not found.tested[k]:
        return ["–", "not tested: one feature only, or empty"]
    return [f"{found.p_value[k]:.2g}", "yes" if found.significant[k] else "no"]


def event_table(facts: Facts) -> Markup:
    """The events, with controls to sort and filter them."""
    records = facts.events.records
    shown = sorted(records, key=lambda record: -record["strength"])[:_SHOWN_EVENTS]
    printed = {id(record) for record in shown[:_PRINTED_EVENTS]}
    shown.sort(key=lambda record: (record["bin"], record["motif"]))
    unit = "s" if facts.recording.rate else "bins"
    several = len(facts.fit.segments.lengths) > 1
    head = ["motif", *(["segment"] if several else []), f"time ({unit})", "strength"]
    rows = []
    for record in shown:
        cells: list[tuple[float, str | None]] = [(record["motif"], None)]
        cells += [(record["segment"], None)] if several else []
        digits = 3 if facts.recording.rate else 0
        cells += [(record["time"], f"{record['time']:.{digits}f}")]
        cells += [(record["strength"], f"{record['strength']:.4g}")]
        rows.append(
            tag(
                "tr",
                [tag("td", text or value, data_value=f"{value:.9g}") for value, text in cells],
                data_motif=record["motif"],
                class_=None if id(record) in printed else "weak",
            )
        )
    left_out = len(records) - len(shown)
    more = f" The strongest {len(shown)} of {len(records)} are here." if left_out else ""
    weaker = None
    if len(printed) < len(shown):
        weaker = tag("p", f"On paper: the {len(printed)} strongest.", class_="paper")
    return join(
        tag("p", f"Peaks of the activations: when each motif starts, and how strongly.{more}"),
        weaker,
        _controls(facts),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", [_sorter(i, name) for i, name in enumerate(head)])),
                tag("tbody", rows),
                id="events",
                class_="sortable",
            ),
            class_="scroll tall",
        ),
    )


def _controls(facts: Facts) -> Markup:
    K = facts.model.n_components
    choices = [tag("option", "all motifs", value="")]
    choices += [tag("option", f"motif {k}", value=k) for k in range(K)]
    return tag(
        "p",
        tag("label", "Show ", tag("select", choices, id="which")),
        " ",
        tag("label", "of strength ", tag("input", **_STRENGTH), " or more"),
        " ",
        tag("span", "", id="shown", role="status"),
        class_="controls",
    )


def _sorter(i: int, name: str) -> Markup:
    return tag("th", tag("button", name, type="button", data_column=i), scope="col")


def parameter_table(facts: Facts) -> Markup:
    """The parameters of the fit, and how the data was read."""
    parameters = facts.model.get_params(deep=False)
    kept = {
        name: value for name, value in parameters.items() if name not in ("callback", "verbose")
    }
    kept |= {f"reading: {name}": value for name, value in facts.recording.options.items()}
    return _table(["parameter", "value"], [[name, repr(value)] for name, value in kept.items()])


def version_table() -> Markup:
    """What it ran on."""
    rows = [[name, found] for name, found in versions(_LIBRARIES).items() if found is not None]
    return _table(["program", "version"], rows)


def data_table(facts: Facts) -> Markup:
    """What the recording is."""
    recording = facts.recording
    T, N = recording.shape
    extremes = ", ".join(f"{value:.4g}" for value in facts.extremes)
    rows: list[list[Any]] = [["file", recording.source], ["time bins", T], ["features", N]]
    if recording.rate is not None:
        rows += [["time bins per second", f"{recording.rate:g}"]]
        rows += [["duration", f"{T / recording.rate:.4g} s"]]
    rows += [["segments", len(facts.fit.segments.lengths)]]
    rows += [["smallest, mean, largest value", extremes]]
    if facts.n_missing:
        rows += [["missing entries", f"{facts.n_missing} ({100 * facts.missing_share:.2g}%)"]]
    names = recording.feature_names
    if names is not None and recording.feature_axis is None:
        more = f", … ({len(names)} in all)" if len(names) > 30 else ""
        rows += [["feature names", ", ".join(names[:30]) + more]]
    return _table(["recording", ""], rows)


def _table(
    head: Iterable[Any], rows: Iterable[Iterable[Any]], class_: str | None = "facts"
) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", [tag("th", cell, scope="col") for cell in head])),
            tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows]),
            class_=class_,
        ),
        class_="scroll whole",
    )
