"""What a report tells of a fit: numbers first, then sentences about them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.estimator import CNMF
from motifold.findings import Significance, Table, find_events, significance, sort_features
from motifold.findings.hidden import mostly_observed
from motifold.io import Recording
from motifold.plots.order import Likeness, likeness
from motifold.plots.recording import Fit, Power

_ROWS = 2**14  # at a time
_ALPHA = 0.05
_NULLS = 200  # shuffled copies of each motif, or as many as the correction for K motifs needs
_SAME_LOSS = 1e-3
_TEST_WORK = 2e9  # bins × features × motifs × copies that the test may take: some ten seconds
_TESTED_MOTIFS = 40  # but it takes so many times the length of a motif at least


@dataclass(frozen=True)
class Facts:
    """A model, the recording it is shown on, and what follows from the two.

    ``shares``: (K,), of the power, explained by each motif alone. ``is_training``: whether the
    recording is the one of the fit. ``significance`` is that of the last ``tested_bins`` bins.
    ``order``: (N,), features as pictures show them, None for the recording's own order, which
    ``likeness`` says whether to keep.
    """

    model: CNMF
    recording: Recording
    activations: npt.NDArray[Any]
    lengths: list[int]
    loss: float
    shares: npt.NDArray[Any]
    events: Table
    is_training: bool
    significance: Significance
    tested_bins: int
    likeness: Likeness
    order: npt.NDArray[np.intp] | None

    @classmethod
    def gather(cls, model: CNMF, recording: Recording, sort: bool | None = None) -> Facts:
        """All of it; ``recording`` is in memory and its values are checked."""
        X = recording.X
        T = recording.shape[0]
        lengths = [int(length) for length in recording.lengths or (T,)]
        is_training = False
        if list(model._lengths) == lengths:
            loss, shares = _loss_and_shares(model, X, model.activations_, lengths)
            is_training = bool(abs(loss - model.loss_) <= _SAME_LOSS)
        if is_training:
            activations = model.activations_
        else:
            with warnings.catch_warnings():  # names, if there are any, were compared by the caller
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                activations = np.asarray(model.transform(X, lengths=lengths, mask=recording.mask))
            loss, shares = _loss_and_shares(model, X, activations, lengths)
        known = activations
        if recording.mask is not None:
            known = np.where(mostly_observed(model, recording.mask, lengths), activations, 0)
        events = find_events(model, known, lengths=lengths, rate=recording.rate or 1.0)
        alike = likeness(X)
        if sort is None:
            sort = recording.feature_axis is None and not alike.shows_an_order
        order = None
        if sort:
            weights = np.square(activations).sum(axis=0)
            order = sort_features(model.components_, weights=weights).order
        return cls(
            model,
            recording,
            activations,
            lengths,
            loss,
            shares,
            events,
            is_training,
            *_tested(model, X, lengths),
            alike,
            order,
        )

    @property
    def n_missing(self) -> int:
        """Entries that were not observed."""
        mask = self.recording.mask
        return 0 if mask is None else mask.size - int(np.count_nonzero(mask))

    @property
    def counts(self) -> npt.NDArray[Any]:
        """Events of each motif, (K,)."""
        K = self.model.components_.shape[0]
        return np.bincount(self.events["motif"].astype(np.intp), minlength=K)

    def busiest(self, n_bins: int) -> tuple[int, int]:
        """The stretch of that many bins, in one segment, in which most motifs occur most."""
        n_bins = min(n_bins, max(self.lengths))
        peaks = self.activations.max(axis=0)
        level = (self.activations / np.where(peaks > 0, peaks, 1)).sum(axis=1)
        total = np.r_[0.0, np.cumsum(level)]
        best, found = -1.0, (0, n_bins)
        stops = np.cumsum(self.lengths)
        for start, stop in zip(np.r_[0, stops[:-1]], stops, strict=True):
            if stop - start < n_bins:
                continue
            sums = total[start + n_bins : stop + 1] - total[start : stop - n_bins + 1]
            at = int(np.argmax(sums))
            if sums[at] > best:
                best, found = float(sums[at]), (int(start) + at, int(start) + at + n_bins)
        return found

    def warnings(self) -> list[str]:
        """What a reader should know before believing the pictures, in plain words."""
        model, told = self.model, []
        if not model.converged_:
            told.append(
                f"The fit stopped before it converged ({model.stop_reason_}, KKT residual "
                f"{model.kkt_residual_:.1e}, tolerance {model.tol:.1e}). The motifs may still "
                "change: fit longer (max_iter, max_time)."
            )
        if not self.is_training:
            told.append(
                "This is not the recording that the model was fitted to: the motifs are those of "
                "the fit, the activations were found anew."
            )
        dead = np.flatnonzero(model.scales_ == 0)
        if dead.size:
            names = ", ".join(str(k) for k in dead)
            told.append(f"Motif {names} is empty: fewer motifs would do (n_components).")
        silent = np.flatnonzero((self.counts == 0) & (model.scales_ > 0))
        if silent.size:
            names = ", ".join(str(k) for k in silent)
            told.append(f"Motif {names} does not occur in this recording.")
        if self.loss > 0.9:
            told.append(
                f"The model explains only {100 * (1 - self.loss**2):.0f}% of the power: look at "
                "the reconstruction before the motifs."
            )
        if self.n_missing:
            size = self.recording.shape[0] * self.recording.shape[1]
            told.append(
                f"{self.n_missing} entries ({100 * self.n_missing / size:.2g}%) are missing. They "
                "count nowhere, and what the reconstruction shows there is a prediction, the "
                "poorer the longer the gap. Events of which less than half is observed are left "
                "out. The test of significance cannot leave entries out and takes them for zero."
            )
        told += self._warnings_of_the_test()
        return told + list(self.recording.hints)

    def _warnings_of_the_test(self) -> list[str]:
        told = []
        if self.is_training:
            told.append(
                "The motifs were tested on the recording they were found in, so their p-values "
                "are too small. For a fair test give a recording that the fit has not seen."
            )
        doubtful = np.flatnonzero(self.significance.tested & ~self.significance.significant)
        if doubtful.size:
            names = ", ".join(str(k) for k in doubtful)
            told.append(
                f"Motif {names} is not significant: the order of its features could be chance."
            )
        return told


def _loss_and_shares(
    model: CNMF, X: Any, activations: npt.NDArray[Any], lengths: list[int]
) -> tuple[float, npt.NDArray[Any]]:
    """Relative loss, and the share of the power each motif explains alone, over what is observed.

    In blocks of rows: of a mapped recording no second copy ever stands in memory.
    """
    fit = Fit.from_options(model, activations, lengths)
    power = Power(len(model.components_))
    for a in range(0, len(X), _ROWS):
        b = min(a + _ROWS, len(X))
        power.add(np.asarray(X[a:b]), fit.parts(a, b))
    return power.loss, power.shares


def _tested(model: CNMF, X: Any, lengths: list[int]) -> tuple[Significance, int]:
    """The test on the end of the recording, as much of it as the work allows."""
    K, L, N = model.components_.shape
    n_null = max(_NULLS, int(np.ceil(2 * K / _ALPHA)))
    n_bins = min(len(X), max(_TESTED_MOTIFS * L, int(_TEST_WORK / (n_null * K * N))))
    kept: list[int] = []
    while sum(kept) < n_bins:
        kept.insert(0, min(lengths[-1 - len(kept)], n_bins - sum(kept)))
    found = significance(
        np.nan_to_num(X[-n_bins:]), model, n_null=n_null, alpha=_ALPHA, lengths=kept, random_state=0
    )
    return found, n_bins
