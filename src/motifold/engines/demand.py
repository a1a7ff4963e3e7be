"""What a fit takes of this machine's memory beside X, at most, told before it begins.

The numbers are those of docs/how-to/large.md, "What is allocated".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from motifold.data.memory import bytes_of_activations, told
from motifold.data.sources import is_stored
from motifold.data.sources.stored import float_dtype
from motifold.engines.cpu.spectral import bytes_of_spectra

# Beside what grows with T: sums over groups of blocks and their like, in motifs (N, L, K), and
# Grams (L·K)² of double precision; buffers of a thread; of a list of missing entries, each.
_MOTIFS, _GRAMS, _THREAD, _HIDDEN = 48, 6, 2**23, 30
# Of a recording on disk, beside the rows that are held: units that are read ahead.
_AHEAD = 2**25
_REMEDIES = {
    "activations": "the activations and arrays like them. Fewer motifs, coarser bins or a part of "
    "the recording take less, float32 half of it, acceleration=None half",
    "copy": "X is copied to change its type, or to hide what is missing. Give it as float32 or "
    "float64, with zeros where nothing is observed",
    "missing": "missing entries are listed. Leave out features and stretches of time of which "
    "nothing is observed",
    "held": "rows of X that are held. Set memory_limit to less than is available",
    "rest": "motifs and what belongs to them. Shorter motifs or fewer features take less",
}


@dataclass(frozen=True)
class Demand:
    """Bytes beside X, at most.

    Attributes
    ----------
    activations : arrays as long as the activations
    copy : of X, where its type or its missing entries ask for one
    missing : lists of missing entries
    held : rows of a recording on disk that stay in memory
    rest : motifs, their statistics, blocks of time, transforms of X
    """

    activations: int
    copy: int = 0
    missing: int = 0
    held: int = 0
    rest: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.activations + self.copy + self.missing + self.held + self.rest

    @property
    def advice(self) -> str:
        """What takes most of it, and what to do where there is less."""
        largest = max(_REMEDIES, key=lambda name: getattr(self, name))
        return f"Most of it, {told(getattr(self, largest))}: {_REMEDIES[largest]}."


@dataclass(frozen=True)
class Sizes:
    """What the demand depends on.

    Attributes
    ----------
    T, N, K, L : time bins, features, motifs (a background is one), lags
    dtype : float32 or float64, of the fit
    accelerated, coupled : whether it is, and whether penalties couple motifs
    n_more : arrays of activations that the solver takes beside
    n_threads : buffers are for each
    n_missing : entries that are not observed
    sparse : whether X is
    """

    T: int
    N: int
    K: int
    L: int
    dtype: np.dtype
    accelerated: bool = True
    coupled: bool = False
    n_more: int = 0
    n_threads: int = 1
    n_missing: int = 0
    sparse: bool = False

    def demand(self, copy: int = 0, room: int | None = None) -> Demand:
        """The demand; ``copy`` of X, and the ``room`` for rows of a recording on disk."""
        T, N, K, L = self.T, self.N, self.K, self.L
        size = self.dtype.itemsize
        coupled = int(self.coupled) + int(self.n_missing > 0)
        held = 0 if room is None else min(room, T * N * size + _AHEAD)
        spectra = 0 if self.sparse else bytes_of_spectra(N, T, K, L, size)
        statistics = size * _MOTIFS * N * L * K + 8 * _GRAMS * (L * K) ** 2
        return Demand(
            bytes_of_activations(
                T, K, size, accelerated=self.accelerated, more=self.n_more, coupled=coupled
            ),
            copy,
            _HIDDEN * self.n_missing,
            held,
            statistics + spectra + _THREAD * self.n_threads,
        )


def fitted_dtype(parts: Sequence[Any]) -> np.dtype:
    """The precision in which a fit of these matrices computes."""
    return np.result_type(*(float_dtype(_dtype(part)) for part in parts))


def bytes_copied(parts: Sequence[Any], *, missing: bool) -> int:
    """Bytes of copies of these matrices that a fit makes; ``missing``: some entries are."""
    dtype = fitted_dtype(parts)
    return sum(_copied(part, dtype, missing) for part in parts)


def is_mapped(X: Any) -> bool:
    """Whether an array is the memory of a map, by whatever views."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None


def _copied(X: Any, dtype: np.dtype, missing: bool) -> int:
    if is_stored(X):
        return 0
    if issparse(X):
        same = X.format == "csr" and X.dtype == dtype and not missing
        return 0 if same else X.nnz * (dtype.itemsize + 4)
    same = isinstance(X, np.ndarray) and X.dtype == dtype
    if same and (not missing or is_mapped(X)):
        return 0
    T, N = X.shape
    return T * N * dtype.itemsize


def _dtype(X: Any) -> np.dtype:
    """Of a matrix of any kind; of a data frame, of its columns together."""
    found = getattr(X, "dtype", None)
    if isinstance(found, np.dtype):
        return found
    columns = getattr(X, "dtypes", None)
    if columns is not None and all(isinstance(one, np.dtype) for one in columns):
        return np.result_type(*columns)
    return np.dtype(np.float64)
