"""The pictures of a report, embedded in it."""

from __future__ import annotations

import base64
import io
from copy import copy
from typing import Any

from motifold.estimator import CNMF
from motifold.plots import (
    plot_contributions,
    plot_factors,
    plot_loss,
    plot_motifs,
    plot_reconstruction,
    plot_significance,
)
from motifold.report.facts import Facts
from motifold.report.markup import Markup, join, tag

_DPI = 110
_EXCERPT_LAGS = 15  # length of the closer look, in motifs
_EXCERPT_BINS = 200  # and at least


def motifs(facts: Facts) -> Markup:
    """All motifs as a grid."""
    shares = [f"motif {k}: {100 * share:.1f}%" for k, share in enumerate(facts.shares)]
    figure = plot_motifs(_shown(facts), titles=shares, rate=_rate(facts), **_features(facts))
    return _picture(
        figure,
        "The motifs: lags from left to right, features from bottom to top or as named.",
        "Each motif on its own scale, dark is strong. The percentage is the share of the "
        f"recording's power that it explains alone. {_order(facts)}",
    )


def overview(facts: Facts) -> Markup:
    """The factors beside the whole recording."""
    return _picture(
        _factors(facts, None),
        "Motifs, activations, data and reconstruction of the whole recording.",
        "The whole recording: motifs at the left, their activations on top in the same colours, "
        f"the data, and what the model makes of it.{_grey(facts)}",
    )


def closer_look(facts: Facts) -> Markup | None:
    """The same for the busiest stretch; None where the recording is no longer than that."""
    if excerpt(facts) is None:
        return None
    return _picture(
        _factors(facts, excerpt(facts)),
        "Motifs, activations, data and reconstruction of an excerpt.",
        "A closer look at the stretch in which most happens.",
    )


def reconstruction(facts: Facts) -> Markup:
    """Data, reconstruction and what is left, and the part of each motif."""
    common: dict[str, Any] = {
        "rate": _rate(facts),
        "time_range": excerpt(facts),
        **_features(facts),
    }
    model, X = _shown(facts), _shown_data(facts)
    first = plot_reconstruction(X, model, residual=True, **common)
    second = plot_contributions(model, X, **common)
    return join(
        _picture(
            first,
            "Data, reconstruction and residual on one scale.",
            "What the model leaves over (residual) should look like noise; structure in it asks "
            f"for more motifs or longer ones.{_grey(facts)}",
        ),
        _picture(
            second,
            "The part of the data that each motif explains.",
            "The part of each motif, and its share of the power in this stretch.",
        ),
    )


def loss_curve(facts: Facts) -> Markup:
    """The course of the fit."""
    figure = plot_loss({"this fit": facts.model}).figure
    return _picture(
        figure,
        "Relative loss against seconds.",
        "The relative loss against the time of the fit. It falls steeply first and is flat at the "
        "end of a fit that converged.",
        narrow=True,
    )


def significance(facts: Facts) -> Markup:
    """Each motif over its shuffled copies."""
    return _picture(
        plot_significance(facts.significance).figure,
        "Skewness of each motif's overlap with the data, and the distribution of its copies.",
        "Grey: copies of the motif with shuffled lags. Dot: the motif itself, filled where it "
        "is significant.",
        narrow=True,
    )


def excerpt(facts: Facts) -> tuple[float, float] | None:
    """Start and end of the busiest stretch on the time axis; None means the whole recording."""
    n_bins = max(_EXCERPT_LAGS * facts.model.n_lags, _EXCERPT_BINS)
    if n_bins >= facts.recording.shape[0]:
        return None
    start, stop = facts.busiest(n_bins)
    rate = _rate(facts) or 1.0
    return start / rate, stop / rate


def _factors(facts: Facts, time_range: tuple[float, float] | None) -> Any:
    return plot_factors(
        _shown(facts),
        _shown_data(facts),
        rate=_rate(facts),
        time_range=time_range,
        sort_features=False,
        **_features(facts),
    )


def _shown(facts: Facts) -> CNMF:
    """The model with the recording's activations, its features in the order of the pictures."""
    shown = copy(facts.model)
    shown.activations_, shown._lengths = facts.activations, facts.lengths
    if facts.order is not None:
        shown.components_ = shown.components_[:, :, facts.order]
        if hasattr(shown, "feature_names_in_"):
            shown.feature_names_in_ = shown.feature_names_in_[facts.order]
        else:
            shown.feature_names_in_ = facts.order.astype(str).astype(object)
    return shown


def _shown_data(facts: Facts) -> Any:
    X = facts.recording.X
    return X if facts.order is None else X[:, facts.order]


def _order(facts: Facts) -> str:
    """What was done about the order of the features."""
    if facts.order is not None:
        return (
            "Features are sorted, here and below, by the motif that they are strongest in and the "
            "lag of their peak in it (--no-sort keeps them as they are)."
        )
    if facts.recording.feature_axis is not None or not facts.likeness.shows_an_order:
        return ""
    found = facts.likeness
    return (
        "Features keep their order, since it means something: neighbours have a correlation of "
        f"{found.neighbours:.2f} (median), others of {found.others:.2f} (--sort sorts them)."
    )


def _grey(facts: Facts) -> str:
    return " Grey: missing." if facts.n_missing else ""


def _rate(facts: Facts) -> float | None:
    return facts.recording.rate


def _features(facts: Facts) -> dict[str, Any]:
    if facts.order is not None:
        return {"feature_label": "feature (sorted)"}
    return {"feature_axis": facts.recording.feature_axis}


def _picture(figure: Any, alternative: str, caption: str, *, narrow: bool = False) -> Markup:
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
