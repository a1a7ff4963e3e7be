"""The square root of every entry."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from motifold.data import Segments
from motifold.prepare.base import Step, with_data


class SquareRoot(Step):
    """Take the square root of every entry.

    Of counts it makes the noise about equal everywhere: the variance of a Poisson count grows with
    its mean, that of its root does not. Squared error then weighs busy and quiet features alike,
    and one burst cannot outweigh all the rest.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> from motifold.prepare import SquareRoot
    >>> SquareRoot().fit_transform([[0.0, 4.0], [9.0, 1.0]]).tolist()
    [[0.0, 2.0], [3.0, 1.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    nonnegative = True

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        return "square root of every entry"

    def _apply(self, X: Any, segments: Segments) -> Any:
        return with_data(X, np.sqrt(X.data)) if issparse(X) else np.sqrt(X)
