"""The page: sections put together into one HTML file that needs nothing else."""

from __future__ import annotations

from motifold import __version__
from motifold.findings.facts import Facts
from motifold.report import pictures, sentences, sounds, tables
from motifold.report.document import document, resource
from motifold.report.heading import Origin, Section, boxes, heading, name_of, section, with_contents
from motifold.report.markup import Markup, join, tag


def page(facts: Facts, origin: Origin | None = None) -> str:
    """The whole document."""
    origin = origin or Origin()
    title = f"Motifs of {name_of(facts.recording)}"
    if origin.model is not None:
        title += f", by {origin.model}"
    return document(title, _body(facts, title, origin), resource("page.js"))


def _body(facts: Facts, title: str, origin: Origin) -> Markup:
    return join(
        heading(title, origin, _summary(facts), sentences.about(facts)),
        _warnings(facts),
        with_contents(_sections(facts)),
        tag("footer", f"Made by motifold {__version__}."),
    )


def _sections(facts: Facts) -> list[Section]:
    return [
        section(
            "Motifs",
            pictures.motifs(facts),
            tables.motif_table(facts),
            tables.listening(sounds.players(facts)),
        ),
        section(
            "Data and activations",
            _sentence(sentences.preparation(facts)),
            tables.data_table(facts),
            pictures.overview(facts),
            pictures.closer_look(facts),
        ),
        section("Reconstruction", pictures.reconstruction(facts)),
        section("Events", tables.event_table(facts)),
        *_features(facts),
        section(
            "Significance",
            tag("p", sentences.outcome_of_the_test(facts)),
            None if facts.significance is None else pictures.significance(facts),
        ),
        section(
            "The fit",
            tag(
                "div",
                pictures.loss_curve(facts),
                tables.parameter_table(facts),
                class_="beside",
            ),
        ),
        section("Versions", tables.version_table()),
    ]


def _sentence(text: str | None) -> Markup | None:
    return None if text is None else tag("p", text)


def _summary(facts: Facts) -> Markup:
    model = facts.model
    rate = facts.recording.rate
    length = f"{model.n_lags} lags" + (f" ({model.n_lags / rate:.3g} s)" if rate else "")
    numbers = [
        ("motifs", str(model.n_components)),
        ("length of a motif", length),
        ("loss", facts.fit.loss.title),
        (f"{facts.fit.loss.explains} explained", f"{100 * facts.explained:.1f}%"),
        ("relative loss", f"{facts.loss:.4f}"),
        *_background(facts),
        ("events", str(len(facts.events))),
        ("the fit", sentences.end_of_the_fit(model)),
        *_starts(facts),
    ]
    return boxes(numbers)


def _warnings(facts: Facts) -> Markup | None:
    told = sentences.warnings_of(facts)
    if not told:
        return None
    items = [tag("li", sentence) for sentence in told]
    return tag("section", tag("h2", "Before you believe it"), tag("ul", items), class_="warnings")


def _features(facts: Facts) -> list[Section]:
    """Which feature is in which motif; of frequencies and the like the pictures tell it better."""
    if facts.recording.feature_axis is not None:
        return []
    return [section("Features", tables.feature_table(facts))]


def _starts(facts: Facts) -> list[tuple[str, str]]:
    """How many starts ended alike, where there were several."""
    found = facts.starts
    if found is None or found.n_starts == 1:
        return []
    told = f"{found.agreeing} of {found.n_starts} agree"
    return [("starts", f"no other of {found.n_starts} agrees" if found.is_alone else told)]


def _background(facts: Facts) -> list[tuple[str, str]]:
    """What is said of the constants beside the motifs, where there are any."""
    if facts.model.background_ is None:
        return []
    share = f"{100 * (facts.background or 0):.1f}% of the {facts.fit.loss.explains}"
    return [("background", f"a constant of every feature, {share}")]
