"""The facts of a fit: all numbers that a report and its pictures show."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.estimator import CNMF
from motifold.findings.annotated import annotated_events
from motifold.findings.annotations import Annotations, recording_key
from motifold.findings.decomposition import Decomposition
from motifold.findings.events import find_events
from motifold.findings.order import FeatureCorrelation, correlation_of, picture_order
from motifold.findings.shuffles import Significance, significance
from motifold.findings.table import Table
from motifold.io import Recording

_ALPHA = 0.05
_NULLS = 200  # shuffled copies of each motif, or as many as the correction for K motifs needs
_SAME_LOSS = 1e-3
_TEST_WORK = 2e9  # bins × features × motifs × copies that the test may take: some ten seconds
_TESTED_MOTIFS = 40  # but it takes so many times the length of a motif at least
_EXCERPT_LAGS = 15  # length of the closer look, in motifs
_EXCERPT_BINS = 200  # and at least


@dataclass(frozen=True)
class Facts:
    """A model, the recording it is shown on, and what follows from the two.

    ``is_training``: whether the recording is the one of the fit. ``significance`` is that of the
    last ``tested_bins`` bins. ``order``: (N,), features as pictures show them, None for the
    recording's own order, which ``correlation`` says whether to keep.
    """

    fit: Decomposition
    recording: Recording
    is_training: bool
    events: Table
    significance: Significance
    tested_bins: int
    correlation: FeatureCorrelation
    order: npt.NDArray[np.intp] | None
    notes: Annotations | None = None  # what was said in the explorer

    @classmethod
    def gather(
        cls,
        model: CNMF,
        recording: Recording,
        sort: bool | None = None,
        notes: Annotations | None = None,
    ) -> Facts:
        """All of it; ``recording`` is in memory and its values are checked."""
        fit, is_training = _taken_apart(model, recording)
        options: dict[str, Any] = {"lengths": fit.segments.lengths, "rate": recording.rate or 1.0}
        if notes is None:
            events = find_events(model, fit.known, **options)
        else:
            key = recording_key(recording.X)
            events = annotated_events(model, fit.known, notes, key=key, **options)
        correlation = correlation_of(fit)
        has_axis = recording.feature_axis is not None
        order = picture_order(fit, sort, has_axis=has_axis, correlation=correlation)
        return cls(fit, recording, is_training, events, *_tested(fit), correlation, order, notes)

    @property
    def model(self) -> CNMF:
        """The fitted model."""
        return self.fit.model

    # --- the recording ----------------------------------------------------------------------

    @property
    def n_missing(self) -> int:
        """Entries that were not observed."""
        mask = self.recording.mask
        return 0 if mask is None else mask.size - int(np.count_nonzero(mask))

    @property
    def missing_share(self) -> float:
        """Of all entries."""
        T, N = self.fit.shape
        return self.n_missing / (T * N)

    @property
    def extremes(self) -> tuple[float, float, float]:
        """Smallest, mean and largest value that was observed."""
        X, mask = np.asarray(self.recording.X), self.recording.mask
        values = X if mask is None else X[mask]
        return float(values.min()), float(values.mean()), float(values.max())

    # --- what the motifs explain ------------------------------------------------------------

    @property
    def loss(self) -> float:
        """Relative loss by the model's loss, over what is observed."""
        return self.fit.measured.loss

    @property
    def explained(self) -> float:
        """Share of the power, or deviance, that all motifs explain together."""
        return self.fit.measured.explained

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Share of the power that each motif explains alone, or of X̂ that it makes, (K,)."""
        return self.fit.measured.shares

    # --- when they occur --------------------------------------------------------------------

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """Events of each motif, (K,)."""
        K = self.model.components_.shape[0]
        return np.bincount(self.events["motif"].astype(np.intp), minlength=K)

    @property
    def per_minute(self) -> npt.NDArray[Any] | None:
        """Events of each motif per minute, (K,); None where the rate is not known."""
        seconds = self.recording.seconds
        return None if seconds is None else 60 * self.counts / seconds

    @cached_property
    def excerpt(self) -> tuple[int, int] | None:
        """First bin and end of the busiest stretch; None where it would be the whole recording."""
        n_bins = max(_EXCERPT_LAGS * self.model.n_lags, _EXCERPT_BINS)
        return None if n_bins >= len(self.fit.H) else self.fit.busiest(n_bins)

    # --- which motifs to doubt --------------------------------------------------------------

    @property
    def dead(self) -> list[int]:
        """Motifs that are empty."""
        return np.flatnonzero(self.model.scales_ == 0).tolist()

    @property
    def silent(self) -> list[int]:
        """Motifs that do not occur in this recording."""
        silent = np.flatnonzero((self.counts == 0) & (self.model.scales_ > 0)).tolist()
        return silent if self.notes is None else [k for k in silent if k in self.notes.shown]

    @property
    def doubtful(self) -> list[int]:
        """Motifs that were tested and are not significant."""
        return np.flatnonzero(self.significance.tested & ~self.significance.significant).tolist()


def _taken_apart(model: CNMF, recording: Recording) -> tuple[Decomposition, bool]:
    """The recording taken apart, and whether it is the one of the fit.

    It is if it has the segments of the fit and the fit's activations explain it as well.
    """
    X, lengths = recording.X, [int(length) for length in recording.lengths or (len(recording.X),)]
    if model.lengths_ == lengths:
        fit = Decomposition.of(model, X)
        if abs(fit.measured.loss - model.loss_) <= _SAME_LOSS:
            return fit, True
    with warnings.catch_warnings():  # names, if there are any, were compared by the caller
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        activations = model.transform(X, lengths=lengths, mask=recording.mask)
    return Decomposition.of(model, X, np.asarray(activations), lengths), False


def _tested(fit: Decomposition) -> tuple[Significance, int]:
    """The test on the end of the recording, as much of it as the work allows."""
    assert fit.X is not None
    K, L, N = fit.model.components_.shape
    T = len(fit.X)
    n_null = max(_NULLS, int(np.ceil(2 * K / _ALPHA)))
    n_bins = min(T, max(_TESTED_MOTIFS * L, int(_TEST_WORK / (n_null * K * N))))
    found = significance(
        np.nan_to_num(fit.X[-n_bins:]),
        fit.model,
        n_null=n_null,
        alpha=_ALPHA,
        lengths=fit.segments.within(T - n_bins, T).lengths,
        random_state=0,
    )
    return found, n_bins
