"""Pictures of a stretch of the recording, as pixels: the data, motifs in their colours, lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from motifold.explorer.pyramid import Columns
from motifold.explorer.session import Session
from motifold.explorer.subject import Order, Subject
from motifold.plots.decimate import bucket_edges, pool

Pixels = npt.NDArray[np.uint8]  # (rows, columns, 3), the first row on top
Show = Literal["data and motifs", "data", "motifs"]
Span = tuple[int, int]  # first bin and end
SHOWS: tuple[Show, ...] = ("data and motifs", "data", "motifs")

_INK = np.array((0.13, 0.13, 0.17), np.float32)  # of data that no motif explains
_MISSING = 0.78
_WASH = 0.55  # how dark a motif is where there is no data
# Not more than a small window has pixels: a browser that has fewer would leave some out.
_MAX_COLUMNS, _MAX_ROWS = 900, 300
_EXACT_WORK = 30_000_000  # bins × motifs × lags × features that are worth a reconstruction
_LONG = 16  # motifs: columns longer than that need not know where in them it is
_STEPS = 4  # that a motif is placed in otherwise
_LANE_PIXELS = 40
_FILL = 0.6  # how dark an activation is under its outline
LANE = 0.9  # share of a lane that a full activation fills


@dataclass(frozen=True)
class View:
    """What is looked at: bins a to b, and features by their place from the bottom."""

    a: int
    b: int
    bottom: int
    top: int

    @classmethod
    def of(
        cls, subject: Subject, time: tuple[float, float] | None, y: tuple[float, float] | None
    ) -> View:
        """From the ranges of the axes; None means all."""
        T, N = subject.fit.shape
        a, b = (0, T) if time is None else subject.clock.bins(*sorted(time))
        low, high = (0.0, float(N)) if y is None else sorted(y)
        bottom = min(max(0, int(np.floor(low))), N - 1)
        return cls(a, b, bottom, max(bottom + 1, min(N, int(np.ceil(high)))))


def placed(subject: Subject, order: Order | None) -> Order:
    """The feature at each place from the bottom: frequencies run upwards, others downwards."""
    N = subject.fit.shape[1]
    if order is None and subject.features.limits[0] < subject.features.limits[1]:
        return np.arange(N)
    return (np.arange(N) if order is None else order)[::-1]


def recording_pixels(
    session: Session, view: View, show: Show = "data and motifs", order: Order | None = None
) -> tuple[Pixels, Span]:
    """The recording with the motifs' reconstructions in their colours, and which bins it spans.

    What a motif explains has its colour, what none does is black; where a motif is but no data,
    its colour is pale.
    """
    subject = session.subject
    columns = subject.X.columns(view.a, view.b, _MAX_COLUMNS)
    features = placed(subject, order)[view.bottom : view.top]
    edges = bucket_edges(len(features), _MAX_ROWS)
    data = _fewer(columns.values[:, features].astype(np.float32), edges)
    missing = np.isnan(data)
    data = np.clip(np.nan_to_num(data) / subject.darkest, 0, 1)
    if show == "data":
        pixels = _inked(data, np.broadcast_to(_INK, (*data.shape, 3)))
    else:
        amount, hue = _motifs(session, columns, features, edges)
        pixels = _blended(np.zeros_like(data) if show == "motifs" else data, amount, hue, show)
    pixels[missing] = round(255 * _MISSING)
    return pixels.transpose(1, 0, 2)[::-1], (int(columns.edges[0]), int(columns.edges[-1]))


def _blended(data: Any, amount: Any, hue: Any, show: Show) -> Pixels:
    if show == "motifs":
        return _inked(amount, hue)
    share = np.clip(amount / np.maximum(data, 1e-3), 0, 1)[..., None]
    ink = share * hue + (1 - share) * _INK
    return _inked(data + _WASH * amount * (1 - data), ink)


def _inked(amount: Any, ink: Any) -> Pixels:
    """White paper with so much ink of the given colours."""
    return np.asarray(255 * (1 - amount[..., None] * (1 - ink)) + 0.5).astype(np.uint8)


def _motifs(session: Session, columns: Columns, features: Order, edges: Any) -> tuple[Any, Any]:
    """How much all motifs that are shown make of each pixel, and their colours mixed."""
    subject, annotations = session.subject, session.annotations
    amount = np.zeros((len(columns.edges) - 1, len(edges) - 1), np.float32)
    hue = np.zeros((*amount.shape, 3), np.float32)
    for k, part in enumerate(part_columns(subject, columns, features)):
        shown = annotations.root(k)
        if shown in annotations.shown:
            part = np.maximum(_fewer(part, edges), 0) / np.float32(subject.darkest)
            amount += part
            hue += part[..., None] * rgb(session.colour(shown))
    hue /= np.maximum(amount, 1e-12)[..., None]
    return np.clip(amount, 0, 1), hue


def part_columns(subject: Subject, columns: Columns, features: Order) -> Iterator[Any]:
    """For each motif, the largest of its part of X̂ in each column, (columns, features).

    Of columns much longer than a motif it is the largest activation times the largest of the
    lags, which needs no reconstruction. In between the motif is placed in steps of some lags.
    """
    a, b = int(columns.edges[0]), int(columns.edges[-1])
    motifs = subject.model.components_
    n, L = len(columns.edges) - 1, motifs.shape[1]
    if (b - a) * motifs.size <= _EXACT_WORK:
        for part in subject.fit.parts(a, b):
            yield pool(part[:, features].astype(np.float32), columns.edges - a)
        return
    motifs = motifs[:, :, features].astype(np.float32)
    if b - a <= _LONG * n * L:
        for k, motif in enumerate(motifs):
            yield _roughly(subject.activations[a:b, k], motif, columns.edges - a)
        return
    peaks = subject.H.columns(a, b, n).values
    if len(peaks) != n:  # the two have coarse tables of different steps
        peaks = peaks[np.arange(n) * len(peaks) // n]
    for k, motif in enumerate(motifs):
        yield np.outer(peaks[:, k], motif.max(axis=0)).astype(np.float32)


def _roughly(h: Any, motif: Any, edges: Any) -> Any:
    """The same, of activations h, with bins and lags taken together in steps of some."""
    step = max(1, len(motif) // _STEPS)
    starts = np.arange(0, len(h), step)
    peaks = np.maximum.reduceat(h, starts).astype(np.float32)
    part = np.zeros((len(starts), motif.shape[1]), np.float32)
    for i, first in enumerate(range(0, len(motif), step)):
        largest = motif[first : first + step].max(axis=0)
        np.maximum(part[i:], np.outer(peaks[: len(part) - i], largest), out=part[i:])
    return np.maximum.reduceat(part, np.minimum(edges[:-1] // step, len(part) - 1))


def _fewer(image: Any, edges: Any) -> Any:
    """The largest of features that share a pixel, (columns, pixels)."""
    return image if len(edges) == image.shape[1] + 1 else pool(image.T, edges).T


# --- activations ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Lane:
    """A row of the activations: the motifs that count as one, and their colour."""

    members: list[int]
    colour: str


def lanes_of(session: Session) -> list[Lane]:
    """One for each motif that is shown, the first on top."""
    notes = session.annotations
    return [Lane(notes.members(k), session.colour(k)) for k in notes.shown]


def lane_pixels(subject: Subject, a: int, b: int, lanes: list[Lane]) -> tuple[Pixels, Span]:
    """The activations, each on its own scale, and which bins the picture spans."""
    columns = subject.H.columns(a, b, _MAX_COLUMNS)
    n = len(columns.edges) - 1
    pixels = np.full((max(1, len(lanes)) * _LANE_PIXELS, n, 3), 255, np.uint8)
    up = np.arange(_LANE_PIXELS)[::-1, None]
    for i, lane in enumerate(lanes):
        if not lane.members:
            continue
        shares = columns.values[:, lane.members] / subject.ceilings[lane.members]
        height = np.round(np.clip(shares.max(axis=1), 0, 1) * LANE * _LANE_PIXELS)
        ink = rgb(lane.colour)
        rows = pixels[i * _LANE_PIXELS : (i + 1) * _LANE_PIXELS]
        rows[up < height] = np.round(255 * (1 - _FILL * (1 - ink)))
        rows[(up == height - 1) & (height > 0)] = np.round(255 * ink)
    return pixels, (int(columns.edges[0]), int(columns.edges[-1]))


def rgb(colour: str) -> npt.NDArray[np.float32]:
    """Red, green and blue of a colour #rrggbb, from 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)], np.float32)


def shaded(values: Any, colour: str, darkest: float) -> Pixels:
    """An image (time, features) from white to a colour; NaN is grey. The last feature is on top."""
    share = np.clip(np.nan_to_num(values) / (darkest or 1.0), 0, 1)
    pixels = _inked(share, rgb(colour))
    pixels[np.isnan(values)] = round(255 * _MISSING)
    return pixels.transpose(1, 0, 2)[::-1]
