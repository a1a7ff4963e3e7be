"""What a fit has not seen of a recording, prepared as its data was, and the test on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from motifold.data import Segments
from motifold.data.memory import told
from motifold.data.sources import is_stored
from motifold.data.sources.stored import float_dtype
from motifold.estimator import CNMF
from motifold.findings.decomposition import Decomposition
from motifold.findings.rows import RowsOnDisk
from motifold.findings.shuffles import Significance, significance
from motifold.io import Recording, RecordingError

_ALPHA = 0.05
_NULLS = 200  # shuffled copies of each motif, or as many as the correction for K motifs needs
_SAME_LOSS = 1e-3
_TEST_WORK = 2e9  # bins × features × motifs × copies that the test may take: some ten seconds
_TESTED_MOTIFS = 40  # but it takes so many times the length of a motif at least


def prepared_recording(model: CNMF, recording: Recording) -> Recording:
    """The recording as the model's own data was prepared; ``recording`` is checked."""
    if model.preparation_ is None:
        return recording
    refuse_on_disk(recording, "prepared as the model's data was")
    X = model.preparation_.transform(matrix_of(recording.X), lengths=recording.lengths)
    return replace(recording, X=X)


def matrix_of(X: Any) -> Any:
    """As an array, or sparse as it is."""
    return X if issparse(X) else np.asarray(X)


def refuse_on_disk(recording: Recording, what: str) -> None:
    """An error where a recording has stayed on disk and something takes it in memory."""
    if is_stored(recording.X) and not isinstance(recording.X, np.ndarray):
        T, N = recording.shape
        size = told(T * N * float_dtype(recording.X.dtype).itemsize)
        raise RecordingError(
            f"{recording.source}: it cannot be {what} where it is, on disk, and is too large to be "
            f"read ({size}). Do that to the file first, or set memory_limit to four times that."
        )


@dataclass(frozen=True)
class Unseen:
    """Data that the fit has not seen: stretches that were held out, or another recording."""

    kind: Literal["held out", "other"]
    X: Any  # (T, N), prepared; NaN where an entry is missing
    segments: Segments

    @classmethod
    def of(cls, model: CNMF, recording: Recording) -> Unseen | None:
        """None where the recording is that of the fit and nothing of it was held out.

        ``recording`` is checked, and not prepared. Another recording is taken for one that the fit
        has not seen: whether that is so, only the user knows.
        """
        held, X = model.held_out_, recording.X
        if held is not None:
            refuse_on_disk(recording, "cut as that of the fit was")
            X = matrix_of(X)
        if held is not None and held.is_of(X):
            rows, layout = X[held.test], Segments.of(len(held.test), segments=held.test_segments)
            if model.preparation_ is not None:  # no smoothing from beyond the stretch
                rows = model.preparation_.transform(rows, lengths=layout.lengths)
            return cls("held out", rows, layout)
        prepared = prepared_recording(model, recording)
        if decomposition_of_the_fit(model, prepared) is not None:
            return None
        X = prepared.X
        if is_stored(X):
            X = RowsOnDisk(RowsOnDisk.of(X, model.memory_limit).source, recording.mask)
        return cls("other", X, Segments.of(prepared.shape[0], prepared.lengths))

    def tested(
        self, model: CNMF, *, n_null: int, alpha: float = _ALPHA, bins: int | None = None
    ) -> Significance:
        """The test on the last ``bins`` bins; all without."""
        T = self.X.shape[0]
        first = 0 if bins is None else max(0, T - bins)
        X = self.X if first == 0 else self.X[first:]
        if isinstance(X, RowsOnDisk) and X.mask is not None:
            raise ValueError("A recording on disk with missing entries is not tested as a whole.")
        array = isinstance(X, np.ndarray) and X.dtype.kind == "f"
        hides = array and np.isnan(X).any()
        return significance(
            X,
            model,
            n_null=n_null,
            alpha=alpha,
            lengths=self.segments.within(first, T).lengths,
            mask=~np.isnan(X) if hides else None,
            random_state=0,
        )

    def quickly_tested(self, model: CNMF) -> tuple[Significance, int]:
        """The test on the end of the data, as much of it as the work allows, and its bins."""
        K, L, N = model.components_.shape
        n_null = max(_NULLS, int(np.ceil(2 * K / _ALPHA)))
        most = max(_TESTED_MOTIFS * L, int(_TEST_WORK / (n_null * K * N)))
        n_bins = min(self.X.shape[0], most)
        return self.tested(model, n_null=n_null, bins=n_bins), n_bins


def decomposition_of_the_fit(model: CNMF, recording: Recording) -> Decomposition | None:
    """The recording by the fit's activations; None where it is not the recording of the fit.

    It is if it has the segments of the fit and the fit's activations explain it as well.
    ``recording`` is prepared.
    """
    lengths = [int(length) for length in recording.lengths or (recording.shape[0],)]
    if model.lengths_ != lengths:
        return None
    mask = recording.mask if is_stored(recording.X) else None  # in memory NaN says it
    fit = Decomposition.of(model, recording.X, mask=mask)
    return fit if abs(fit.measured.loss - model.loss_) <= _SAME_LOSS else None
