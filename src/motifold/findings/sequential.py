"""How much of what motifs explain is order in time, and how much is firing together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse
from sklearn.base import clone

from motifold.data.given import takes_recordings
from motifold.data.validation import check_recording
from motifold.estimator import CNMF
from motifold.findings.formerly import model_first
from motifold.findings.overlap import Floats
from motifold.model.losses import loss_of


@dataclass(frozen=True)
class Sequenciness:
    """How much of what the motifs explain is order in time, and how much is firing together.

    Attributes
    ----------
    score : float
        What is explained in excess of column-shuffled data over that in excess of feature-shuffled
        data: about 1 for pure sequences, about 0 for features that only fire together, NaN where
        no more of the data is explained than of every feature-shuffled copy: it has neither.
    explained : float
        Share of the data's power that the fit explains; of its deviance with another loss than
        squared error.
    explained_columns : ndarray of shape (n_shuffles,)
        The same with the time bins in random order.
    explained_features : ndarray of shape (n_shuffles,)
        The same with each feature in its own random order.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.findings import sequenciness
    >>> X = np.random.default_rng(0).random((200, 6))
    >>> result = sequenciness(CNMF(1, 4, tol=1e-2), X, n_shuffles=3, random_state=0)
    >>> 0 < result.explained < 1, result.explained_columns.shape
    (True, (3,))
    """

    score: float
    explained: float
    explained_columns: Floats
    explained_features: Floats


_NO_MASK = (
    "But sequenciness has no mask: a shuffle would move the gaps. Leave out the bins that have "
    "some: rows = np.flatnonzero(~np.isnan(X).any(axis=1)), then X[rows] with "
    "segments=mark_junctions(rows)."
)


@takes_recordings
def sequenciness(
    model: CNMF,
    X: Any,
    *,
    n_shuffles: int = 10,
    lengths: Any = None,
    segments: Any = None,
    random_state: int | None = None,
) -> Sequenciness:
    """Score whether X holds sequences or features that fire together.

    Copies of ``model`` are fitted to X, to X with its time bins in random order (which keeps what
    happens at the same time and destroys sequences) and to X with each feature in a random order
    of its own (which destroys both). Bins change places within their segment only.

    The score is no test. Shuffles also destroy what each feature does by itself over time: features
    that have nothing in common score like sequences (0.8 to 1) if they are smooth. Whether there is
    a sequence is asked of ``discover`` or ``sequence_test``.

    Parameters
    ----------
    model : CNMF
        What to fit: its parameters count, a fit it may have does not.
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
    n_shuffles : int, default=10
        Number of shuffled copies of either kind; their median counts.
    lengths, segments
        As in ``CNMF.fit``.
    random_state : int or None
        Seed of the shuffles and of all starts.

    Returns
    -------
    Sequenciness

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import sequenciness
    >>> X = make_sequences(
    ...     400, 20, 2, 10, sigma=0.1, activation_probability=0.02, noise=0.05, random_state=0
    ... ).X
    >>> result = sequenciness(CNMF(2, 10, tol=1e-2), X, n_shuffles=2, random_state=0)
    >>> bool(result.score > 0.5)
    True
    """
    model, X = model_first("sequenciness", model, X)
    signs: dict[str, Any] = {"nonnegative": not model.allow_negative}
    try:
        arrays = check_recording(X, lengths, segments, sparse=True, **signs)
    except ValueError as error:
        if "mask" not in str(error):
            raise
        raise ValueError(f"{error} {_NO_MASK}") from None
    if n_shuffles < 1:
        raise ValueError(f"n_shuffles must be 1 or greater, not {n_shuffles}.")
    rng = np.random.default_rng(random_state)

    def explained(parts: list[Any]) -> float:
        fit = clone(model).set_params(random_state=int(rng.integers(2**31 - 1)))
        return loss_of(fit.beta_loss).explained(fit.fit(parts).loss_)

    def columns(array: Any) -> Any:
        if issparse(array):
            return array[rng.permutation(array.shape[0])]
        return rng.permutation(array, axis=0)

    def features(array: Any) -> Any:
        return _scattered(array, rng) if issparse(array) else rng.permuted(array, axis=0)

    whole = explained(arrays)
    by_columns = np.array([explained([*map(columns, arrays)]) for _ in range(n_shuffles)])
    by_features = np.array([explained([*map(features, arrays)]) for _ in range(n_shuffles)])
    excess = whole - float(np.median(by_features))
    # Of noise, copies are explained as well as X: a ratio of two differences by chance may be huge.
    neither = whole <= by_features.max()
    score = np.nan if neither else (whole - float(np.median(by_columns))) / excess
    return Sequenciness(float(score), whole, by_columns, by_features)


def _scattered(X: Any, rng: np.random.Generator) -> Any:
    """A sparse matrix with the entries of each column at random rows of it."""
    T, N = X.shape
    columns = X.tocsc()
    counts = np.diff(columns.indptr)
    rows = [rng.choice(T, size=n, replace=False) for n in counts]
    return csc_array((columns.data, np.concatenate(rows), columns.indptr), shape=(T, N)).tocsr()
