"""The pictures of a report, embedded in it."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

from motifold.findings.facts import Facts
from motifold.findings.times import Clock
from motifold.plots import plot_loss, plot_significance
from motifold.plots.contributions import draw_contributions
from motifold.plots.factors import draw_factors
from motifold.plots.motifs import draw_motifs
from motifold.plots.style import Features
from motifold.plots.view import View
from motifold.report.markup import Markup, tag
from motifold.report.sentences import meaning_of_shares, order_of_features
from motifold.report.tables import percent

_DPI = 110


def motifs(facts: Facts) -> Markup:
    """All motifs as a grid."""
    shares = [f"motif {k}: {percent(share)}" for k, share in enumerate(facts.shares)]
    motifs, rate = facts.model.components_, facts.recording.rate
    return picture(
        draw_motifs(motifs, features_of(facts), rate, shares),
        "The motifs: lags from left to right, features from bottom to top or as named.",
        "Each motif on its own scale, dark is strong. The percentage is the "
        f"{meaning_of_shares(facts)}. {order_of_features(facts)}",
    )


def overview(facts: Facts) -> Markup:
    """The factors beside the whole recording."""
    return picture(
        draw_factors(facts.fit, features_of(facts), _whole(facts)),
        "Motifs, activations, data and reconstruction of the whole recording.",
        "The whole recording: motifs at the left, their activations on top in the same colours, "
        f"the data, and what the model makes of it.{_grey(facts, _whole(facts), lanes=True)}",
    )


def closer_look(facts: Facts) -> Markup | None:
    """The same for the busiest stretch; None where the recording is no longer than that."""
    if facts.excerpt is None:
        return None
    return picture(
        draw_factors(facts.fit, features_of(facts), _closer(facts)),
        "Motifs, activations, data and reconstruction of an excerpt.",
        "A closer look at the stretch in which most happens."
        f"{_grey(facts, _closer(facts), lanes=True)}",
    )


def reconstruction(facts: Facts) -> Markup:
    """What is left of the data, and the part of each motif; the data itself is above."""
    fit, features, view = facts.fit, features_of(facts), _closer(facts)
    every = list(range(facts.model.n_components))
    of = "the same stretch" if facts.excerpt is not None else "the recording"
    return picture(
        draw_contributions(fit, features, view, every, residual=True, bars=False),
        "What the model leaves over of the data, and the part of it that each motif makes.",
        f"On top what the model leaves over of {of} (on the scale of the data): it should look "
        "like noise; structure in it asks for more motifs or longer ones. Below the part that each "
        f"motif makes.{_grey(facts, view)}",
    )


def loss_curve(facts: Facts) -> Markup:
    """The course of the fit."""
    figure = plot_loss(facts.model).figure
    return picture(
        figure,
        "Relative loss against seconds.",
        f"The relative loss ({facts.fit.loss.title}) against the time of the fit. It falls steeply "
        "first and is flat at the end of a fit that converged.",
        narrow=True,
    )


def significance(facts: Facts) -> Markup:
    """Each motif over its shuffled copies, where it was tested."""
    assert facts.significance is not None
    return picture(
        plot_significance(facts.significance).figure,
        "Skewness of each motif's overlap with the data, and the distribution of its copies.",
        "Grey: copies of the motif in which each feature is shifted by a random lag. Dot: the "
        "motif itself, filled where it is significant.",
        narrow=True,
    )


def _whole(facts: Facts) -> View:
    return View.from_bins(0, len(facts.fit.H), facts.recording.rate, _clock(facts))


def _clock(facts: Facts) -> Clock:
    recording = facts.recording
    return Clock.of(recording.rate, facts.fit.segments.lengths, recording.starts)


def _closer(facts: Facts) -> View:
    """The busiest stretch; the whole recording where that is no longer."""
    if facts.excerpt is None:
        return _whole(facts)
    return View.from_bins(*facts.excerpt, facts.recording.rate, _clock(facts))


def _grey(facts: Facts, view: View, *, lanes: bool = False) -> str:
    """What is grey in a stretch, if anything is: in the data, and in the lanes of activations."""
    mask, bins = facts.recording.mask, slice(view.start, view.stop)
    is_missing = mask is not None and not mask[bins].all()
    told = " Grey: missing." if is_missing else ""
    if lanes and facts.fit.unknown(view.start, view.stop).any():
        hidden = "missing data hides or " if is_missing else ""
        told += (
            f" Activations are grey where {hidden}the end of a segment cuts off most of the motif: "
            "they rest on little and are no events."
        )
    return told


def features_of(facts: Facts) -> Features:
    """The axis of the features, in the order of the pictures."""
    names = getattr(facts.model, "feature_names_in_", None)
    found = Features.from_options(facts.fit.shape[1], facts.recording.feature_axis, None, names)
    if facts.order is not None:
        return found.reordered(facts.order)
    # An order of their own without numbers: most likely frequencies, low ones first.
    upwards = facts.recording.feature_axis is None and facts.correlation.shows_an_order
    return replace(found, upwards=upwards)


def picture(figure: Any, alternative: str, caption: str, *, narrow: bool = False) -> Markup:
    """A figure with its caption, embedded."""
    file = io.BytesIO()
    # A third of the time of the usual level, for 3 % more bytes.
    figure.savefig(file, format="png", dpi=_DPI, pil_kwargs={"compress_level": 4})
    data = base64.b64encode(file.getvalue()).decode()
    source = f"data:image/png;base64,{data}"
    image = tag("img", src=source, alt=alternative)
    return tag(
        "figure",
        tag("div", image, class_="scroll"),
        tag("figcaption", caption),
        class_="narrow" if narrow else None,
    )
