"""The facts of a fit: all numbers that a report and its pictures show."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.data.sources import is_stored
from motifold.estimator import CNMF
from motifold.findings.agreement import StartAgreement, start_agreement
from motifold.findings.annotated import annotated_events
from motifold.findings.annotations import Annotations, recording_key
from motifold.findings.calibration import FDR
from motifold.findings.decomposition import Decomposition
from motifold.findings.events import find_events
from motifold.findings.members import feature_table
from motifold.findings.order import FeatureCorrelation, correlation_of, picture_order
from motifold.findings.rows import RowsOnDemand, RowsOnDisk
from motifold.findings.shuffles import Significance
from motifold.findings.table import Table
from motifold.findings.unseen import Unseen, decomposition_of_the_fit, prepared_recording
from motifold.io import Recording
from motifold.model.measures import ROWS, Power

_EXCERPT_LAGS = 15  # length of the closer look, in motifs
_EXCERPT_BINS = 200  # and at least


@dataclass(frozen=True)
class Facts:
    """A model, the recording it is shown on, and what follows from the two.

    ``recording`` is prepared as the model's data was. ``is_training``: whether it is the one
    of the fit. ``unseen`` is what the fit has not seen of it, None if it has seen all, and
    ``significance`` that of the last ``tested_bins`` bins there; a test on what the fit has seen
    would mean nothing, and is not made. ``order``: (N,), features as pictures show them, None for
    the recording's own order, which ``correlation`` says whether to keep.
    """

    fit: Decomposition
    recording: Recording
    is_training: bool
    events: Table
    unseen: Unseen | None
    significance: Significance | None
    tested_bins: int
    correlation: FeatureCorrelation
    order: npt.NDArray[np.intp] | None
    n_partial: int = 0  # events that the end of a segment cuts off, which are not among the others
    notes: Annotations | None = None  # what was said in the explorer

    @property
    def fdr(self) -> float | None:
        """False discovery rate of the events; None where thresholds of the explorer count."""
        return FDR if self.notes is None else None

    @classmethod
    def gather(
        cls,
        model: CNMF,
        recording: Recording,
        sort: bool | None = None,
        notes: Annotations | None = None,
    ) -> Facts:
        """All of it; ``recording`` is in memory and its values are checked, but not prepared."""
        unseen = Unseen.of(model, recording)
        tested, tested_bins = (None, 0) if unseen is None else unseen.quickly_tested(model)
        key = None if notes is None else recording_key(recording.X)
        recording = prepared_recording(model, recording)
        fit, is_training = _taken_apart(model, recording)
        options: dict[str, Any] = {
            "lengths": fit.segments.lengths,
            "rate": recording.rate or 1.0,
            "starts": None if recording.rate is None else recording.starts,
            "partial": True,
        }
        if notes is None:
            data = {"X": recording.X, "mask": recording.mask}
            found = find_events(model, fit.H, fdr=FDR, **data, **options)
        else:
            found = annotated_events(model, fit.H, notes, key=key, X=fit.X, **options)
        events = found.where(partial=False)
        correlation = correlation_of(fit)
        has_axis = recording.feature_axis is not None
        order = picture_order(fit, sort, has_axis=has_axis, correlation=correlation)
        is_training = is_training or (unseen is not None and unseen.kind == "held out")
        test = unseen, tested, tested_bins
        n_partial = len(found) - len(events)
        of_it = fit, recording, is_training, events
        return cls(*of_it, *test, correlation, order, n_partial, notes)

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
        if isinstance(self.fit.X, RowsOnDemand) and not self.n_missing:
            X = self.fit.X.matrix
            return float(X.min()), float(X.mean(dtype=np.float64)), float(X.max())
        if isinstance(self.fit.X, RowsOnDisk):
            return self._extremes_on_disk(self.fit.X)
        X, mask = np.asarray(self.recording.X), self.recording.mask
        values = X if mask is None else X[mask]
        return float(values.min()), float(values.mean()), float(values.max())

    def _extremes_on_disk(self, X: RowsOnDisk) -> tuple[float, float, float]:
        low, high, total, count = np.inf, -np.inf, 0.0, 0
        for a in range(0, len(X), ROWS):
            rows = X[a : a + ROWS]
            low, high = min(low, float(np.nanmin(rows))), max(high, float(np.nanmax(rows)))
            total += float(np.nansum(rows, dtype=np.float64))
            count += int(np.count_nonzero(~np.isnan(rows)))
        return low, total / count, high

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
        """What each motif has of what all explain together, (K,): see ``model.measures``."""
        return self.fit.measured.shares

    @property
    def overlaps(self) -> npt.NDArray[np.float64] | None:
        """Of each share what lies where other motifs are as well, (K,); None for a deviance."""
        measured = self.fit.measured
        return measured.overlaps if isinstance(measured, Power) else None

    @property
    def background(self) -> float | None:
        """The share of the background, if there is one: that and those of the motifs add up."""
        return None if self.model.background_ is None else self.fit.measured.background

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
        n_bins = max(_EXCERPT_LAGS * int(self.model.n_lags), _EXCERPT_BINS)
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
    def starts(self) -> StartAgreement | None:
        """How many starts of the fit ended alike; None where that is not known."""
        return start_agreement(self.model)

    @cached_property
    def features(self) -> Table:
        """Which motif each feature belongs to, and when it peaks in it."""
        return feature_table(
            self.model, rate=self.recording.rate, names=self.recording.feature_names
        )

    @property
    def doubtful(self) -> list[int]:
        """Motifs that were tested and are not significant."""
        if self.significance is None:
            return []
        return np.flatnonzero(self.significance.tested & ~self.significance.significant).tolist()


def _taken_apart(model: CNMF, recording: Recording) -> tuple[Decomposition, bool]:
    """The recording taken apart, and whether it is the one of the fit, all of it."""
    fit = decomposition_of_the_fit(model, recording)
    if fit is not None:
        return fit, True
    X, lengths = recording.X, recording.lengths
    with warnings.catch_warnings():  # names, if there are any, were compared by the caller
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        activations = model.transform(X, lengths=lengths, mask=recording.mask)
    mask = recording.mask if is_stored(X) else None  # in memory NaN says it
    return Decomposition.of(model, X, np.asarray(activations), lengths, mask), False
