"""The page of a sound that was taken apart: its parts to listen to and to look at."""

from __future__ import annotations

import os
from pathlib import Path

from motifold import __version__
from motifold.files import check_writable, refuse_replacing, write_whole
from motifold.plots.contributions import draw_contributions
from motifold.plots.motifs import draw_motifs
from motifold.plots.style import Features
from motifold.plots.view import View
from motifold.report.clips import excerpts
from motifold.report.document import document
from motifold.report.heading import Origin, boxes, heading, section, with_contents
from motifold.report.markup import Markup, join, tag
from motifold.report.pictures import picture
from motifold.report.sentences import end_of_the_fit
from motifold.report.sounds import player
from motifold.sound import Separation

_SECONDS = 30.0  # that are heard and seen, at most


def write_parts(
    path: str | os.PathLike[str], apart: Separation, *, command: str | None = None
) -> None:
    """Write a page with a player and a picture of each part of a sound.

    Parameters
    ----------
    path : str or path
        The HTML file; it appears whole or not at all.
    apart : Separation
        From ``motifold.sound.separate``.
    command : str or None, default=None
        How the page was made, for its heading.
    """
    refuse_replacing(path, apart.spectrogram.source)
    check_writable(path)
    title = f"Parts of {Path(apart.spectrogram.source).name}"
    write_whole(path, document(title, _body(apart, title, Origin(command))))


def _body(apart: Separation, title: str, origin: Origin) -> Markup:
    spectrogram, K = apart.spectrogram, len(apart.model.components_)
    fit = apart.fit
    n_bins = max(1, round(_SECONDS * spectrogram.rate))
    start, stop = fit.busiest(n_bins) if n_bins < len(apart.activations) else (0, len(fit.H))
    features = Features.from_options(len(spectrogram.feature_axis), spectrogram.feature_axis, None)
    view = View.from_bins(start, stop, spectrogram.rate)
    names = apart.names
    motifs = draw_motifs(apart.model.components_, features, spectrogram.rate, names[:K])
    parts = draw_contributions(fit, features, view, list(range(K)))
    named = [f"Motif {k} is {name}." for k, name in enumerate(names[:K]) if name != f"motif-{k}"]
    seen = " ".join(["The spectrogram, and what each motif makes of it.", *named])
    sections = [
        section("Listen", _players(apart, start, stop)),
        section(
            "Motifs",
            picture(
                motifs,
                "The motifs: lags to the right, frequency upwards.",
                "What recurs, each on its own scale; dark is strong, octaves are of equal height.",
            ),
        ),
        section(
            "Parts",
            picture(
                parts,
                "The part of the spectrogram that each motif makes.",
                seen,
            ),
        ),
    ]
    return join(
        heading(title, origin, _summary(apart)),
        with_contents(sections),
        tag("footer", f"Made by motifold {__version__}."),
    )


def _players(apart: Separation, start: int, stop: int) -> Markup:
    files, gain = excerpts(apart, start, stop)
    rows = [tag("li", player(name, file, name), class_="players") for name, file in files.items()]
    rate = apart.spectrogram.rate
    sentence = (
        f"From {start / rate:.3g} s to {stop / rate:.3g} s; the files have all of it. The parts "
        f"add up to the recording. All are played at {gain:.3g} times their level: what is quiet "
        "here is quiet there."
    )
    return join(tag("p", sentence, class_="listening"), tag("ul", rows, class_="listen"))


def _summary(apart: Separation) -> Markup:
    model, made = apart.model, apart.spectrogram.options
    L, n = model.n_lags, model.n_init
    numbers = [
        ("parts", ", ".join(apart.names)),
        ("length of a motif", f"{L} lags ({L / apart.spectrogram.rate:.3g} s)"),
        ("relative loss", f"{model.loss_:.4f}"),
        ("representation", f"{made['kind']}, scale {made['scale']}, noise floor "
         f"{made['noise_floor']:g}, windows of {made['n_fft']} samples every {made['hop_length']}"),
        ("masks", f"exponent {apart.exponent:g}"),
        ("the fit", end_of_the_fit(model) + (f", the best of {n} starts" if n > 1 else "")),
    ]  # fmt: skip
    return boxes(numbers)
