"""One event closely: what the recording does there, beside the motif's other events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.explorer.session import Session
from motifold.explorer.subject import Subject

Floats = npt.NDArray[Any]

_MARGIN = 4  # a snippet begins a quarter of a motif before the event, and ends as much after it
_AVERAGED = 200  # events, spread over all, that the average is of


@dataclass(frozen=True)
class Snippet:
    """An event and what is around it, all on the same lags.

    Attributes
    ----------
    lags : (2,), first lag and end
    here : (lags, N), the recording; NaN beyond its segment
    mean : (lags, N), of the motif's events that were not rejected
    motif : (lags, N), zero outside of its own lags
    likeness : cosine of the recording's lags and the motif's
    others : (events,), the same of the other events
    aligned : (events, lags), how much of the motif each event has at each lag
    row : of ``aligned``, which is this event; None where it is not among them
    """

    lags: tuple[int, int]
    here: Floats
    mean: Floats
    motif: Floats
    likeness: float
    others: Floats
    aligned: Floats
    row: int | None


def snippet(session: Session, k: int, i: int) -> Snippet:
    """Event i of motif k, aligned with the others."""
    subject, found = session.subject, session.occurrences(k)
    W = np.asarray(subject.model.components_[k], np.float64)
    L, margin = len(W), max(1, len(W) // _MARGIN)
    lags = -margin, L + margin
    chosen = _spread(np.flatnonzero(found.counted), i)
    windows = [window(subject, int(found.bins[j]), lags) for j in chosen]
    here = window(subject, int(found.bins[i]), lags)
    motif = np.zeros((lags[1] - lags[0], W.shape[1]))
    motif[margin : margin + L] = W
    likeness = np.array([_cosine(values[margin : margin + L], W) for values in windows])
    norm = np.sqrt((motif**2).sum(axis=1))
    weights = motif / np.where(norm > 0, norm, 1)[:, None]
    aligned = np.array([np.einsum("ln,ln->l", np.nan_to_num(w), weights) for w in windows])
    others = [j != i for j in chosen]
    return Snippet(
        lags,
        here,
        _mean(windows, here),
        motif,
        _cosine(here[margin : margin + L], W),
        likeness[np.array(others, dtype=bool)] if len(chosen) else np.empty(0),
        aligned.reshape(len(chosen), len(motif)),
        chosen.index(i) if i in chosen else None,
    )


def window(subject: Subject, t: int, lags: tuple[int, int]) -> Floats:
    """The recording from lag to lag around bin t, NaN beyond the ends of its segment."""
    edges = subject.fit.segments.edges
    i = int(np.searchsorted(edges, t, side="right")) - 1
    a, b = max(int(edges[i]), t + lags[0]), min(int(edges[i + 1]), t + lags[1])
    found = np.full((lags[1] - lags[0], subject.fit.shape[1]), np.nan)
    found[a - t - lags[0] : b - t - lags[0]] = subject.X.rows[a:b]
    return found


def _spread(events: npt.NDArray[np.intp], i: int) -> list[int]:
    """At most so many events, spread over all, and event i if it is among them."""
    if len(events) <= _AVERAGED:
        return events.tolist()
    some = events[np.linspace(0, len(events) - 1, _AVERAGED).astype(int)]
    return sorted({*some.tolist(), *([i] if i in events else [])})


def _mean(windows: list[Floats], here: Floats) -> Floats:
    if not windows:
        return np.full_like(here, np.nan)
    stack = np.stack(windows)
    counts = (~np.isnan(stack)).sum(axis=0)
    return np.where(counts > 0, np.nansum(stack, axis=0) / np.maximum(counts, 1), np.nan)


def _cosine(values: Floats, motif: Floats) -> float:
    """Over what is observed; 0 where there is nothing."""
    seen = ~np.isnan(values)
    x, w = values[seen], motif[seen]
    norm = float(np.sqrt((x @ x) * (w @ w)))
    return float(x @ w) / norm if norm > 0 else 0.0
