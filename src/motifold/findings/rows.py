"""A sparse recording, dense where it is looked at."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack

from motifold.data.validation import check_sparse
from motifold.model import Mask

Floats = npt.NDArray[Any]


class RowsOnDemand:
    """Rows of a sparse matrix (T, N) by their numbers, as an array has them.

    Parameters
    ----------
    matrix : by rows
    mask : True where it is observed; rows are NaN elsewhere
    """

    ndim = 2

    def __init__(self, matrix: Any, mask: Mask | None = None) -> None:
        self.matrix = matrix
        self.mask = mask

    @classmethod
    def of(cls, X: Any) -> RowsOnDemand:
        """From what a user gives: a sparse matrix, or a list of segments with one among them."""
        return cls(vstack([source.matrix() for source in check_sparse(X)], format="csr"))

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N)."""
        T, N = self.matrix.shape
        return T, N

    @property
    def dtype(self) -> np.dtype:
        """That of the entries."""
        return self.matrix.dtype

    @cached_property
    def has_nan(self) -> bool:
        """Whether an entry is NaN, or is not observed."""
        return self.mask is not None or bool(np.isnan(self.matrix.data).any())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        found = self.matrix[rows].toarray()
        return found if self.mask is None else np.where(self.mask[rows], found, np.nan)


def dense(rows: Any) -> Floats:
    """An array, from an array or from a few rows of a sparse matrix."""
    return rows.toarray() if issparse(rows) else np.asarray(rows)
