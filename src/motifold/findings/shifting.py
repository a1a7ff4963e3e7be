"""Recordings in which no motif is left: each feature moved in time by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from motifold.data import Segments

Shifts = npt.NDArray[np.intp]


def random_shifts(segments: Segments, N: int, rng: np.random.Generator) -> Shifts:
    """Bins by which each feature is moved, in each segment: (n_segments, N)."""
    return np.stack([rng.integers(b - a, size=N) for a, b in segments]).astype(np.intp)


def shifted(X: Any, segments: Segments, shifts: Shifts) -> Any:
    """X (T, N), an array or sparse, each feature moved around its segment."""
    if issparse(X):
        return _shifted_entries(X, segments, shifts)
    out = np.empty_like(X)
    for (a, b), by in zip(segments, shifts, strict=True):
        for n, shift in enumerate(by):
            out[a : a + shift, n] = X[b - shift : b, n]
            out[a + shift : b, n] = X[a : b - shift, n]
    return out


def _shifted_entries(X: Any, segments: Segments, shifts: Shifts) -> csr_array:
    entries = X.tocoo()
    ids = segments.ids[entries.row]
    first, size = segments.edges[ids], np.asarray(segments.lengths)[ids]
    rows = first + (entries.row - first + shifts[ids, entries.col]) % size
    return csr_array((entries.data, (rows, entries.col)), shape=X.shape)
