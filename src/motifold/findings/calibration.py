"""How strong an event must be: strengths of events beside those in recordings without motifs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.exceptions import ConvergenceWarning

from motifold.data import Segments
from motifold.data.masked import with_nan
from motifold.data.validation import check_masked_recording, is_list_of_segments, is_sparse
from motifold.estimator import CNMF
from motifold.findings.overlap import Floats
from motifold.findings.shifting import random_shifts, shifted
from motifold.findings.table import Table
from motifold.model import Mask

FDR = 0.1  # where the recording is at hand and nothing else is asked for
# Shifted copies: as many as let a motif that occurs once be listed at that rate. Of a recording
# with more entries fewer do, since each copy has many peaks.
_NULLS, _FEW_NULLS, _LARGE = 10, 4, 2e6


def q_values(strengths: Floats, null: Floats, n_null: int) -> Floats:
    """For each event the least false discovery rate at which it is kept, (n_events,).

    ``null`` are the strengths of all events in ``n_null`` recordings in which there are none to be
    found. Of the events as strong as z, as many are expected to be false as such a recording has: m
    / ``n_null`` of m null events in all, taken one higher and by a standard deviation, √m, so as to
    err on the safe side. q is that over their number, or what a lower z would give, if less.
    """
    order = np.argsort(-strengths, kind="stable")
    null = np.sort(null)
    as_strong = len(null) - np.searchsorted(null, strengths[order], side="left")
    expected = (1 + as_strong + np.sqrt(as_strong)) / n_null
    rates = expected / np.arange(1, len(strengths) + 1)
    q = np.empty(len(strengths))
    # A weaker event that is kept keeps every stronger one.
    q[order] = np.minimum(1.0, np.minimum.accumulate(rates[::-1])[::-1])
    return q


def calibrated(
    model: CNMF,
    find: Callable[..., Table],
    X: Any,
    activations: Any = None,
    *,
    fdr: float,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    random_state: int | None = None,
) -> Table:
    """Events of a model in X, with q-values, down to a false discovery rate.

    ``find(activations, lengths=, mask=, X=)`` lists all peaks, however small. Beside them stand
    those of recordings whose features are shifted in time independently, around their segments.
    Peaks that the end of a segment cuts off, which may be huge, are compared with their like.

    A strong event, its features scattered, makes peaks that noise does not make, so that the rule
    is strict where motifs have few features and strengths vary widely. To shift what the events
    leave of X instead is too bold: precision was .75, not 1.00, at a noise of .3, and .54, not .89,
    at .6 (one recording each; activations are found in the data that the motifs were fitted to).
    """
    recording = _Whole.of(model, X, lengths, segments, mask)
    if activations is None:
        activations = recording.activations(model)
    elif is_list_of_segments(activations):
        activations = np.concatenate(activations)
    events = find(activations, X=recording.X, **recording.layout)
    n_null = _FEW_NULLS if np.prod(recording.X.shape) > _LARGE else _NULLS
    rng = np.random.default_rng(random_state)
    null: dict[tuple[int, bool], list[float]] = {}
    for _ in range(n_null):
        copy = recording.shifted(rng)
        for record in find(copy.activations(model, quietly=True), **copy.layout):
            null.setdefault(_kind(record), []).append(record["strength"])
    q = np.ones(len(events))
    kinds = [_kind(record) for record in events]
    for kind in set(kinds):
        mine = np.array([other == kind for other in kinds])
        q[mine] = q_values(events["strength"][mine], np.array(null.get(kind, [])), n_null)
    kept = [
        record | {"q_value": float(value)}
        for record, value in zip(events, q, strict=True)
        if value <= fdr
    ]
    return Table(kept, [*events.columns, "q_value"])


def _kind(record: dict[str, Any]) -> tuple[int, bool]:
    return record["motif"], record["partial"]


@dataclass(frozen=True)
class _Whole:
    """A recording in one piece: X (T, N), an array or sparse, and what is observed of it."""

    X: Any
    segments: Segments
    observed: Mask | None

    @classmethod
    def of(cls, model: CNMF, X: Any, lengths: Any, segments: Any, mask: Any) -> _Whole:
        """Checked; NaN is a missing entry, as in all of ``find_events``."""
        if mask is None and not is_sparse(X):
            parts = X if is_list_of_segments(X) else [X]
            seen = [~np.isnan(with_nan(part).astype(np.float64, copy=False)) for part in parts]
            if not all(part.all() for part in seen):
                mask = seen if is_list_of_segments(X) else seen[0]
        signs = {"nonnegative": not model.allow_negative}
        arrays, masks = check_masked_recording(X, lengths, segments, mask, **signs)
        layout = Segments([array.shape[0] for array in arrays])
        if any(map(issparse, arrays)):
            return cls(vstack(arrays, format="csr"), layout, _stacked(masks))
        return cls(_stacked(arrays), layout, _stacked(masks))

    @property
    def layout(self) -> dict[str, Any]:
        return {"lengths": self.segments.lengths, "mask": self.observed}

    def activations(self, model: CNMF, *, quietly: bool = False) -> Any:
        """Of the model; ``quietly``: that a shifted copy is hard to solve tells nothing."""
        with warnings.catch_warnings():  # names, if there are any, were compared by the caller
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            if quietly:
                warnings.simplefilter("ignore", ConvergenceWarning)
            return model.transform(self.X, **self.layout)

    def shifted(self, rng: np.random.Generator) -> _Whole:
        """Each feature moved in time by itself, around its segment: no motif is left."""
        shifts = random_shifts(self.segments, self.X.shape[1], rng)
        observed = None if self.observed is None else shifted(self.observed, self.segments, shifts)
        return _Whole(shifted(self.X, self.segments, shifts), self.segments, observed)


def _stacked(parts: list[Any] | None) -> Any:
    if parts is None:
        return None
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
