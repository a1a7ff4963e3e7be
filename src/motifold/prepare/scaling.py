"""Every feature divided by a number of its own."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions

from motifold.data import Segments
from motifold.model.measures import ROWS
from motifold.prepare.base import Floats, Step, entry_columns, with_data

_MEANINGS = {
    "std": "its standard deviation",
    "mean-variance": "its root mean square, √(mean² + variance)",
    "max": "its largest value",
}


class ScaleFeatures(Step):
    """Divide every feature by a number of its own, so that none outweighs the others.

    Nothing is subtracted, since what is nonnegative has to stay so: zero stays zero, and a sparse
    matrix sparse.

    Parameters
    ----------
    by : {"std", "mean-variance", "max"}, default="std"
        "std": the standard deviation, so that all features vary alike. "mean-variance":
        √(mean² + variance), the root mean square, so that all have the same power, which is what
        squared error counts; where others subtract the mean and divide by the deviation, this is
        what nonnegative data allows. "max": the largest value.
    least : float, default=0.1
        No feature is divided by less than this share of the median over all features: the noise of
        a feature that is almost silent is not blown up. 0 divides by the number itself.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features,)
        What each feature is divided by; 1 where all features are constant.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.prepare import ScaleFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    >>> scaled = ScaleFeatures(by="max").fit_transform(X)
    >>> scaled.tolist()
    [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "by": [StrOptions(set(_MEANINGS))],
        "least": [Interval(Real, 0, 1, closed="both")],
    }
    learnt = ("scale_",)

    def __init__(
        self, by: Literal["std", "mean-variance", "max"] = "std", *, least: float = 0.1
    ) -> None:
        self.by = by
        self.least = least

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        return f"every feature divided by {_MEANINGS[self.by]}"

    def _learn(self, X: Any, segments: Segments) -> None:
        mean, variance, largest = _moments(X)
        if self.by == "std":
            scale = np.sqrt(variance)
        elif self.by == "mean-variance":
            scale = np.hypot(mean, np.sqrt(variance))
        else:
            scale = largest
        if scale.any():
            scale = np.maximum(scale, self.least * np.median(scale[scale > 0]))
        self.scale_ = np.where(scale > 0, scale, 1.0)

    def _apply(self, X: Any, segments: Segments) -> Any:
        scale = self.scale_.astype(X.dtype)
        if issparse(X):
            return with_data(X, X.data / scale[entry_columns(X)])
        return X / scale


def _moments(X: Any) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and largest absolute value of what is observed of every feature, (N,) each."""
    N = X.shape[1]
    count, total, squares, largest = np.zeros((4, N))
    for a in range(0, X.shape[0], ROWS):
        block = X[a : a + ROWS]
        block = block.toarray() if issparse(block) else block
        there = ~np.isnan(block)
        count += there.sum(axis=0)
        total += np.where(there, block, 0).sum(axis=0, dtype=np.float64)
        largest = np.fmax(largest, np.abs(np.where(there, block, 0)).max(axis=0))
    mean = total / np.maximum(count, 1)
    for a in range(0, X.shape[0], ROWS):  # a second look: no difference of large numbers
        block = X[a : a + ROWS]
        block = block.toarray() if issparse(block) else block
        deviations = np.where(np.isnan(block), mean, block) - mean
        squares += np.square(deviations).sum(axis=0)
    return mean, squares / np.maximum(count, 1), largest
