"""What the steps of a preparation share: input, segments, names of features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from motifold.data import Segments
from motifold.data.masked import with_nan
from motifold.data.refused import refuse_recording
from motifold.data.validation import is_list_of_segments

Floats = npt.NDArray[Any]


class Step(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of recordings: (time, features) in, the same shape out, X left as it is.

    NaN is a missing entry: it counts nowhere, and stays NaN. A subclass has ``_learn`` and
    ``_apply``, which get a checked array of floats, or a sparse matrix by rows.
    """

    learnt: ClassVar[tuple[str, ...]] = ()  # arrays (N,) that the fit leaves
    nonnegative: ClassVar[bool] = False  # whether X has to be

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None, segments: Any = None) -> Step:
        """Learn what the step needs to know of the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
            Rows are time bins. NaN is a missing entry.
        y : ignored
        lengths, segments
            As in ``CNMF.fit``.

        Returns
        -------
        self
        """
        self._validate_params()
        checked, layout = self._checked(X, lengths, segments, reset=True)
        self._learn(checked, layout)
        return self

    def transform(self, X: Any, *, lengths: Any = None, segments: Any = None) -> Any:
        """Prepare a recording.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
        lengths, segments
            As in ``CNMF.fit``.

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features), or a list of such
            New, of the precision of X; a list of segments stays one.
        """
        check_is_fitted(self)
        checked, layout = self._checked(X, lengths, segments, reset=False)
        done = self._apply(checked, layout)
        return layout.split(done) if is_list_of_segments(X) else done

    def fit_transform(
        self, X: Any, y: Any = None, *, lengths: Any = None, segments: Any = None
    ) -> Any:
        """``fit`` and ``transform`` of the same recording.

        Parameters
        ----------
        X, y, lengths, segments
            As in ``fit``.

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features), or a list of such
        """
        self.fit(X, y, lengths=lengths, segments=segments)
        return self.transform(X, lengths=lengths, segments=segments)

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        raise NotImplementedError

    def _learn(self, X: Any, segments: Segments) -> None:
        """Set what ``learnt`` names; most steps have nothing to learn."""

    def _apply(self, X: Any, segments: Segments) -> Any:
        raise NotImplementedError

    def _checked(self, X: Any, lengths: Any, segments: Any, *, reset: bool) -> tuple[Any, Segments]:
        """X stacked, as floats or as a sparse matrix by rows, and its segments."""
        refuse_recording(X, "X")
        listed = is_list_of_segments(X)
        if listed and (lengths is not None or segments is not None):
            raise ValueError("X is a list of segments already: give no lengths or segments.")
        parts = [self._as_floats(part, reset=reset and i == 0) for i, part in
                 enumerate(X if listed else [X])]  # fmt: skip
        if listed:
            stack = vstack if any(map(issparse, parts)) else np.concatenate
            lengths = [part.shape[0] for part in parts]
            stacked = stack(parts).tocsr() if stack is vstack else stack(parts)
        else:
            stacked = parts[0]
        return stacked, Segments.of(stacked.shape[0], lengths, segments)

    def _as_floats(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, np.ma.MaskedArray):
            X = with_nan(X)
        checked = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
        if self.nonnegative:
            _refuse_negative(checked, type(self).__name__)
        return checked

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.nonnegative
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_negative(X: Any, name: str) -> None:
    values = X.data if issparse(X) else X
    if not np.fmin.reduce(values, axis=None, initial=0) < 0:
        return
    rows, columns = (X < 0).nonzero()
    raise ValueError(
        f"Negative values in data passed to {name}: the first is {X[rows[0], columns[0]]:g}, at "
        f"row {rows[0]}, column {columns[0]}. Set them to zero or subtract a baseline before."
    )


def entry_columns(X: Any) -> npt.NDArray[np.intp]:
    """The column of each stored entry of a sparse matrix by rows."""
    return np.asarray(X.indices, dtype=np.intp)


def with_data(X: Any, data: Floats) -> Any:
    """A sparse matrix by rows with other values in the same places."""
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
