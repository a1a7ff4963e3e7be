"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from motifold.files import versions
from motifold.findings.facts import Facts
from motifold.report.downloads import downloads
from motifold.report.heading import name_of
from motifold.report.markup import Markup, join, tag
from motifold.report.sentences import how_shares_add_up, which_events

_SHOWN_EVENTS = 2000
_SHOWN_FEATURES = 500
_PRINTED_EVENTS = 60  # on paper, where nobody can filter
_STRENGTH = {"id": "least", "type": "number", "min": 0, "step": "any"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def motif_table(facts: Facts) -> Markup:
    """One row for each motif, and what they add up to."""
    per_minute, overlaps = facts.per_minute, facts.overlaps
    of = facts.fit.loss.explains
    head = ["motif", f"share of {of}", *([] if overlaps is None else ["shared"]), "events"]
    head += [] if per_minute is None else ["events per minute"]
    head += [] if facts.significance is None else [_p_value(facts), "significant"]
    rows = []
    for k, share in enumerate(facts.shares):
        row: list[Any] = [_named(facts, k), percent(share)]
        row += [] if overlaps is None else [percent(overlaps[k])]
        row.append(str(facts.counts[k]))
        if per_minute is not None:
            row.append(f"{per_minute[k]:.3g}")
        rows.append(row + _verdict(facts, k))
    sums = [["all motifs", percent(facts.shares.sum())]]
    if facts.background is not None:
        sums.append(["background", percent(facts.background)])
    sums.append(["not explained", percent(1 - facts.explained)])
    padded = [row + [""] * (len(head) - len(row)) for row in sums]
    return join(_table(head, [*rows, *padded], "sums"), tag("p", how_shares_add_up(facts)))


def percent(share: float) -> str:
    """With one digit, and no minus before a zero."""
    return f"{100 * share + 0.0:.1f}%".replace("-0.0%", "0.0%")


def listening(players: list[Markup] | None) -> Markup | None:
    """The players of each motif, where the recording is a sound."""
    if players is None:
        return None
    rows = [tag("li", _swatch(k), pair) for k, pair in enumerate(players)]
    sentence = (
        "Listen: what a motif has of the recording around its strongest event (a mask: its share "
        "of the reconstruction at every time and frequency); beside it the recording there. All "
        "clips are raised by the same: what is quiet here is quiet in the recording."
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
    if found is None:
        return []
    if not found.tested[k]:
        return ["–", "not tested: one feature only, or empty"]
    return [f"{found.p_value[k]:.2g}", "yes" if found.significant[k] else "no"]


def _p_value(facts: Facts) -> str:
    assert facts.unseen is not None
    where = "held-out data" if facts.unseen.kind == "held out" else "this recording"
    return f"p-value ({where})"


def event_table(facts: Facts) -> Markup:
    """The events, with controls to sort and filter them."""
    records = facts.events.records
    shown = sorted(records, key=lambda record: -record["strength"])[:_SHOWN_EVENTS]
    printed = {id(record) for record in shown[:_PRINTED_EVENTS]}
    shown.sort(key=lambda record: (record["bin"], record["motif"]))
    columns = _event_columns(facts)
    rows = [_event_row(columns, record, weak=id(record) not in printed) for record in shown]
    left_out = len(records) - len(shown)
    take_away = downloads(facts.recording.source, {"events": facts.events})
    more = f" The strongest {len(shown)} of {len(records)} are here." if left_out else ""
    weaker = None
    if len(printed) < len(shown):
        weaker = tag("p", f"On paper: the {len(printed)} strongest.", class_="paper")
    return join(
        tag("p", f"Peaks of the activations: when each motif occurs, and how strongly.{more}"),
        tag("p", which_events(facts)),
        _of_the_columns(facts),
        weaker,
        take_away,
        _controls(facts),
        tag(
            "div",
            tag(
                "table",
                tag(
                    "thead",
                    tag("tr", [_sorter(i, title) for i, (_, title, _) in enumerate(columns)]),
                ),
                tag("tbody", rows),
                id="events",
                class_="sortable",
            ),
            class_="scroll tall",
        ),
    )


def _event_columns(facts: Facts) -> list[tuple[str, str, str]]:
    """Name in the records, title, and format of a value."""
    rate = facts.recording.rate
    unit, digits = ("s", ".3f") if rate else ("bins", ".0f")
    columns = [("motif", "motif", "")]
    columns += [("segment", "segment", "")] if len(facts.fit.segments.lengths) > 1 else []
    columns += [(name, f"{name} ({unit})", digits) for name in ("time", "peak")]
    columns += [("strength", "strength", ".4g"), ("explained", "explained", ".0%")]
    columns += [("observed", "observed", ".0%")] if facts.fit.observed is not None else []
    return columns + ([("q_value", "q-value", ".2g")] if facts.fdr is not None else [])


def _event_row(
    columns: list[tuple[str, str, str]], record: dict[str, Any], *, weak: bool
) -> Markup:
    """A row that can be sorted and filtered; a weak one is not printed."""
    cells = [
        tag("td", format(record[name], form), data_value=f"{record[name]:.9g}")
        for name, _, form in columns
    ]
    return tag(
        "tr",
        cells,
        data_motif=record["motif"],
        data_strength=f"{record['strength']:.9g}",
        class_="weak" if weak else None,
    )


def _of_the_columns(facts: Facts) -> Markup:
    told = (
        "Explained: share of the recording's power, in the bins of the motif, that the event "
        "explains alone."
    )
    if facts.fit.observed is not None:
        told += " Observed: share of the motif that is not missing there."
    if facts.n_partial:
        one = facts.n_partial == 1
        told += f" Left out {'is' if one else 'are'} {facts.n_partial} more, which the end of a "
        told += "segment cuts off."
    return tag("p", told)


def feature_table(facts: Facts) -> Markup:
    """Which motif each feature belongs to, and when it peaks in it."""
    table = facts.features
    shown = table.records[:_SHOWN_FEATURES]
    unit = "s" if facts.recording.rate else "bins"
    key = "lag_seconds" if facts.recording.rate else "lag"
    rows = [
        [
            row["name"],
            *([_swatch(row["motif"]), f"{row[key]:.4g}"] if row["motif"] >= 0 else ["–", "–"]),
            f"{row['weight']:.3g}",
            f"{100 * row['share']:.0f}%",
        ]
        for row in shown
    ]
    head = ["feature", "motif", f"lag of peak ({unit})", "weight", "share in this motif"]
    more = f" The first {len(shown)} of {len(table)} are here." if len(shown) < len(table) else ""
    told = (
        "The motif in which each feature has most power, the lag of its peak there and the motif's "
        f"value at it; features are in that order.{more}"
    )
    listed = tag("div", _table(head, rows, None), class_="scroll tall")
    return join(tag("p", told), downloads(facts.recording.source, {"features": table}), listed)


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
    if facts.model.preparation_ is not None:
        steps = facts.model.preparation_.steps_
        kept |= {f"preparation {i}": step for i, step in enumerate(steps, start=1)}
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
    rows: list[list[Any]] = [["recording", name_of(recording)], ["time bins", T], ["features", N]]
    if recording.rate is not None:
        rows += [["time bins per second", f"{recording.rate:g}"]]
        rows += [["duration", f"{T / recording.rate:.4g} s"]]
        if recording.starts is not None and any(recording.starts):
            more = ", …" if len(recording.starts) > 5 else ""
            firsts = ", ".join(f"{start:.10g}" for start in recording.starts[:5])
            rows += [["begins at (s)", firsts + more]]
    rows += [["segments", len(facts.fit.segments.lengths)]]
    rows += [["smallest, mean, largest value", extremes]]
    if facts.n_missing:
        rows += [["missing entries", f"{facts.n_missing} ({100 * facts.missing_share:.2g}%)"]]
    names = recording.feature_names
    if names is not None and recording.feature_axis is None:
        more = f", … ({len(names)} in all)" if len(names) > 30 else ""
        rows += [["feature names", ", ".join(names[:30]) + more]]
    return _table(["the data", ""], rows)


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
