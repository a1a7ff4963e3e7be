"""What is explored: a model, a recording that may lie on disk, and the two taken together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.data.validation import is_list_of_segments, is_sparse
from motifold.estimator import CNMF
from motifold.explorer.clock import Clock
from motifold.explorer.pyramid import Pyramid
from motifold.findings.annotations import recording_key
from motifold.findings.decomposition import Decomposition, stacked
from motifold.findings.order import correlation_of, picture_order
from motifold.findings.rows import RowsOnDemand
from motifold.findings.unseen import prepared_recording
from motifold.io import Recording
from motifold.model.measures import Power
from motifold.plots.style import Features, scale
from motifold.report.heading import name_of

_CHECKED_ENTRIES = 20_000_000  # of the recording, whether it is the one of the fit
_CHECKED_BLOCKS, _CHECKED_ROWS = 40, 500
_SAME_LOSS, _SIMILAR_LOSS = 1e-3, 0.05  # of all of it, and of a part
_SHADED_ROWS = 2000

Order = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Subject:
    """A recording taken apart by a model, at two resolutions; nothing here ever changes.

    ``is_training``: whether it is the recording of the fit. ``source`` is the file's name.
    """

    fit: Decomposition
    X: Pyramid
    H: Pyramid  # of the activations that count
    clock: Clock
    features: Features
    source: str
    is_training: bool
    recording: Recording | None = None  # prepared as the model's data; None of a sparse matrix
    given: Any = None  # the rows before that

    @classmethod
    def of(cls, model: CNMF, X: Any, rate: float | None = None) -> Subject:
        """From a ``Recording``, an array, a sparse matrix, or a list of segments.

        A ``Recording`` is prepared as the model's data was; others are taken as they are.
        """
        recording = X if isinstance(X, Recording) else _as_recording(X, rate)
        given = None if recording is None else recording.X
        if isinstance(X, Recording) and model.preparation_ is not None:
            recording = prepared_recording(model, X.checked())
        rows = RowsOnDemand.of(X) if recording is None else recording.X
        lengths = _lengths(X, recording, len(rows))
        fit, is_training = _taken_apart(model, rows, lengths, recording)
        pyramid = Pyramid.of(fit.X)
        known = fit.known if pyramid.has_nan else fit.H
        return cls(
            fit,
            pyramid,
            Pyramid.of(np.asarray(known)),
            Clock(
                fit.segments,
                rate if recording is None else recording.rate,
                None if recording is None else recording.starts,
            ),
            _features(model, recording),
            "X" if recording is None else recording.source,
            is_training,
            recording,
            given,
        )

    @property
    def model(self) -> CNMF:
        """The fitted model."""
        return self.fit.model

    @property
    def name(self) -> str:
        """The recording's, without its folder, and which part of the file it is."""
        return Path(self.source).name if self.recording is None else name_of(self.recording)

    @property
    def activations(self) -> npt.NDArray[Any]:
        """Those that count, (T, K)."""
        found: npt.NDArray[Any] = self.H.rows
        return found

    @cached_property
    def key(self) -> str:
        """By which annotations know the recording."""
        return recording_key(self.X.rows if self.given is None else self.given)

    @cached_property
    def darkest(self) -> float:
        """The value that is drawn in the darkest shade."""
        T = len(self.fit.H)
        step = max(1, T // _SHADED_ROWS)
        rows = [np.asarray(self.X.rows[t : t + 1]) for t in range(0, T, step)]
        some = np.concatenate(rows)
        # Of sparse counts nearly all entries are zero, and of the rest one shade is wanted.
        above = some[some > 0] if np.mean(some > 0) < 0.2 else some
        return float(scale(above).vmax or 1.0)

    @cached_property
    def ceilings(self) -> npt.NDArray[np.float64]:
        """The activation of each motif that fills its lane, (K,): twice a usual one.

        Of those that no segment's end cuts off. Where all are smaller, the largest of them.
        """
        whole = self.fit.segments.whole(self.model.components_.shape[1])
        counted = self.activations[whole] if whole.any() else self.activations
        peaks = counted.max(axis=0).astype(np.float64)
        total = counted.sum(axis=0, dtype=np.float64)
        usual = np.einsum("tk,tk->k", counted, counted, dtype=np.float64) / np.maximum(
            total, 1e-300
        )
        return np.where(peaks > 0, np.minimum(peaks, 2 * usual), 1.0)

    @cached_property
    def has_own_order(self) -> bool:
        """Whether the order of the features means something, as that of frequencies does."""
        return self.features.values is not None or correlation_of(self.fit).shows_an_order

    @cached_property
    def sorted_order(self) -> Order:
        """Features by the motif they are strongest in and the lag of their peak, (N,)."""
        order = picture_order(self.fit, True)
        assert order is not None
        return order


def _as_recording(X: Any, rate: float | None) -> Recording | None:
    if is_sparse(X) or (is_list_of_segments(X) and any(is_sparse(part) for part in X)):
        return None
    found = Recording(stacked(X), "X", rate)
    return replace(found, missing="mask")


def _lengths(X: Any, recording: Recording | None, T: int) -> list[int]:
    if recording is not None and recording.lengths is not None:
        return [int(length) for length in recording.lengths]
    return [part.shape[0] for part in X] if is_list_of_segments(X) else [T]


def _features(model: CNMF, recording: Recording | None) -> Features:
    names = getattr(model, "feature_names_in_", None)
    if names is None and recording is not None and recording.feature_names is not None:
        names = np.asarray(recording.feature_names)
    axis = None if recording is None else recording.feature_axis
    return Features.from_options(model.components_.shape[2], axis, None, names)


def _taken_apart(
    model: CNMF, rows: Any, lengths: list[int], recording: Recording | None
) -> tuple[Decomposition, bool]:
    """With the activations of the fit where they explain the recording, else with new ones.

    A mapped or lazily read recording is not read whole for the question.
    """
    segments = Segments.of(len(rows), lengths)
    if rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"The recording has {rows.shape[1]} features, the model {model.n_features_in_}: give "
            "a recording of the features that the model was fitted to."
        )
    if model.lengths_ == lengths:
        fit = Decomposition(model, model.activations_, segments, rows)
        if _explains(fit):
            return fit, True
    mask = None if recording is None else recording.mask
    data = rows.matrix if isinstance(rows, RowsOnDemand) else rows
    with warnings.catch_warnings():  # names, if there are any, were compared by the caller
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        H = np.asarray(model.transform(data, lengths=lengths, mask=mask))
    return Decomposition(model, H, segments, rows), False


def _explains(fit: Decomposition) -> bool:
    """Whether the activations explain the recording as well as they did in the fit."""
    (T, N), power = fit.shape, Power(0)
    all_of_it = T * N <= _CHECKED_ENTRIES
    step = _CHECKED_ROWS if all_of_it else max(_CHECKED_ROWS, T // _CHECKED_BLOCKS)
    for a in range(0, T, step):
        b = min(T, a + _CHECKED_ROWS)
        power.add(np.asarray(fit.reference(a, b), np.float64), fit.rows(a, b))
    if fit.loss.by_ratios:
        return bool(power.loss < 1)
    return bool(power.loss <= fit.model.loss_ + (_SAME_LOSS if all_of_it else _SIMILAR_LOSS))
