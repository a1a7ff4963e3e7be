"""Every feature less its baseline, cut off at zero."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval

from motifold.data import Segments
from motifold.prepare.base import Step, entry_columns, with_data


class SubtractBaseline(Step):
    """Subtract from every feature its median, or another quantile; what falls below zero is zero.

    For spectrograms, whose bands have a noise floor each, and for fluorescence. The data need not
    be nonnegative: it is afterwards. (Counts seldom have a baseline to subtract: a rate that is
    low and constant is better learnt beside the motifs, ``CNMF(background=True)``.)

    Parameters
    ----------
    quantile : float, default=0.5
        0.5 is the median. For fluorescence, which is mostly above its baseline, 0.1 or 0.2.

    Attributes
    ----------
    baseline_ : ndarray of shape (n_features,)
        What is subtracted from each feature.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.prepare import SubtractBaseline
    >>> X = np.array([[3.0, 1.0], [3.0, 2.0], [8.0, 3.0]])
    >>> step = SubtractBaseline().fit(X)
    >>> step.baseline_.tolist(), step.transform(X).tolist()
    ([3.0, 2.0], [[0.0, 0.0], [0.0, 0.0], [5.0, 1.0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quantile": [Interval(Real, 0, 1, closed="both")]
    }
    learnt = ("baseline_",)

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        which = "its median" if self.quantile == 0.5 else f"its quantile {self.quantile:g}"
        return f"{which} subtracted from every feature, cut off at zero"

    def _learn(self, X: Any, segments: Segments) -> None:
        columns = X.tocsc() if issparse(X) else None
        baseline = np.zeros(X.shape[1])
        for n in range(X.shape[1]):  # one at a time: a sorted copy of one feature, not of all
            feature = X[:, n] if columns is None else columns[:, [n]].toarray().ravel()
            feature = feature[~np.isnan(feature)]
            if feature.size:
                baseline[n] = np.quantile(feature, self.quantile)
        self.baseline_ = baseline

    def _apply(self, X: Any, segments: Segments) -> Any:
        baseline = self.baseline_.astype(X.dtype)
        if not issparse(X):
            return np.maximum(X - baseline, 0)  # NaN stays
        if baseline.min() < 0:
            raise ValueError(
                "The baseline of a feature is negative: zeros would not stay zeros, and the "
                "matrix not sparse. Make it dense first (toarray)."
            )
        left = with_data(X, np.maximum(X.data - baseline[entry_columns(X)], 0))
        left.eliminate_zeros()
        return left
