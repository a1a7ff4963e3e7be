"""The page: sections put together into one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

from motifold import __version__
from motifold.report import pictures, sounds, tables
from motifold.report.facts import Facts
from motifold.report.markup import Markup, join, tag


def page(facts: Facts) -> str:
    """The whole document."""
    script = _resource("page.js")
    title = f"Motifs of {Path(facts.recording.source).name}"
    # Only this script may run, and nothing may be fetched: whatever a name in the data tries.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(_resource("page.css"))),
    )
    body = tag("body", _body(facts, title), tag("script", Markup(script)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _resource(name: str) -> str:
    return files("motifold.report").joinpath(name).read_text(encoding="utf-8")


def _body(facts: Facts, title: str) -> Markup:
    return join(
        tag("header", tag("h1", title), _summary(facts)),
        _warnings(facts),
        _section(
            "Motifs",
            pictures.motifs(facts),
            tables.motif_table(facts),
            tables.listening(sounds.players(facts)),
        ),
        _section(
            "Data and activations",
            tables.data_table(facts),
            pictures.overview(facts),
            pictures.closer_look(facts),
        ),
        _section("Reconstruction", pictures.reconstruction(facts)),
        _section("Events", tables.event_table(facts)),
        _section("Significance", _test(facts), pictures.significance(facts)),
        _section(
            "The fit",
            tag(
                "div",
                pictures.loss_curve(facts),
                tables.parameter_table(facts),
                class_="beside",
            ),
        ),
        _section("Versions", tables.version_table()),
        tag("footer", f"Made by motifold {__version__}."),
    )


def _section(title: str, *children: Markup | None) -> Markup:
    return tag("section", tag("h2", title), *children)


def _summary(facts: Facts) -> Markup:
    model = facts.model
    rate = facts.recording.rate
    length = f"{model.n_lags} lags" + (f" ({model.n_lags / rate:.3g} s)" if rate else "")
    numbers = [
        ("motifs", str(model.n_components)),
        ("length of a motif", length),
        ("power explained", f"{100 * (1 - facts.loss**2):.1f}%"),
        ("relative loss", f"{facts.loss:.4f}"),
        ("events", str(len(facts.events))),
        ("the fit", f"{model.stop_reason_}, {model.n_iter_} iterations"),
    ]
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers])


def _warnings(facts: Facts) -> Markup | None:
    told = facts.warnings()
    if not told:
        return None
    items = [tag("li", sentence) for sentence in told]
    return tag("section", tag("h2", "Before you believe it"), tag("ul", items), class_="warnings")


def _test(facts: Facts) -> Markup:
    found = facts.significance
    n_tested, n_null = int(found.tested.sum()), found.null.shape[1]
    sentence = (
        f"{int(found.significant.sum())} of {n_tested} motifs tested recur more sharply than "
        f"{n_null} copies of them in which each feature is shifted by a random lag (level "
        f"{found.alpha:g} for all together, Bonferroni's correction). The p-values are in the "
        f"table of motifs.{_where(facts)}"
    )
    return tag("p", sentence)


def _where(facts: Facts) -> str:
    T, tested = facts.recording.shape[0], facts.tested_bins
    if tested == T:
        return ""
    rate = facts.recording.rate
    long = f"{tested} time bins" if rate is None else f"{tested / rate:.3g} s"
    return f" To save time the test took the last {long} of the recording."
